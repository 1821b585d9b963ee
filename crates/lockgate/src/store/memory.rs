//! The embedded store: decisions in this process's memory, no service needed.
//!
//! **Promise:** the same answers as Redis, for one process. As `memory`, everything is gone when the process ends. With a
//! journal on disk (feature `durable`), *every* answer waits until the journal from which it was computed is on disk: after
//! `kill -9` or a power loss, the reopened stock is what was answered, plus possibly calls that were never answered.
//! **Not promised:** locks after the process ends; their holders have ended with it.
//!
//! One mutex around all of it: a step is a few hash look-ups, far shorter than handing work to another thread, and a
//! single order of all steps is what makes each of them atomic.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tokio::sync::watch;

use super::news::SharedListener;
use super::{
    About, Acquire, Answer, Arrivals, Attempt, Campaign, CampaignChange, CampaignChanged, CampaignForget,
    CampaignOpen, CampaignStatus, Draw, EarId, Enter, EnterWish, EpochSettle, EpochStatus, Fence, Fences,
    Hearing, HoldId, HoldPlace, HoldSettle, HoldStatus, HoldWish, Issue, IssueWish, JournalEntry,
    JournalPosition, JournalReader, JournalStanding, JournalTaken, LatchSet, LatchStatus, LineAdmit,
    LineChange, LineDraw, LineOpen, LineSecrets, LineState, LineStatus, LineTerms, LineTick, Listener, Lock,
    MAX_BATCH, MutexStatus, News, OrderPlace, OrderStatus, OrderWish, PermitRenewal, Persistence, Pool,
    PoolStatus, Purchase, PurchaseWish, Rebuild, Rebuilt, Release, Renew, Renewal, Reopen, Revoke,
    RevokeWish, Seen, Sending, SettleWish, Share, Shrink, Standing, Store, Terms, Tick, TicketAt, Token,
    Told, UserErase, UserShare, check_batch, check_orders,
};
use crate::clock::{Clock, Moment, Timestamp};
use crate::config::{Config, DEFAULT_CLAIM};
use crate::error::StoreError;
use crate::key::Name;

mod campaign;
mod coupon;
mod deal;
#[cfg(feature = "durable")]
mod durable;
mod entries;
mod epoch;
mod hold;
mod journal;
mod keeping;
mod large_map;
mod latch;
mod line;
#[cfg(feature = "durable")]
mod log;
mod mutex;
mod order;
mod permit;
mod queue;
mod readers;
mod shelf;
mod stock;
mod ticket;

use self::journal::Journal;
use self::readers::Readers;
use self::stock::{Answered, Sendings, Stock};

/// See the [module](self).
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    claim: Duration,
    state: Arc<Mutex<State>>,
    #[cfg(feature = "durable")]
    safety: Option<log::Safety>,
}

#[derive(Debug)]
struct State {
    locks: Locks,
    ears: Ears,
    shelves: shelf::Shelves,
    orders: order::Orders,
    lines: line::Lines,
    sendings: Sendings,
    journal: Journal,
    readers: Readers,
    rebuilding: epoch::Rebuilding,
}

/// What can be held or waited for.
#[derive(Debug, Default)]
struct Locks {
    mutexes: mutex::Mutexes,
    pools: permit::Pools,
    latches: latch::Latches,
}

/// Who hears.
#[derive(Default)]
struct Ears(HashMap<EarId, SharedListener>);

impl std::fmt::Debug for Ears {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The time of one step: read once, so that one step sees one time.
#[derive(Clone, Copy, Debug)]
struct Now {
    monotonic: Moment,
    wall: Timestamp,
}

impl Now {
    /// So many fences above `known`, not below the time.
    fn fences_above(self, known: Fence, count: u64) -> Fences {
        let first = (known.get() + 1).max(self.wall.as_micros());
        Fences { first: Fence::new(first), last: Fence::new(first + count - 1) }
    }
}

/// The news of one step. They are told when the step is over, so that whoever hears them may take the next.
struct Post<'a> {
    ears: &'a HashMap<EarId, SharedListener>,
    /// For how long a waiter holds what was given to it before it has said a word.
    claim: Duration,
    to_tell: Vec<(SharedListener, News)>,
}

impl<'a> Post<'a> {
    fn new(ears: &'a HashMap<EarId, SharedListener>, claim: Duration) -> Self {
        Self { ears, claim, to_tell: Vec::new() }
    }

    fn listener(&self, ear: EarId) -> Option<SharedListener> {
        self.ears.get(&ear).cloned()
    }

    fn tell(&mut self, listener: SharedListener, news: News) {
        self.to_tell.push((listener, news));
    }

    /// Tells a waiter that it has `lock`, for the claim lease.
    fn tell_of_grant(
        &mut self,
        listener: SharedListener,
        lock: Lock,
        token: Token,
        fences: Fences,
        now: Now,
    ) {
        let (granted_at, lease) = (now.wall, self.claim);
        self.tell(listener, News::Granted { lock, token, fences, granted_at, lease });
    }

    fn tell_all(&mut self, news: &News) {
        self.to_tell.extend(self.ears.values().map(|listener| (Arc::clone(listener), news.clone())));
    }
}

impl MemoryStore {
    /// An empty store that goes by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_journal(clock, DEFAULT_CLAIM, Journal::kept(None))
    }

    /// An empty store with the configuration's clock, claim lease and journal limit.
    #[must_use]
    pub fn with(config: &Config) -> Self {
        Self::with_journal(config.clock.clone(), config.claim, Journal::kept(config.journal_limit))
    }

    fn with_journal(clock: Clock, claim: Duration, journal: Journal) -> Self {
        let state = State {
            locks: Locks::default(),
            ears: Ears::default(),
            shelves: shelf::Shelves::default(),
            orders: order::Orders::default(),
            lines: line::Lines::default(),
            sendings: Sendings::default(),
            journal,
            readers: Readers::default(),
            rebuilding: epoch::Rebuilding::default(),
        };
        Self {
            clock,
            claim,
            state: Arc::new(Mutex::new(state)),
            #[cfg(feature = "durable")]
            safety: None,
        }
    }

    /// One step on the stock. The answer comes when what it was computed from is safe.
    async fn read<T>(&self, step: impl FnOnce(&mut Stock<'_>) -> T) -> Result<T, StoreError> {
        self.stock_step(|stock, _, _| Ok(step(stock))).await
    }

    /// One step on the stock that is not taken twice.
    async fn once<T: Answered>(
        &self,
        sending: &Sending,
        step: impl FnOnce(&mut Stock<'_>) -> T,
    ) -> Result<T, StoreError> {
        self.stock_step(|stock, sendings, now| sendings.once(sending, now.monotonic, || step(stock))).await
    }

    /// One batch that is not done twice. Without a wish it is none, and its slot has not been used.
    async fn batch<W, T>(
        &self,
        sending: &Sending,
        wishes: &[W],
        step: impl FnOnce(&mut Stock<'_>, &[W]) -> Vec<T>,
    ) -> Result<Vec<T>, StoreError>
    where
        Vec<T>: Answered,
    {
        if wishes.is_empty() {
            return Ok(Vec::new());
        }
        self.once(sending, |stock| step(stock, wishes)).await
    }

    async fn stock_step<T>(
        &self,
        step: impl FnOnce(&mut Stock<'_>, &mut Sendings, Now) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.safely(|| self.take_stock_step(step)).await?
    }

    /// One step on a line. The answer comes when what it was computed from is safe.
    async fn line_step<T>(&self, step: impl FnOnce(&mut line::Step<'_>) -> T) -> Result<T, StoreError> {
        self.safely(|| {
            let mut state = lock(&self.state);
            // With the lock, so that later steps see later times: a line's own time goes by them.
            let now = self.clock.wall();
            let State { lines, journal, .. } = &mut *state;
            let answer = step(&mut line::Step { lines, journal, now });
            (answer, state.journal.mark())
        })
        .await
    }

    #[cfg(not(feature = "durable"))]
    async fn safely<T>(&self, step: impl FnOnce() -> (T, Option<journal::Mark>)) -> Result<T, StoreError> {
        Ok(step().0)
    }

    /// Also a denial, a replay and a read wait: what they say depends on what may not be on disk yet.
    #[cfg(feature = "durable")]
    async fn safely<T>(&self, step: impl FnOnce() -> (T, Option<journal::Mark>)) -> Result<T, StoreError> {
        let Some(safety) = &self.safety else { return Ok(step().0) };
        safety.check()?;
        let (answer, mark) = step();
        if let Some(mark) = mark {
            safety.wait(mark).await?;
        }
        Ok(answer)
    }

    /// Takes the step, and says how much of the journal its answer was computed from.
    fn take_stock_step<T>(
        &self,
        step: impl FnOnce(&mut Stock<'_>, &mut Sendings, Now) -> Result<T, StoreError>,
    ) -> (Result<T, StoreError>, Option<journal::Mark>) {
        // Before the lock, because everybody waits for that, and nothing in the stock needs later steps to see later times.
        let now = self.now();
        let mut state = lock(&self.state);
        let State { shelves, orders, sendings, journal, rebuilding, .. } = &mut *state;
        let answer = step(&mut Stock { shelves, orders, journal, rebuilding, now: now.wall }, sendings, now);
        (answer, state.journal.mark())
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock.monotonic(), wall: self.clock.wall() }
    }

    /// One step on the locks; its news are told afterwards.
    fn lock_step<T>(&self, step: impl FnOnce(&mut Locks, Now, &mut Post<'_>) -> T) -> T {
        let mut state = lock(&self.state);
        // With the lock, so that later steps see later times: fences go by them.
        let now = self.now();
        let State { locks, ears, .. } = &mut *state;
        let mut post = Post::new(&ears.0, self.claim);
        let answer = step(locks, now, &mut post);
        let to_tell = post.to_tell;
        drop(state);
        for (listener, news) in to_tell {
            listener.hear(news);
        }
        answer
    }
}

/// How often a step tries before it lets its thread sleep. A step takes a fraction of a microsecond and a sleep takes ten.
const TRIES: usize = 200;

/// Every step leaves the state whole before anything in it could panic.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    for _ in 0..TRIES {
        match state.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the ear out of the store when it is dropped.
struct Registration {
    state: Arc<Mutex<State>>,
    ear: EarId,
    /// Kept, because its end would look like the end of the store.
    _is_listening: watch::Sender<bool>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The listener is dropped outside: what it owns may come back to the store.
        let listener = lock(&self.state).ears.0.remove(&self.ear);
        drop(listener);
    }
}

impl Store for MemoryStore {
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire> {
        Box::pin(async move {
            attempt.check()?;
            Ok(self.lock_step(|locks, now, post| {
                mutex::mutex_acquire(&mut locks.mutexes, now, post, mutex, attempt)
            }))
        })
    }

    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>> {
        Box::pin(async move {
            super::mutex::check_renewals(renewals)?;
            Ok(self.lock_step(|locks, now, _| mutex::mutex_renew(&mut locks.mutexes, now, renewals)))
        })
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(async move {
            Ok(self.lock_step(|locks, now, post| {
                mutex::mutex_release(&mut locks.mutexes, now, post, mutex, *token)
            }))
        })
    }

    fn mutex_yield<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        next: &'a Attempt,
    ) -> Answer<'a, Acquire> {
        Box::pin(async move {
            next.check()?;
            Ok(self.lock_step(|locks, now, post| {
                mutex::mutex_yield(&mut locks.mutexes, now, post, mutex, *token, next)
            }))
        })
    }

    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus> {
        Box::pin(
            async move { Ok(self.lock_step(|locks, now, _| mutex::mutex_read(&locks.mutexes, now, mutex))) },
        )
    }

    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence> {
        Box::pin(async move {
            Ok(self.lock_step(|locks, now, post| mutex::mutex_break(&mut locks.mutexes, now, post, mutex)))
        })
    }

    fn mutex_acquire_all<'a>(&'a self, wishes: &'a [(Name, Attempt)]) -> Answer<'a, Option<Vec<Acquire>>> {
        Box::pin(async move {
            super::mutex::check_together(wishes)?;
            Ok(self.lock_step(|locks, now, post| {
                mutex::mutex_acquire_all(&mut locks.mutexes, now, post, wishes)
            }))
        })
    }

    fn mutex_raise<'a>(&'a self, mutex: &'a Name, token: &'a Token, fence: Fence) -> Answer<'a, bool> {
        Box::pin(async move {
            super::mutex::check_seen(fence)?;
            Ok(self
                .lock_step(|locks, now, _| mutex::mutex_raise(&mut locks.mutexes, now, mutex, *token, fence)))
        })
    }

    fn permit_acquire<'a>(
        &'a self,
        pool: &'a Pool,
        attempt: &'a Attempt,
        share: Share,
    ) -> Answer<'a, Acquire> {
        Box::pin(async move {
            super::permit::check_wish(pool, attempt, share)?;
            Ok(self.lock_step(|locks, now, post| {
                permit::permit_acquire(&mut locks.pools, now, post, pool, attempt, share)
            }))
        })
    }

    fn permit_renew<'a>(&'a self, renewals: &'a [PermitRenewal]) -> Answer<'a, Vec<Renew>> {
        Box::pin(async move {
            super::permit::check_renewals(renewals)?;
            Ok(self.lock_step(|locks, now, post| permit::permit_renew(&mut locks.pools, now, post, renewals)))
        })
    }

    fn permit_release<'a>(&'a self, pool: &'a Pool, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(async move {
            Ok(self.lock_step(|locks, now, post| {
                permit::permit_release(&mut locks.pools, now, post, pool, *token)
            }))
        })
    }

    fn permit_shrink<'a>(&'a self, pool: &'a Pool, token: &'a Token, permits: u32) -> Answer<'a, Shrink> {
        Box::pin(async move {
            super::permit::check_permits(permits)?;
            Ok(self.lock_step(|locks, now, post| {
                permit::permit_shrink(&mut locks.pools, now, post, pool, *token, permits)
            }))
        })
    }

    fn permit_resize<'a>(&'a self, pool: &'a Pool, total: Option<u32>) -> Answer<'a, ()> {
        Box::pin(async move {
            super::permit::check_size(pool, total)?;
            self.lock_step(|locks, now, post| {
                permit::permit_resize(&mut locks.pools, now, post, pool, total);
            });
            Ok(())
        })
    }

    fn permit_read<'a>(&'a self, pool: &'a Pool) -> Answer<'a, PoolStatus> {
        Box::pin(async move {
            Ok(self.lock_step(|locks, now, post| permit::permit_read(&mut locks.pools, now, post, pool)))
        })
    }

    fn permit_break<'a>(&'a self, pool: &'a Pool, token: Option<&'a Token>) -> Answer<'a, Fence> {
        Box::pin(async move {
            Ok(self.lock_step(|locks, now, post| {
                permit::permit_break(&mut locks.pools, now, post, pool, token.copied())
            }))
        })
    }

    fn latch_set<'a>(&'a self, latch: &'a Name, count: u32, round: &'a Token) -> Answer<'a, LatchSet> {
        Box::pin(async move {
            super::latch::check_count(count)?;
            Ok(self
                .lock_step(|locks, now, _| latch::latch_set(&mut locks.latches, now, latch, count, *round)))
        })
    }

    fn latch_count_down<'a>(
        &'a self,
        latch: &'a Name,
        token: &'a Token,
        round: &'a Token,
    ) -> Answer<'a, Option<LatchStatus>> {
        Box::pin(async move {
            Ok(self.lock_step(|locks, now, post| {
                latch::latch_count_down(&mut locks.latches, now, post, latch, *token, *round)
            }))
        })
    }

    fn latch_read<'a>(&'a self, latch: &'a Name) -> Answer<'a, Option<LatchStatus>> {
        Box::pin(
            async move { Ok(self.lock_step(|locks, now, _| latch::latch_read(&locks.latches, now, latch))) },
        )
    }

    fn line_open<'a>(
        &'a self,
        line: &'a Name,
        terms: &'a LineTerms,
        secrets: &'a LineSecrets,
    ) -> Answer<'a, LineOpen> {
        Box::pin(self.line_step(|step| line::line_open(step, line, terms, secrets)))
    }

    fn line_change<'a>(&'a self, line: &'a Name, change: LineChange) -> Answer<'a, Option<LineState>> {
        Box::pin(self.line_step(move |step| line::line_change(step, line, change)))
    }

    fn line_admit<'a>(
        &'a self,
        line: &'a Name,
        count: u32,
        request: &'a Token,
    ) -> Answer<'a, Option<LineAdmit>> {
        Box::pin(async move {
            super::line::check_crowd("count", count)?;
            self.line_step(|step| line::line_admit(step, line, count, *request)).await
        })
    }

    fn line_read<'a>(&'a self, line: &'a Name) -> Answer<'a, Option<LineStatus>> {
        Box::pin(self.line_step(|step| line::line_read(step, line)))
    }

    fn line_list<'a>(&'a self, _: u16, after: Option<&'a Name>, limit: usize) -> Answer<'a, Vec<Name>> {
        Box::pin(self.line_step(move |step| line::line_list(step.lines, after, limit)))
    }

    fn line_forget<'a>(&'a self, line: &'a Name) -> Answer<'a, bool> {
        Box::pin(self.line_step(|step| line::line_forget(step, line)))
    }

    fn line_enter<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        wishes: &'a [EnterWish],
    ) -> Answer<'a, Option<Told<Enter>>> {
        Box::pin(async move {
            super::line::check_line_call(wishes.len())?;
            self.line_step(|step| line::line_enter(step, line, edition, wishes)).await
        })
    }

    fn line_tick<'a>(&'a self, line: &'a Name, edition: u64, tick: &'a Tick) -> Answer<'a, Option<LineTick>> {
        Box::pin(async move {
            tick.check()?;
            self.line_step(|step| line::line_tick(step, line, edition, tick)).await
        })
    }

    fn ticket_show<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        tickets: &'a [TicketAt],
    ) -> Answer<'a, Option<Told<Standing>>> {
        Box::pin(async move {
            super::line::check_line_call(tickets.len())?;
            self.line_step(|step| ticket::ticket_show(step, line, edition, tickets)).await
        })
    }

    fn ticket_leave<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        Box::pin(self.line_step(move |step| ticket::ticket_leave(step, line, edition, ticket)))
    }

    fn ticket_finish<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        Box::pin(self.line_step(move |step| ticket::ticket_finish(step, line, edition, ticket)))
    }

    fn ticket_renew<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        Box::pin(self.line_step(move |step| ticket::ticket_renew(step, line, edition, ticket)))
    }

    fn line_arrivals<'a>(&'a self, line: &'a Name, from: u64, limit: usize) -> Answer<'a, Option<Arrivals>> {
        Box::pin(self.line_step(move |step| line::line_arrivals(step, line, from, limit)))
    }

    fn line_draw<'a>(&'a self, line: &'a Name, draw: &'a Draw) -> Answer<'a, Option<LineDraw>> {
        Box::pin(async move {
            draw.check()?;
            self.line_step(|step| line::line_draw(step, line, draw)).await
        })
    }

    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        let (tells, is_listening) = watch::channel(true);
        lock(&self.state).ears.0.insert(ear, Arc::clone(&listener));
        listener.hear(News::Listening);
        Hearing::new(is_listening, Registration { state: Arc::clone(&self.state), ear, _is_listening: tells })
    }

    fn partition_of(&self, _: &Name) -> u16 {
        0
    }

    fn partitions(&self) -> u16 {
        1
    }

    fn answers_at_once(&self) -> bool {
        #[cfg(feature = "durable")]
        return self.safety.is_none();
        #[cfg(not(feature = "durable"))]
        true
    }

    fn campaign_open<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        terms: &'a Terms,
    ) -> Answer<'a, CampaignOpen> {
        Box::pin(async move {
            terms.check_for(campaign)?;
            self.once(sending, |stock| campaign::campaign_open(stock, campaign, terms)).await
        })
    }

    fn campaign_change<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        change: CampaignChange,
    ) -> Answer<'a, CampaignChanged> {
        Box::pin(self.once(sending, move |stock| campaign::campaign_change(stock, campaign, change)))
    }

    fn campaign_read<'a>(&'a self, campaign: &'a Campaign) -> Answer<'a, Option<CampaignStatus>> {
        Box::pin(self.read(|stock| campaign::campaign_read(stock, campaign)))
    }

    fn campaign_list<'a>(
        &'a self,
        _: u16,
        after: Option<&'a Campaign>,
        limit: usize,
    ) -> Answer<'a, Vec<Campaign>> {
        Box::pin(self.read(move |stock| campaign::campaign_list(stock, after, limit)))
    }

    fn coupon_issue<'a>(&'a self, sending: &'a Sending, wishes: &'a [IssueWish]) -> Answer<'a, Vec<Issue>> {
        Box::pin(async move {
            check_batch(wishes)?;
            wishes.iter().try_for_each(IssueWish::check)?;
            self.batch(sending, wishes, coupon::coupon_issue).await
        })
    }

    fn deal_purchase<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [PurchaseWish],
    ) -> Answer<'a, Vec<Purchase>> {
        Box::pin(async move {
            check_batch(wishes)?;
            wishes.iter().try_for_each(PurchaseWish::check)?;
            self.batch(sending, wishes, deal::deal_purchase).await
        })
    }

    fn hold_place<'a>(&'a self, sending: &'a Sending, wishes: &'a [HoldWish]) -> Answer<'a, Vec<HoldPlace>> {
        Box::pin(async move {
            check_batch(wishes)?;
            wishes.iter().try_for_each(HoldWish::check)?;
            self.batch(sending, wishes, hold::hold_place).await
        })
    }

    fn hold_settle<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [SettleWish],
    ) -> Answer<'a, Vec<HoldSettle>> {
        Box::pin(async move {
            check_batch(wishes)?;
            self.batch(sending, wishes, hold::hold_settle).await
        })
    }

    fn grant_revoke<'a>(&'a self, sending: &'a Sending, wishes: &'a [RevokeWish]) -> Answer<'a, Vec<Revoke>> {
        Box::pin(async move {
            check_batch(wishes)?;
            self.batch(sending, wishes, deal::grant_revoke).await
        })
    }

    fn order_place<'a>(
        &'a self,
        sending: &'a Sending,
        orders: &'a [OrderWish],
    ) -> Answer<'a, Vec<OrderPlace>> {
        Box::pin(async move {
            check_orders(orders)?;
            self.batch(sending, orders, order::order_place).await
        })
    }

    fn share_read<'a>(&'a self, campaign: &'a Campaign, user: &'a Name) -> Answer<'a, Option<UserShare>> {
        Box::pin(self.read(|stock| campaign::share_read(stock, campaign, user)))
    }

    fn hold_read<'a>(&'a self, campaign: &'a Campaign, id: &'a HoldId) -> Answer<'a, Option<HoldStatus>> {
        Box::pin(self.read(|stock| hold::hold_read(stock, campaign, *id)))
    }

    fn order_read<'a>(&'a self, home: &'a Name, id: &'a Name) -> Answer<'a, Option<OrderStatus>> {
        Box::pin(self.read(|stock| order::order_read(stock, home, id)))
    }

    fn journal_read(&self, _: u16, after: JournalPosition, limit: usize) -> Answer<'_, Vec<JournalEntry>> {
        Box::pin(async move {
            #[cfg(feature = "durable")]
            if let Some(safety) = &self.safety {
                return safety.read(after, limit).await;
            }
            Ok(lock(&self.state)
                .journal
                .in_memory()
                .map_or_else(Vec::new, |kept| journal::journal_read(kept, after, limit)))
        })
    }

    fn journal_take<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'a, Vec<JournalTaken>> {
        Box::pin(async move {
            let limit = limit.min(MAX_BATCH);
            loop {
                let plan = lock(&self.state).readers.plan(reader, after, limit);
                let (from, count) = plan.span(limit);
                let entries = self.journal_read(partition, from, count).await?;
                let now = self.clock.monotonic();
                let readers = &mut lock(&self.state).readers;
                if let Some(taken) = readers::journal_take(readers, reader, now, &plan, entries) {
                    return Ok(taken);
                }
            }
        })
    }

    fn journal_claim<'a>(&'a self, _: u16, reader: &'a JournalReader, idle: Duration) -> Answer<'a, u64> {
        Box::pin(async move {
            let now = self.clock.monotonic();
            Ok(readers::journal_claim(&mut lock(&self.state).readers, reader, now, idle))
        })
    }

    fn journal_acknowledge<'a>(
        &'a self,
        _: u16,
        group: &'a Name,
        positions: &'a [JournalPosition],
    ) -> Answer<'a, u64> {
        Box::pin(async move {
            check_batch(positions)?;
            let mut state = lock(&self.state);
            let State { journal, readers, .. } = &mut *state;
            let count = readers::journal_acknowledge(readers, group, positions);
            journal.note_done(group, readers.done_through(group));
            Ok(count)
        })
    }

    fn journal_standing<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, JournalStanding> {
        Box::pin(async move {
            let (last, oldest_waiting) = {
                let state = lock(&self.state);
                let last = state.journal.last();
                (JournalPosition::new(last, 0), readers::journal_standing(&state.readers, group, last))
            };
            let Some(oldest) = oldest_waiting else {
                return Ok(JournalStanding { last, ..JournalStanding::default() });
            };
            let before = JournalPosition::new(oldest.major - 1, 0);
            let entry = self.journal_read(partition, before, 1).await?.pop();
            let behind =
                entry.map_or(0, |entry| self.clock.wall().as_millis().saturating_sub(entry.at.as_millis()));
            Ok(JournalStanding { last, oldest_waiting, behind: Duration::from_millis(behind) })
        })
    }

    fn journal_dismiss<'a>(&'a self, _: u16, group: &'a Name) -> Answer<'a, bool> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            let State { journal, readers, .. } = &mut *state;
            journal.note_done(group, 0);
            Ok(readers::journal_dismiss(readers, group))
        })
    }

    fn journal_trim(&self, _: u16, through: JournalPosition) -> Answer<'_, u64> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            let State { journal, readers, .. } = &mut *state;
            Ok(journal.in_memory().map_or(0, |kept| journal::journal_trim(kept, readers, through)))
        })
    }

    fn campaign_forget<'a>(&'a self, campaign: &'a Campaign, rev: u64) -> Answer<'a, CampaignForget> {
        Box::pin(self.read(move |stock| keeping::campaign_forget(stock, campaign, rev)))
    }

    fn user_erase<'a>(
        &'a self,
        campaign: &'a Campaign,
        user: &'a Name,
        alias: &'a Name,
        seqs: &'a [u64],
    ) -> Answer<'a, UserErase> {
        Box::pin(async move {
            check_batch(seqs)?;
            self.read(|stock| keeping::user_erase(stock, campaign, user, alias, seqs)).await
        })
    }

    fn epoch_read(&self, _: u16) -> Answer<'_, EpochStatus> {
        Box::pin(self.read(epoch::epoch_read))
    }

    fn epoch_settle(&self, _: u16, if_empty: bool) -> Answer<'_, EpochSettle> {
        Box::pin(self.read(move |stock| epoch::epoch_settle(stock, if_empty)))
    }

    fn campaign_reopen<'a>(&'a self, seen: &'a [Seen], _: bool) -> Answer<'a, Vec<Reopen>> {
        Box::pin(async move {
            check_batch(seen)?;
            self.read(|stock| epoch::campaign_reopen(stock, seen)).await
        })
    }

    fn campaign_rebuild<'a>(&'a self, campaign: &'a Campaign, step: &'a Rebuild) -> Answer<'a, Rebuilt> {
        Box::pin(async move {
            step.check()?;
            self.read(|stock| epoch::campaign_rebuild(stock, campaign, step)).await
        })
    }

    fn about(&self) -> Answer<'_, About> {
        #[cfg(feature = "durable")]
        if let Some(safety) = &self.safety {
            let (description, persistence) =
                ("embedded, journal on disk".into(), Persistence::AppendOnlyAlways);
            let about = About { description, persistence, run_ids: Vec::new() };
            return Box::pin(ready(safety.check().map(|()| about)));
        }
        Box::pin(ready(Ok(About {
            description: "memory".into(),
            persistence: Persistence::None,
            run_ids: Vec::new(),
        })))
    }
}
