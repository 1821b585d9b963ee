//! The contract between the gates and the place where decisions are made, and its two homes.
//!
//! **Promise:** each method is one atomic step. It happens entirely or not at all, it looks the same to every
//! process, and asking again with the same arguments after a lost answer never makes it happen twice.
//!
//! The two homes are [`memory`], for one process, and [`redis`], for many. They give the same answers: one
//! conformance suite (`testing::conformance`) runs on both.
//!
//! # One operation, five places, one name
//!
//! | place | for `mutex_acquire` |
//! | --- | --- |
//! | the method | [`Store::mutex_acquire`] |
//! | its script | `store/redis/scripts/mutex_acquire.lua` |
//! | its caller of the script | `store/redis/mutex.rs`, `fn mutex_acquire` |
//! | its function in memory | `store/memory/mutex.rs`, `fn mutex_acquire` |
//! | its conformance test | `testing/conformance/mutex.rs`, `fn mutex_acquire` |
//!
//! `tests/it/five_places.rs` fails when one of them is missing. The operations on orders over several partitions have no
//! function in memory, where there is one partition.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::error::StoreError;
use crate::key::Name;

mod latch;
mod line;
pub mod memory;
mod mutex;
mod news;
mod permit;
#[cfg(feature = "redis")]
pub mod redis;
mod stock;

pub use self::latch::{LatchSet, LatchStatus, MAX_LATCH};
pub use self::line::{
    ADMITS_KEPT, Arrival, Arrivals, Crowd, Draw, Ending, Enter, EnterWish, LineAdmit, LineChange, LineDraw,
    LineDrawn, LineEra, LineOpen, LineSecret, LineSecrets, LineState, LineStatus, LineTerms, LineTermsParts,
    LineTick, MAX_ADMIT, MAX_CROWD, MAX_EARLY, MAX_LINE_CALL, MAX_LOOKED_AT, MAX_PASSED, MAX_SEEN, MAX_STAY,
    OVER_KEPT, Standing, Tick, TickDone, TicketAt, Told,
};
pub use self::mutex::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, Holder, IfTaken, Lease, LoanMark, MAX_RENEW_BATCH,
    MAX_TOGETHER, MutexStatus, Release, Renew, Renewal, Token,
};
pub use self::news::{EarId, Hearing, Listener, Lock, News};
pub use self::permit::{
    MAX_PERMITS, POOL_RELEASES_KEPT, PermitHolder, PermitRenewal, Pool, PoolKind, PoolStatus, Share, Shrink,
    WRITER,
};
#[cfg(feature = "redis")]
pub(crate) use self::stock::{COMMIT_WITHIN, UNSETTLED_KEPT};
pub use self::stock::{
    Campaign, CampaignChange, CampaignChanged, CampaignForget, CampaignKind, CampaignOpen, CampaignState,
    CampaignStatus, CommittedOrder, EpochSettle, EpochStatus, HoldId, HoldPlace, HoldSettle, HoldState,
    HoldStatus, HoldWish, Issue, IssueWish, JournalChange, JournalEntry, JournalPosition, JournalReader,
    JournalStanding, JournalTaken, MAX_BATCH, MAX_HOLD, MAX_ORDER_ITEMS, MAX_QUANTITY, OrderDecision,
    OrderItem, OrderPart, OrderPlace, OrderReserve, OrderSettle, OrderStatus, OrderVerdict, OrderWish,
    PartItem, PassUse, Purchase, PurchaseWish, REQUEST_KEPT, Rebuild, Rebuilt, Reopen, Revoke, RevokeWish,
    SENDING_KEPT, Seen, Sending, SettleWish, Settlement, Shortage, Terms, UsedPass, UserErase, UserShare,
};
pub(crate) use self::stock::{
    Counts, MAX_SWEEP, PassDenial, Switch, check_batch, check_orders, late_copy, not_open,
};

/// What a store's method returns: a future that may be dropped. Dropping it before it is ready leaves the call in
/// the state of [`StoreError::UnknownOutcome`].
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where decisions are made.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Gives `mutex` to the attempt's token when nobody holds it and nobody waits for it; otherwise does what the
    /// attempt says.
    ///
    /// The fences are above every fence ever given out for this mutex and above what the attempt has seen. The same
    /// token asking again while it holds the mutex gets the same fences and the lease that is left; while it waits in
    /// the queue, it keeps its place. A token that has released the mutex does not get it again, for a minute or
    /// until two others have had it (or the lease of one has run out): such a call is a late copy of an old one.
    ///
    /// A holder's lease that has run out is noticed by the next call on the mutex, whoever makes it; the first waiter
    /// whose ear is there then gets the mutex for the claim lease.
    ///
    /// Dropping the future may leave the mutex held (or the token in the queue), with nobody who knows it: until the
    /// lease ends, or the token is released.
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire>;

    /// Lets the leases of up to [`MAX_RENEW_BATCH`] locks begin anew, each if its token still holds it; answers in the
    /// same order. A lease that has run out stays lost, even when nobody has taken the mutex since.
    ///
    /// Each renewal is a step of its own: when there is no answer, some may have happened and others not.
    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>>;

    /// Gives `mutex` back, if `token` holds it: to the first waiter whose ear is there, or to nobody. A token that
    /// waits in the queue leaves it. The same token releasing again is told the same, until somebody else has released
    /// the mutex too (or a minute has passed): then it is [`Release::NotHeld`].
    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release>;

    /// Gives `mutex` back and, in the same step, asks for it again as `next`, behind all who wait. If nobody waits,
    /// `next` has it at once. If `token` does not hold the mutex, this is `mutex_acquire` of `next`. Whatever `next` says
    /// it does if the mutex is taken, it queues.
    fn mutex_yield<'a>(&'a self, mutex: &'a Name, token: &'a Token, next: &'a Attempt)
    -> Answer<'a, Acquire>;

    /// Tells how `mutex` stands.
    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus>;

    /// Takes `mutex` from whoever holds it, and gives it to the next waiter or to nobody. The answer is a fence above
    /// all that were given out before: whoever guards something by fences can shut the old holder out with it.
    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence>;

    /// Gives all of several mutexes to their attempts' tokens, if all of them can be had at this moment; otherwise changes
    /// nothing, and the answer is `None`. The same for mutexes that do not belong to one partition: they cannot be had in
    /// one step. At most [`MAX_TOGETHER`] of them, each once. What the attempts do if a mutex is taken does not count.
    ///
    /// The answers are those of `mutex_acquire`: [`Acquire::Granted`], in the same order. The same tokens asking again
    /// while they hold all of them get the same fences. Leases that have run out are noticed as by `mutex_acquire`: a mutex
    /// for which somebody waits goes to that one, and cannot be had.
    fn mutex_acquire_all<'a>(&'a self, wishes: &'a [(Name, Attempt)]) -> Answer<'a, Option<Vec<Acquire>>>;

    /// Sees to it that every later grant of `mutex` has a fence above `fence` (at most [`Fence::MAX_SEEN`]), if `token` holds
    /// it; whether it does. The lease stays as it is. The fence counts as one of the grant's: the same token asking again
    /// with `mutex_acquire` is told fences that end there.
    fn mutex_raise<'a>(&'a self, mutex: &'a Name, token: &'a Token, fence: Fence) -> Answer<'a, bool>;

    /// Gives permits of `pool` to the attempt's token when so many are free and nobody waits; otherwise does what the
    /// attempt says. [`IfTaken::Watch`] is refused: pools are waited for in the queue.
    ///
    /// First come, first served: as long as the first in the queue does not get what it wants, nobody behind it does,
    /// however little that one wants, and nobody who comes later either. As soon as there are permits, every waiter from
    /// the head on whose ear is there gets its own for which there are enough, each for the claim lease, and hears
    /// [`News::Granted`]. One that asks by [`IfTaken::QueueAgain`] and is no longer in the queue is the first: it gets its
    /// permits at once if there are enough.
    ///
    /// Wishes for more than the pool has are answered [`Acquire::Never`]. As for all else, this is like `mutex_acquire`:
    /// the same token asking again gets the same permits and fences, or keeps its place; a token that has given its
    /// permits back does not get them again until [`POOL_RELEASES_KEPT`] others have given some back (or a minute has
    /// passed, in which nothing was held and nobody waited); a lease that ran out is noticed by the next call on the pool,
    /// whichever it is. What is told of a lease that is left is that of the one that ends first.
    fn permit_acquire<'a>(
        &'a self,
        pool: &'a Pool,
        attempt: &'a Attempt,
        share: Share,
    ) -> Answer<'a, Acquire>;

    /// Lets the leases of up to [`MAX_RENEW_BATCH`] holders of permits begin anew: see `mutex_renew`. Others wait, in its
    /// answers, when somebody with another ear than the holder's waits in the queue; and when more permits are taken than
    /// there are, since their number was [made smaller](Self::permit_resize).
    fn permit_renew<'a>(&'a self, renewals: &'a [PermitRenewal]) -> Answer<'a, Vec<Renew>>;

    /// Gives all permits of `token` back to `pool`: to the first waiters, or to nobody. A token that waits in the queue
    /// leaves it. As for repeating it: see `mutex_release`; the last [`POOL_RELEASES_KEPT`] are remembered.
    fn permit_release<'a>(&'a self, pool: &'a Pool, token: &'a Token) -> Answer<'a, Release>;

    /// Lets `token` keep only so many permits of those that it holds, at least one, and gives the others back: to the first
    /// waiters, or to nobody. Its lease and its fences stay as they are. Never gives it more than it holds.
    fn permit_shrink<'a>(&'a self, pool: &'a Pool, token: &'a Token, permits: u32) -> Answer<'a, Shrink>;

    /// Sets how many permits `pool` has, from now on and whatever its users say; `None`: it is theirs to say again, when
    /// it is not in use. Fewer than are taken: nobody loses any, and nobody gets any before enough are given back. A waiter
    /// that wants more than there are leaves the queue when it is the first in it, and hears [`News::Ask`]; or when it asks
    /// before that. Read-write locks cannot be resized.
    fn permit_resize<'a>(&'a self, pool: &'a Pool, total: Option<u32>) -> Answer<'a, ()>;

    /// Tells how `pool` stands, after the leases that ran out were noticed.
    fn permit_read<'a>(&'a self, pool: &'a Pool) -> Answer<'a, PoolStatus>;

    /// Takes the permits of one token away, or those of all, and gives them to the next waiters or to nobody. The answer is
    /// a fence above all that were given out before. Who waits keeps its place.
    fn permit_break<'a>(&'a self, pool: &'a Pool, token: Option<&'a Token>) -> Answer<'a, Fence>;

    /// Lets the latch called `latch` count down from `count`, in a round of its own: when there is none, or one that has reached
    /// zero, which forgets who was counted. It is forgotten a day after the last call on it that changed it. The same token
    /// asking again is told [`LatchSet::Set`] as long as it is its round.
    fn latch_set<'a>(&'a self, latch: &'a Name, count: u32, round: &'a Token) -> Answer<'a, LatchSet>;

    /// Counts `latch` down by one, once for each token, if it is still in that round. At zero everybody hears
    /// [`News::Opened`], once; there it stays. `None`: there is no such latch. Who is not counted, because it was already or
    /// because its round is over, is told how the latch stands.
    fn latch_count_down<'a>(
        &'a self,
        latch: &'a Name,
        token: &'a Token,
        round: &'a Token,
    ) -> Answer<'a, Option<LatchStatus>>;

    /// Tells how `latch` stands.
    fn latch_read<'a>(&'a self, latch: &'a Name) -> Answer<'a, Option<LatchStatus>>;

    /// Creates the line called `line`, or replaces its terms; the secrets are those of a new one. Changing the rate while it runs
    /// takes effect with the next batch, at the latest one new `every` from now. Whether it is paused or closed stays.
    fn line_open<'a>(
        &'a self,
        line: &'a Name,
        terms: &'a LineTerms,
        secrets: &'a LineSecrets,
    ) -> Answer<'a, LineOpen>;

    /// Pauses, resumes or closes `line`; how it is then, or `None` when there is none. What is closed stays closed.
    fn line_change<'a>(&'a self, line: &'a Name, change: LineChange) -> Answer<'a, Option<LineState>>;

    /// Lets the next ticks admit so many of those who wait now (1 to [`MAX_CROWD`]), beyond the rate and also while paused, but
    /// never more than may be active. The same request again, among the last [`ADMITS_KEPT`], is not noted again. `None` when
    /// there is no such line.
    fn line_admit<'a>(
        &'a self,
        line: &'a Name,
        count: u32,
        request: &'a Token,
    ) -> Answer<'a, Option<LineAdmit>>;

    /// Tells how `line` stands, or `None` when there is none.
    fn line_read<'a>(&'a self, line: &'a Name) -> Answer<'a, Option<LineStatus>>;

    /// The lines of a partition after the given one, in a fixed order, at most so many.
    fn line_list<'a>(
        &'a self,
        partition: u16,
        after: Option<&'a Name>,
        limit: usize,
    ) -> Answer<'a, Vec<Name>>;

    /// Removes a line that is closed, with everybody in it: whether there is none now. One that is not closed stays.
    fn line_forget<'a>(&'a self, line: &'a Name) -> Answer<'a, bool>;

    /// Lets users into `line`, at most [`MAX_LINE_CALL`], in their order; answers in the same order. Whoever is in it already
    /// keeps the number and counts as seen; so does the second mention of a user. Whoever is over gets a new number.
    ///
    /// `None`, here and in all calls that name an edition: there is no such line, or it is of another edition, and nothing has
    /// happened. [`line_read`](Self::line_read) knows.
    fn line_enter<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        wishes: &'a [EnterWish],
    ) -> Answer<'a, Option<Told<Enter>>>;

    /// Lets the line go on: notes who is there, ends what is over, and admits those who are next, if a batch is due. At most one
    /// batch per call, and never a second one within `every`, whoever calls however often: the line's own time says when the next
    /// one is due. A batch begins when it is due, somebody waits and at least one more may be active; what it has no room for then
    /// (`max_active`) is forfeited. The head passes those who left and those who were not seen for longer than the grace
    /// period, and stops where the batch ends.
    ///
    /// Nobody has to call it at a certain time, and it does no harm that several do.
    fn line_tick<'a>(&'a self, line: &'a Name, edition: u64, tick: &'a Tick) -> Answer<'a, Option<LineTick>>;

    /// Tells how it stands with tickets, at most [`MAX_LINE_CALL`], in their order; whoever shows one is seen. The time of somebody
    /// who is admitted begins when the ticket is shown for the first time.
    fn ticket_show<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        tickets: &'a [TicketAt],
    ) -> Answer<'a, Option<Told<Standing>>>;

    /// Ends a ticket that waits or is admitted; how it stands then. Again is told the same. While the places are drawn, nobody
    /// who came early can leave: the answer is [`Standing::Early`], nothing has changed, and it has to be asked again when the line
    /// is open.
    fn ticket_leave<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>>;

    /// Ends the time of somebody who is admitted, so that the next may come; how it stands then: unchanged, if the ticket is
    /// not admitted.
    fn ticket_finish<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>>;

    /// Lets the time of somebody who is admitted begin anew (and counts as showing the ticket), up to [`MAX_STAY`] after the
    /// ticket was shown first; how it stands then: unchanged, if the ticket is not admitted.
    fn ticket_renew<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>>;

    /// Those who came early, from the given number on, at most so many (and at most 4,096). Known from the opening until
    /// [`OVER_KEPT`] after the last of them was passed. `None`: the line is not there, or not open, or has no pre-queue, or they
    /// are forgotten.
    fn line_arrivals<'a>(&'a self, line: &'a Name, from: u64, limit: usize) -> Answer<'a, Option<Arrivals>>;

    /// Puts those who came early in order, and lets the line begin to admit. Their time of grace begins now. `None` when there is
    /// no such line.
    fn line_draw<'a>(&'a self, line: &'a Name, draw: &'a Draw) -> Answer<'a, Option<LineDraw>>;

    /// Returns when what `token` has of `lock` would survive the store's master, as far as the store was told to see to that:
    /// whether the token has it, then. It does not when the master that answers is another one than the one that gave it
    /// away, and has not heard of it. A store without replicas, or that was not told, knows of nothing to wait for.
    ///
    /// Not an operation: it changes nothing that anybody can see.
    fn replicated<'a>(&'a self, _lock: &'a Lock, _token: &'a Token) -> Answer<'a, bool> {
        Box::pin(std::future::ready(Ok(true)))
    }

    /// From now on, and as soon as the store can, `listener` hears what concerns `ear`. Ends when the answer is
    /// dropped. One listener per ear.
    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing;

    /// The partition that `home` belongs to: the name of a line, or [that of a campaign](Campaign::home). All wishes of one call
    /// must belong to one.
    fn partition_of(&self, home: &Name) -> u16;

    /// How many partitions there are, numbered from 0. Where there is one, every order is placed by `order_place`.
    fn partitions(&self) -> u16 {
        1
    }

    /// Whether this store answers without waiting for anything, so that nothing is gained by asking it for several callers
    /// together.
    fn answers_at_once(&self) -> bool {
        false
    }

    /// Creates `campaign`, or replaces its terms. A quantity below what is granted and held changes nothing; nor do the
    /// terms that it has already. Whether it is paused or closed stays.
    fn campaign_open<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        terms: &'a Terms,
    ) -> Answer<'a, CampaignOpen>;

    /// Pauses, resumes, closes or restocks `campaign`.
    fn campaign_change<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        change: CampaignChange,
    ) -> Answer<'a, CampaignChanged>;

    /// Tells how `campaign` stands, or `None` when there is none. Gives back what holds have left when their time was over.
    fn campaign_read<'a>(&'a self, campaign: &'a Campaign) -> Answer<'a, Option<CampaignStatus>>;

    /// The campaigns of a partition after the given one, in a fixed order, at most so many.
    fn campaign_list<'a>(
        &'a self,
        partition: u16,
        after: Option<&'a Campaign>,
        limit: usize,
    ) -> Answer<'a, Vec<Campaign>>;

    /// Issues coupons, at most [`MAX_BATCH`], in their order; answers in the same order.
    ///
    /// A user who has the coupon already is told the same number again, whatever the coupon's state; so is the second
    /// mention of a user within `wishes`.
    fn coupon_issue<'a>(&'a self, sending: &'a Sending, wishes: &'a [IssueWish]) -> Answer<'a, Vec<Issue>>;

    /// Sells, at most [`MAX_BATCH`] wishes, in their order; answers in the same order. Each wish is met whole or not at all.
    fn deal_purchase<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [PurchaseWish],
    ) -> Answer<'a, Vec<Purchase>>;

    /// Puts things aside, at most [`MAX_BATCH`] wishes, in their order; answers in the same order. What is not settled when
    /// its time is over goes back on the shelf, once: the next call that concerns the campaign sees it there.
    fn hold_place<'a>(&'a self, sending: &'a Sending, wishes: &'a [HoldWish]) -> Answer<'a, Vec<HoldPlace>>;

    /// Confirms or cancels holds, at most [`MAX_BATCH`], in their order; answers in the same order. A hold can be confirmed
    /// although its campaign is paused or closed by now: it is a promise.
    fn hold_settle<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [SettleWish],
    ) -> Answer<'a, Vec<HoldSettle>>;

    /// Takes grants back, at most [`MAX_BATCH`], in their order; answers in the same order. Their numbers are not used again.
    fn grant_revoke<'a>(&'a self, sending: &'a Sending, wishes: &'a [RevokeWish]) -> Answer<'a, Vec<Revoke>>;

    /// Places orders, in their order, at most [`MAX_BATCH`] items in all; answers in the same order. Each order is met whole
    /// or not at all.
    fn order_place<'a>(
        &'a self,
        sending: &'a Sending,
        orders: &'a [OrderWish],
    ) -> Answer<'a, Vec<OrderPlace>>;

    /// Tells what `user` has of `campaign`; `None` when there is no such campaign.
    fn share_read<'a>(&'a self, campaign: &'a Campaign, user: &'a Name) -> Answer<'a, Option<UserShare>>;

    /// Tells how a hold stands; `None` when there is none (any more).
    fn hold_read<'a>(&'a self, campaign: &'a Campaign, id: &'a HoldId) -> Answer<'a, Option<HoldStatus>>;

    /// Tells what was ordered as `id` in the partition of the name `home`; `None` when nothing was, or not within
    /// [`REQUEST_KEPT`].
    fn order_read<'a>(&'a self, home: &'a Name, id: &'a Name) -> Answer<'a, Option<OrderStatus>>;

    /// Puts aside what an order wants of one partition: all of it or nothing. It stays aside until it is
    /// [settled](Self::order_settle), however long that takes; after `doubt_after` it is among the
    /// [doubts](Self::order_doubts) of the partition. The same part again is told the same, whatever became of it.
    ///
    /// Without `doubt_after`, nothing is put aside: the answer says what would deny it.
    fn order_reserve<'a>(
        &'a self,
        _sending: &'a Sending,
        _part: &'a OrderPart,
        _doubt_after: Option<Duration>,
    ) -> Answer<'a, OrderReserve> {
        has_one_partition()
    }

    /// Decides what becomes of one attempt to place the order called `id`, once and for all: it is committed or it is
    /// aborted, and whoever asks again, with whatever decision, is told so. Of all attempts to place one order, one is
    /// committed.
    fn order_decide<'a>(
        &'a self,
        _sending: &'a Sending,
        _id: &'a Name,
        _attempt: Token,
        _decision: &'a OrderDecision,
    ) -> Answer<'a, OrderVerdict> {
        has_one_partition()
    }

    /// Makes what was put aside for an order in one partition grants, or gives it back; either way it is not in doubt any
    /// more. All of it or nothing, and again it is told the same. Works although an article is paused or closed by now.
    ///
    /// Only [`order_decide`](Self::order_decide) says how. An attempt of which nobody will ever ask to commit it may be
    /// given back without asking.
    fn order_settle<'a>(
        &'a self,
        _sending: &'a Sending,
        _part: &'a OrderPart,
        _settlement: Settlement,
    ) -> Answer<'a, OrderSettle> {
        has_one_partition()
    }

    /// What was put aside in a partition for orders whose time is over, the oldest first, at most so many: whoever placed
    /// them may be dead.
    fn order_doubts(&self, _partition: u16, _limit: usize) -> Answer<'_, Vec<OrderPart>> {
        has_one_partition()
    }

    /// The order called `id` that was committed over several partitions; `None` when none was, or not within
    /// [`REQUEST_KEPT`].
    fn order_find<'a>(&'a self, _id: &'a Name) -> Answer<'a, Option<CommittedOrder>> {
        has_one_partition()
    }

    /// The journal of a partition from after a position on, at most so many entries.
    fn journal_read(
        &self,
        partition: u16,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'_, Vec<JournalEntry>>;

    /// Gives a reader what it has not acknowledged yet from after a position on, or, when that is nothing, the next entries
    /// that its group has not been given; at most so many. A group that is new begins at the beginning.
    ///
    /// So a reader that begins with [`JournalPosition::START`] finds what it left behind, one that goes on after the last
    /// entry it was given is given the next ones, and one whose answer was lost asks again from the same position.
    fn journal_take<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'a, Vec<JournalTaken>>;

    /// Hands over to a reader what others of its group were given at least `idle` ago and have not acknowledged, at most
    /// [`MAX_BATCH`] entries; answers how many. The reader finds them by taking from the start.
    fn journal_claim<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        idle: Duration,
    ) -> Answer<'a, u64>;

    /// A group is done with these entries, at most [`MAX_BATCH`]; answers how many of them it had not acknowledged before.
    fn journal_acknowledge<'a>(
        &'a self,
        partition: u16,
        group: &'a Name,
        positions: &'a [JournalPosition],
    ) -> Answer<'a, u64>;

    /// Tells how far a group is.
    fn journal_standing<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, JournalStanding>;

    /// Forgets a group: nothing is kept for it any more. Answers whether there was one.
    fn journal_dismiss<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, bool>;

    /// Forgets the journal of a partition up to and with a position, but nothing that a group of readers has not
    /// acknowledged; answers how many entries that were. A store that rebuilds itself from its journal forgets nothing.
    fn journal_trim(&self, partition: u16, through: JournalPosition) -> Answer<'_, u64>;

    /// Forgets a campaign that is over, and everybody who has something of it, if its last change is that one: whoever asks
    /// has it elsewhere. Its name should not be used again.
    fn campaign_forget<'a>(&'a self, campaign: &'a Campaign, rev: u64) -> Answer<'a, CampaignForget>;

    /// Takes a user's name off what the user was granted in a campaign under these numbers, at most [`MAX_BATCH`]: it stays
    /// granted, to `alias`. Nothing is counted otherwise, so it is no change and not in the journal. What is kept for
    /// [`REQUEST_KEPT`] (settled holds, requests, orders) goes by itself.
    fn user_erase<'a>(
        &'a self,
        campaign: &'a Campaign,
        user: &'a Name,
        alias: &'a Name,
        seqs: &'a [u64],
    ) -> Answer<'a, UserErase>;

    /// Tells whether the campaigns of a partition can be trusted, after the server behind them has changed.
    fn epoch_read(&self, partition: u16) -> Answer<'_, EpochStatus>;

    /// Says that everybody who knows something about a partition's campaigns has said it: from then on, what is not there and
    /// not missing was never there. Not before those who know something have had time to say it; `if_empty`: at once where
    /// nothing has ever been.
    fn epoch_settle(&self, partition: u16, if_empty: bool) -> Answer<'_, EpochSettle>;

    /// Says how far somebody has seen campaigns of one partition, at most [`MAX_BATCH`], and trusts those again that are at
    /// least as far as anybody has said, if `decides` and when everybody has had time to say so. Answers in the same order.
    fn campaign_reopen<'a>(&'a self, seen: &'a [Seen], decides: bool) -> Answer<'a, Vec<Reopen>>;

    /// Builds a campaign anew that is not there or cannot be trusted, step by step. Nobody sees anything of it before the last
    /// one. The same step again changes nothing.
    fn campaign_rebuild<'a>(&'a self, campaign: &'a Campaign, step: &'a Rebuild) -> Answer<'a, Rebuilt>;

    /// Tells what kind of store this is and how durable, by asking it now: so it is also the question whether it
    /// can be reached.
    fn about(&self) -> Answer<'_, About>;
}

/// What a store with one partition says to the operations on orders over several: there is no such order.
fn has_one_partition<'a, T: Send + 'a>() -> Answer<'a, T> {
    let why = "this store has one partition: every order is placed in one step, by order_place";
    Box::pin(std::future::ready(Err(StoreError::Refused(why.into()))))
}

/// What a store says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// For example `memory` or `redis 7.0.15 (cluster, 3 masters)`.
    pub description: String,
    /// What survives when the store's process dies.
    pub persistence: Persistence,
    /// The run ids of the servers behind it, sorted; a change means that a server restarted or another one took
    /// over. Empty for the embedded store.
    pub run_ids: Vec<String>,
}

/// What survives when the store's process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Persistence {
    /// Nothing.
    None,
    /// The last snapshot: everything since then is lost.
    Snapshots,
    /// All that had reached the disk: the operating system decides when, usually within half a minute.
    AppendOnlyUnsynced,
    /// All but the last second or so.
    AppendOnlyEverySecond,
    /// Every acknowledged write.
    AppendOnlyAlways,
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Persistence::None => "nothing survives a restart",
            Persistence::Snapshots => "a restart of the store loses what came after its last snapshot",
            Persistence::AppendOnlyUnsynced => "a crash of the store's machine may lose the last half minute",
            Persistence::AppendOnlyEverySecond => "a crash of the store may lose the last second",
            Persistence::AppendOnlyAlways => "acknowledged writes survive a crash of the store",
        })
    }
}
