//! A store that breaks on demand, around any other.
//!
//! **Promise:** while broken, every call meets exactly the [`Break`] that was asked for; healed, it is the store inside,
//! with everything that it has done meanwhile. News are broken for themselves: see [`Deafness`].

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    About, Acquire, Answer, Arrivals, Attempt, Campaign, CampaignChange, CampaignChanged, CampaignForget,
    CampaignOpen, CampaignStatus, CommittedOrder, Draw, EarId, Enter, EnterWish, EpochSettle, EpochStatus,
    Fence, Hearing, HoldId, HoldPlace, HoldSettle, HoldStatus, HoldWish, Issue, IssueWish, JournalEntry,
    JournalPosition, JournalReader, JournalStanding, JournalTaken, LatchSet, LatchStatus, LineAdmit,
    LineChange, LineDraw, LineOpen, LineSecrets, LineState, LineStatus, LineTerms, LineTick, Listener, Lock,
    MutexStatus, News, OrderDecision, OrderPart, OrderPlace, OrderReserve, OrderSettle, OrderStatus,
    OrderVerdict, OrderWish, PermitRenewal, Pool, PoolStatus, Purchase, PurchaseWish, Rebuild, Rebuilt,
    Release, Renew, Renewal, Reopen, Revoke, RevokeWish, Seen, Sending, SettleWish, Settlement, Share,
    Shrink, Standing, Store, Terms, Tick, TicketAt, Token, Told, UserErase, UserShare,
};

/// How a store can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Calls do not reach the store: they end with [`StoreError::Unavailable`], and nothing happens.
    Refuse,
    /// The store itself refuses, and would again: calls end with [`StoreError::Refused`], and nothing happens.
    Reject,
    /// Calls reach the store and happen, and their answers are lost: they end with [`StoreError::UnknownOutcome`].
    LoseAnswer,
    /// Calls wait until the store is healed, and happen then.
    Hang,
    /// Calls wait until the store is healed, and end then with [`StoreError::Unavailable`]: nothing happens.
    HangThenRefuse,
}

/// How the news of a store can get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deafness {
    /// Whoever begins to listen from now on never hears anything, and knows it: as when the subscription is forbidden.
    Known,
    /// Whoever listens is told that it hears, and hears nothing: as when messages get lost on their way.
    Unknown,
}

/// See the [module](self).
pub struct BreakableStore {
    inner: Arc<dyn Store>,
    all: watch::Sender<Option<Break>>,
    /// What the next calls meet, the next one last; `None` is nothing.
    next: Mutex<Vec<Option<Break>>>,
    calls: AtomicU64,
    refuses_acknowledgements: AtomicBool,
    refuses_to_give: AtomicBool,
    is_known_to_be_deaf: AtomicBool,
    loses_news: Arc<AtomicBool>,
}

impl BreakableStore {
    /// Wraps `inner`, whole for now.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            all: watch::Sender::new(None),
            next: Mutex::default(),
            calls: AtomicU64::new(0),
            refuses_acknowledgements: AtomicBool::new(false),
            refuses_to_give: AtomicBool::new(false),
            is_known_to_be_deaf: AtomicBool::new(false),
            loses_news: Arc::default(),
        }
    }

    /// Breaks every call from now on until [`heal`](Self::heal).
    pub fn break_all(&self, how: Break) {
        self.all.send_replace(Some(how));
    }

    /// Breaks only the next call (the ones after it, if called several times).
    pub fn break_next(&self, how: Break) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).insert(0, Some(how));
    }

    /// Spares the next so many calls (the ones after those that were spoken of already), whatever is in force for all.
    pub fn spare_next(&self, calls: usize) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.splice(0..0, std::iter::repeat_n(None, calls));
    }

    /// From now on, what a reader of the journal acknowledges does not arrive: as when it dies just before.
    pub fn refuse_acknowledgements(&self) {
        self.refuses_acknowledgements.store(true, Ordering::SeqCst);
    }

    /// From now on until [`heal`](Self::heal), no reader of the journal is given anything; all else of the journal works. So a
    /// group of readers that is new stays new.
    pub fn refuse_to_give(&self) {
        self.refuses_to_give.store(true, Ordering::SeqCst);
    }

    /// Lets no news through from now on until [`heal`](Self::heal). Calls are not concerned.
    pub fn deafen(&self, how: Deafness) {
        match how {
            Deafness::Known => self.is_known_to_be_deaf.store(true, Ordering::SeqCst),
            Deafness::Unknown => self.loses_news.store(true, Ordering::SeqCst),
        }
    }

    /// Makes it whole; calls that hang go on. Who began to listen during a [known](Deafness::Known) deafness stays deaf.
    pub fn heal(&self) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.refuses_to_give.store(false, Ordering::SeqCst);
        self.is_known_to_be_deaf.store(false, Ordering::SeqCst);
        self.loses_news.store(false, Ordering::SeqCst);
        self.all.send_replace(None);
    }

    /// Makes it whole but for the calls that [`break_next`](Self::break_next) is waiting for; calls that hang go on.
    pub fn heal_all_but_next(&self) {
        self.all.send_replace(None);
    }

    /// How many calls have met what was in force when they were made, the whole ones included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Lets `call` meet what is in force.
    fn meet<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let in_force = next.unwrap_or(*self.all.borrow());
            self.calls.fetch_add(1, Ordering::SeqCst);
            match in_force {
                None => call.await,
                Some(Break::Refuse) => Err(StoreError::Unavailable("broken on purpose".into())),
                Some(Break::Reject) => Err(StoreError::Refused("broken on purpose".into())),
                Some(Break::LoseAnswer) => {
                    call.await?;
                    Err(StoreError::UnknownOutcome("broken on purpose".into()))
                }
                Some(how @ (Break::Hang | Break::HangThenRefuse)) => {
                    // The sender lives in `self`, so waiting cannot fail.
                    let _ = self.all.subscribe().wait_for(Option::is_none).await;
                    match how {
                        Break::Hang => call.await,
                        _ => Err(StoreError::Unavailable("broken on purpose".into())),
                    }
                }
            }
        })
    }
}

impl fmt::Debug for BreakableStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakableStore")
            .field("inner", &self.inner)
            .field("all", &*self.all.borrow())
            .finish()
    }
}

impl Store for BreakableStore {
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire> {
        self.meet(self.inner.mutex_acquire(mutex, attempt))
    }

    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>> {
        self.meet(self.inner.mutex_renew(renewals))
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        self.meet(self.inner.mutex_release(mutex, token))
    }

    fn mutex_yield<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        next: &'a Attempt,
    ) -> Answer<'a, Acquire> {
        self.meet(self.inner.mutex_yield(mutex, token, next))
    }

    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus> {
        self.meet(self.inner.mutex_read(mutex))
    }

    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence> {
        self.meet(self.inner.mutex_break(mutex))
    }

    fn mutex_acquire_all<'a>(&'a self, wishes: &'a [(Name, Attempt)]) -> Answer<'a, Option<Vec<Acquire>>> {
        self.meet(self.inner.mutex_acquire_all(wishes))
    }

    fn mutex_raise<'a>(&'a self, mutex: &'a Name, token: &'a Token, fence: Fence) -> Answer<'a, bool> {
        self.meet(self.inner.mutex_raise(mutex, token, fence))
    }

    fn permit_acquire<'a>(
        &'a self,
        pool: &'a Pool,
        attempt: &'a Attempt,
        share: Share,
    ) -> Answer<'a, Acquire> {
        self.meet(self.inner.permit_acquire(pool, attempt, share))
    }

    fn permit_renew<'a>(&'a self, renewals: &'a [PermitRenewal]) -> Answer<'a, Vec<Renew>> {
        self.meet(self.inner.permit_renew(renewals))
    }

    fn permit_release<'a>(&'a self, pool: &'a Pool, token: &'a Token) -> Answer<'a, Release> {
        self.meet(self.inner.permit_release(pool, token))
    }

    fn permit_shrink<'a>(&'a self, pool: &'a Pool, token: &'a Token, permits: u32) -> Answer<'a, Shrink> {
        self.meet(self.inner.permit_shrink(pool, token, permits))
    }

    fn permit_resize<'a>(&'a self, pool: &'a Pool, total: Option<u32>) -> Answer<'a, ()> {
        self.meet(self.inner.permit_resize(pool, total))
    }

    fn permit_read<'a>(&'a self, pool: &'a Pool) -> Answer<'a, PoolStatus> {
        self.meet(self.inner.permit_read(pool))
    }

    fn permit_break<'a>(&'a self, pool: &'a Pool, token: Option<&'a Token>) -> Answer<'a, Fence> {
        self.meet(self.inner.permit_break(pool, token))
    }

    fn latch_set<'a>(&'a self, latch: &'a Name, count: u32, round: &'a Token) -> Answer<'a, LatchSet> {
        self.meet(self.inner.latch_set(latch, count, round))
    }

    fn latch_count_down<'a>(
        &'a self,
        latch: &'a Name,
        token: &'a Token,
        round: &'a Token,
    ) -> Answer<'a, Option<LatchStatus>> {
        self.meet(self.inner.latch_count_down(latch, token, round))
    }

    fn latch_read<'a>(&'a self, latch: &'a Name) -> Answer<'a, Option<LatchStatus>> {
        self.meet(self.inner.latch_read(latch))
    }

    fn line_open<'a>(
        &'a self,
        line: &'a Name,
        terms: &'a LineTerms,
        secrets: &'a LineSecrets,
    ) -> Answer<'a, LineOpen> {
        self.meet(self.inner.line_open(line, terms, secrets))
    }

    fn line_change<'a>(&'a self, line: &'a Name, change: LineChange) -> Answer<'a, Option<LineState>> {
        self.meet(self.inner.line_change(line, change))
    }

    fn line_admit<'a>(
        &'a self,
        line: &'a Name,
        count: u32,
        request: &'a Token,
    ) -> Answer<'a, Option<LineAdmit>> {
        self.meet(self.inner.line_admit(line, count, request))
    }

    fn line_read<'a>(&'a self, line: &'a Name) -> Answer<'a, Option<LineStatus>> {
        self.meet(self.inner.line_read(line))
    }

    fn line_list<'a>(
        &'a self,
        partition: u16,
        after: Option<&'a Name>,
        limit: usize,
    ) -> Answer<'a, Vec<Name>> {
        self.meet(self.inner.line_list(partition, after, limit))
    }

    fn line_forget<'a>(&'a self, line: &'a Name) -> Answer<'a, bool> {
        self.meet(self.inner.line_forget(line))
    }

    fn line_enter<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        wishes: &'a [EnterWish],
    ) -> Answer<'a, Option<Told<Enter>>> {
        self.meet(self.inner.line_enter(line, edition, wishes))
    }

    fn line_tick<'a>(&'a self, line: &'a Name, edition: u64, tick: &'a Tick) -> Answer<'a, Option<LineTick>> {
        self.meet(self.inner.line_tick(line, edition, tick))
    }

    fn ticket_show<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        tickets: &'a [TicketAt],
    ) -> Answer<'a, Option<Told<Standing>>> {
        self.meet(self.inner.ticket_show(line, edition, tickets))
    }

    fn ticket_leave<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        self.meet(self.inner.ticket_leave(line, edition, ticket))
    }

    fn ticket_finish<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        self.meet(self.inner.ticket_finish(line, edition, ticket))
    }

    fn ticket_renew<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        self.meet(self.inner.ticket_renew(line, edition, ticket))
    }

    fn line_arrivals<'a>(&'a self, line: &'a Name, from: u64, limit: usize) -> Answer<'a, Option<Arrivals>> {
        self.meet(self.inner.line_arrivals(line, from, limit))
    }

    fn line_draw<'a>(&'a self, line: &'a Name, draw: &'a Draw) -> Answer<'a, Option<LineDraw>> {
        self.meet(self.inner.line_draw(line, draw))
    }

    /// Whole whatever is in force: the store inside has replicas or not.
    fn replicated<'a>(&'a self, lock: &'a Lock, token: &'a Token) -> Answer<'a, bool> {
        self.inner.replicated(lock, token)
    }

    /// News get lost when the store is [deafened](BreakableStore::deafen) and not when its calls are broken: whoever waits
    /// for them must cope.
    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        if self.is_known_to_be_deaf.load(Ordering::SeqCst) {
            let (tells, is_listening) = watch::channel(false);
            // Kept, because the end of what tells would look like the end of the store.
            return Hearing::new(is_listening, tells);
        }
        let loses_news = Arc::clone(&self.loses_news);
        self.inner.listen(ear, Arc::new(Muffled { listener, loses_news }))
    }

    fn partition_of(&self, home: &Name) -> u16 {
        self.inner.partition_of(home)
    }

    fn partitions(&self) -> u16 {
        self.inner.partitions()
    }

    fn campaign_open<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        terms: &'a Terms,
    ) -> Answer<'a, CampaignOpen> {
        self.meet(self.inner.campaign_open(sending, campaign, terms))
    }

    fn campaign_change<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        change: CampaignChange,
    ) -> Answer<'a, CampaignChanged> {
        self.meet(self.inner.campaign_change(sending, campaign, change))
    }

    fn campaign_read<'a>(&'a self, campaign: &'a Campaign) -> Answer<'a, Option<CampaignStatus>> {
        self.meet(self.inner.campaign_read(campaign))
    }

    fn campaign_list<'a>(
        &'a self,
        partition: u16,
        after: Option<&'a Campaign>,
        limit: usize,
    ) -> Answer<'a, Vec<Campaign>> {
        self.meet(self.inner.campaign_list(partition, after, limit))
    }

    fn coupon_issue<'a>(&'a self, sending: &'a Sending, wishes: &'a [IssueWish]) -> Answer<'a, Vec<Issue>> {
        self.meet(self.inner.coupon_issue(sending, wishes))
    }

    fn deal_purchase<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [PurchaseWish],
    ) -> Answer<'a, Vec<Purchase>> {
        self.meet(self.inner.deal_purchase(sending, wishes))
    }

    fn hold_place<'a>(&'a self, sending: &'a Sending, wishes: &'a [HoldWish]) -> Answer<'a, Vec<HoldPlace>> {
        self.meet(self.inner.hold_place(sending, wishes))
    }

    fn hold_settle<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [SettleWish],
    ) -> Answer<'a, Vec<HoldSettle>> {
        self.meet(self.inner.hold_settle(sending, wishes))
    }

    fn grant_revoke<'a>(&'a self, sending: &'a Sending, wishes: &'a [RevokeWish]) -> Answer<'a, Vec<Revoke>> {
        self.meet(self.inner.grant_revoke(sending, wishes))
    }

    fn order_place<'a>(
        &'a self,
        sending: &'a Sending,
        orders: &'a [OrderWish],
    ) -> Answer<'a, Vec<OrderPlace>> {
        self.meet(self.inner.order_place(sending, orders))
    }

    fn share_read<'a>(&'a self, campaign: &'a Campaign, user: &'a Name) -> Answer<'a, Option<UserShare>> {
        self.meet(self.inner.share_read(campaign, user))
    }

    fn hold_read<'a>(&'a self, campaign: &'a Campaign, id: &'a HoldId) -> Answer<'a, Option<HoldStatus>> {
        self.meet(self.inner.hold_read(campaign, id))
    }

    fn order_read<'a>(&'a self, home: &'a Name, id: &'a Name) -> Answer<'a, Option<OrderStatus>> {
        self.meet(self.inner.order_read(home, id))
    }

    fn order_reserve<'a>(
        &'a self,
        sending: &'a Sending,
        part: &'a OrderPart,
        doubt_after: Option<Duration>,
    ) -> Answer<'a, OrderReserve> {
        self.meet(self.inner.order_reserve(sending, part, doubt_after))
    }

    fn order_decide<'a>(
        &'a self,
        sending: &'a Sending,
        id: &'a Name,
        attempt: Token,
        decision: &'a OrderDecision,
    ) -> Answer<'a, OrderVerdict> {
        self.meet(self.inner.order_decide(sending, id, attempt, decision))
    }

    fn order_settle<'a>(
        &'a self,
        sending: &'a Sending,
        part: &'a OrderPart,
        settlement: Settlement,
    ) -> Answer<'a, OrderSettle> {
        self.meet(self.inner.order_settle(sending, part, settlement))
    }

    fn order_doubts(&self, partition: u16, limit: usize) -> Answer<'_, Vec<OrderPart>> {
        self.meet(self.inner.order_doubts(partition, limit))
    }

    fn order_find<'a>(&'a self, id: &'a Name) -> Answer<'a, Option<CommittedOrder>> {
        self.meet(self.inner.order_find(id))
    }

    fn journal_read(
        &self,
        partition: u16,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'_, Vec<JournalEntry>> {
        self.meet(self.inner.journal_read(partition, after, limit))
    }

    fn journal_take<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'a, Vec<JournalTaken>> {
        if self.refuses_to_give.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("broken on purpose".into())) });
        }
        self.meet(self.inner.journal_take(partition, reader, after, limit))
    }

    fn journal_claim<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        idle: Duration,
    ) -> Answer<'a, u64> {
        self.meet(self.inner.journal_claim(partition, reader, idle))
    }

    fn journal_acknowledge<'a>(
        &'a self,
        partition: u16,
        group: &'a Name,
        positions: &'a [JournalPosition],
    ) -> Answer<'a, u64> {
        if self.refuses_acknowledgements.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("broken on purpose".into())) });
        }
        self.meet(self.inner.journal_acknowledge(partition, group, positions))
    }

    fn journal_standing<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, JournalStanding> {
        self.meet(self.inner.journal_standing(partition, group))
    }

    fn journal_dismiss<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, bool> {
        self.meet(self.inner.journal_dismiss(partition, group))
    }

    fn journal_trim(&self, partition: u16, through: JournalPosition) -> Answer<'_, u64> {
        self.meet(self.inner.journal_trim(partition, through))
    }

    fn campaign_forget<'a>(&'a self, campaign: &'a Campaign, rev: u64) -> Answer<'a, CampaignForget> {
        self.meet(self.inner.campaign_forget(campaign, rev))
    }

    fn user_erase<'a>(
        &'a self,
        campaign: &'a Campaign,
        user: &'a Name,
        alias: &'a Name,
        seqs: &'a [u64],
    ) -> Answer<'a, UserErase> {
        self.meet(self.inner.user_erase(campaign, user, alias, seqs))
    }

    fn epoch_read(&self, partition: u16) -> Answer<'_, EpochStatus> {
        self.meet(self.inner.epoch_read(partition))
    }

    fn epoch_settle(&self, partition: u16, if_empty: bool) -> Answer<'_, EpochSettle> {
        self.meet(self.inner.epoch_settle(partition, if_empty))
    }

    fn campaign_reopen<'a>(&'a self, seen: &'a [Seen], decides: bool) -> Answer<'a, Vec<Reopen>> {
        self.meet(self.inner.campaign_reopen(seen, decides))
    }

    fn campaign_rebuild<'a>(&'a self, campaign: &'a Campaign, step: &'a Rebuild) -> Answer<'a, Rebuilt> {
        self.meet(self.inner.campaign_rebuild(campaign, step))
    }

    fn about(&self) -> Answer<'_, About> {
        self.meet(self.inner.about())
    }
}

/// A listener that hears only what is not lost.
struct Muffled {
    listener: Arc<dyn Listener>,
    loses_news: Arc<AtomicBool>,
}

impl Listener for Muffled {
    fn hear(&self, news: News) {
        // That it hears, it is told: this is what makes it believe so.
        if news == News::Listening || !self.loses_news.load(Ordering::SeqCst) {
            self.listener.hear(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::store::memory::MemoryStore;
    use crate::store::{CampaignKind, IfTaken, Lease};

    fn broken(how: Break) -> (BreakableStore, Campaign) {
        let store = BreakableStore::new(Arc::new(MemoryStore::new(Clock::fake())));
        store.break_all(how);
        (store, Campaign::new(CampaignKind::Coupon, Name::new("coupon", "c").unwrap()))
    }

    #[tokio::test]
    async fn a_refused_call_does_not_happen() {
        let (store, coupon) = broken(Break::Refuse);
        let refused = store.campaign_open(&Sending::once(), &coupon, &Terms::new(1).unwrap()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
        store.heal();
        assert_eq!(store.campaign_read(&coupon).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_call_whose_answer_is_lost_has_happened() {
        let (store, coupon) = broken(Break::LoseAnswer);
        let lost = store.campaign_open(&Sending::once(), &coupon, &Terms::new(1).unwrap()).await;
        assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))));
        store.heal();
        assert!(store.campaign_read(&coupon).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_hanging_call_happens_when_the_store_is_healed() {
        let (store, coupon) = broken(Break::Hang);
        let (sending, terms) = (Sending::once(), Terms::new(1).unwrap());
        let mut call = store.campaign_open(&sending, &coupon, &terms);
        tokio::select! {
            biased;
            _ = &mut call => panic!("it did not hang"),
            () = tokio::task::yield_now() => {}
        }
        store.heal();
        assert!(matches!(call.await, Ok(CampaignOpen::Created(_))));
    }

    #[tokio::test]
    async fn only_the_next_call_can_be_broken() {
        let (store, coupon) = broken(Break::Refuse);
        let wishes = [IssueWish { coupon, user: Name::new("user", "u").unwrap(), pass: None }];
        let issue = async || store.coupon_issue(&Sending::once(), &wishes).await;
        store.heal();
        store.break_next(Break::Refuse);
        store.break_next(Break::LoseAnswer);
        assert!(matches!(issue().await, Err(StoreError::Unavailable(_))));
        assert!(matches!(issue().await, Err(StoreError::UnknownOutcome(_))));
        assert_eq!(issue().await.unwrap(), [Issue::Unknown]);
    }

    #[tokio::test]
    async fn the_next_calls_can_be_spared() {
        let (store, coupon) = broken(Break::Refuse);
        store.spare_next(2);
        store.break_next(Break::LoseAnswer);
        let read = async || store.campaign_read(&coupon).await;
        assert!(read().await.is_ok() && read().await.is_ok());
        assert!(matches!(read().await, Err(StoreError::UnknownOutcome(_))));
        assert!(matches!(read().await, Err(StoreError::Unavailable(_))));
    }

    /// Writes down what it hears.
    #[derive(Default)]
    struct Heard(Mutex<Vec<News>>);

    impl Listener for Heard {
        fn hear(&self, news: News) {
            self.0.lock().unwrap().push(news);
        }
    }

    /// Frees a mutex that is watched.
    async fn something_is_told(store: &BreakableStore) {
        let (mutex, holder) = (Name::new("mutex", "m").unwrap(), Token::random());
        let attempt = Attempt::new(holder, Lease::new(Duration::from_secs(1)).unwrap());
        store.mutex_acquire(&mutex, &Attempt { if_taken: IfTaken::Watch, ..attempt }).await.unwrap();
        store.mutex_release(&mutex, &holder).await.unwrap();
    }

    #[tokio::test]
    async fn a_store_that_is_known_to_be_deaf_never_listens() {
        let store = BreakableStore::new(Arc::new(MemoryStore::new(Clock::fake())));
        store.deafen(Deafness::Known);
        let heard = Arc::new(Heard::default());
        let hearing = store.listen(EarId::random(), Arc::clone(&heard) as Arc<dyn Listener>);
        assert!(!hearing.is_listening());
        something_is_told(&store).await;
        assert_eq!(*heard.0.lock().unwrap(), []);
    }

    #[tokio::test]
    async fn a_store_that_loses_news_seems_to_listen() {
        let store = BreakableStore::new(Arc::new(MemoryStore::new(Clock::fake())));
        let heard = Arc::new(Heard::default());
        store.deafen(Deafness::Unknown);
        let hearing = store.listen(EarId::random(), Arc::clone(&heard) as Arc<dyn Listener>);
        assert!(hearing.is_listening());
        something_is_told(&store).await;
        assert_eq!(*heard.0.lock().unwrap(), [News::Listening]);
        store.heal();
        something_is_told(&store).await;
        assert_eq!(heard.0.lock().unwrap().len(), 2, "healed, and still deaf");
    }
}
