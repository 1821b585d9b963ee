//! What the tests of the stock operations have in common: short ways to ask, and the proof that a journal is whole.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use tokio::sync::{Mutex, RwLock};

use super::{Home, fresh, name};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignChanged, CampaignKind, CampaignOpen, CampaignStatus, HoldId, HoldPlace,
    HoldSettle, HoldWish, Issue, IssueWish, JournalChange, JournalEntry, JournalPosition, OrderItem,
    OrderPlace, OrderWish, Purchase, PurchaseWish, Revoke, RevokeWish, Sending, SettleWish, Settlement,
    Terms, Token, UserShare,
};

/// Held for reading by whoever writes into the journal, and for writing by whoever trims it and counts: all tests of one
/// server write into the same few journals.
pub(super) static JOURNAL: RwLock<()> = RwLock::const_new(());

/// How far the journal of each partition was read, and what it said of each campaign: a server's tests write thousands of
/// entries, which need not be read again after every step.
#[derive(Debug, Default)]
pub(super) struct KnownJournal(Mutex<HashMap<u16, ReadThrough>>);

type ReadThrough = (JournalPosition, HashMap<Campaign, Vec<JournalEntry>>);

/// How far ahead a window opens or closes, or a hold ends, that is waited for; long enough that a busy machine is not
/// too late.
pub(super) const MOMENT: Duration = Duration::from_millis(400);
/// A hold that does not end during a test.
pub(super) const LONG_HOLD: Duration = Duration::from_secs(3_600);

impl Home {
    pub(super) async fn open(&self, campaign: &Campaign, terms: Terms) -> CampaignOpen {
        self.store.campaign_open(&Sending::once(), campaign, &terms).await.unwrap()
    }

    /// A new campaign with these terms.
    pub(super) async fn opened(&self, kind: CampaignKind, terms: Terms) -> Campaign {
        let campaign = Campaign::new(kind, fresh(kind.as_str()));
        assert!(matches!(self.open(&campaign, terms).await, CampaignOpen::Created(_)));
        campaign
    }

    /// New campaigns of so many each, which one call can concern.
    pub(super) async fn opened_together<const N: usize>(
        &self,
        kind: CampaignKind,
        quantities: [u64; N],
    ) -> [Campaign; N] {
        let group = fresh("group");
        let campaigns = std::array::from_fn(|place| in_group(kind, &group, &format!("item-{place}")));
        for (campaign, quantity) in campaigns.iter().zip(quantities) {
            assert!(matches!(self.open(campaign, terms(quantity)).await, CampaignOpen::Created(_)));
        }
        campaigns
    }

    pub(super) async fn change(&self, campaign: &Campaign, change: CampaignChange) -> CampaignChanged {
        self.store.campaign_change(&Sending::once(), campaign, change).await.unwrap()
    }

    pub(super) async fn status(&self, campaign: &Campaign) -> CampaignStatus {
        self.store.campaign_read(campaign).await.unwrap().unwrap()
    }

    pub(super) async fn share(&self, campaign: &Campaign, user: &str) -> UserShare {
        self.store.share_read(campaign, &name(user)).await.unwrap().unwrap()
    }

    pub(super) async fn issue(&self, coupon: &Campaign, users: &[&str]) -> Vec<Issue> {
        self.store.coupon_issue(&Sending::once(), &issue_wishes(coupon, users)).await.unwrap()
    }

    pub(super) async fn buy(&self, deal: &Campaign, user: &str, quantity: u64) -> Purchase {
        self.purchase(purchase(deal, user, quantity, None)).await
    }

    /// Buys under a request id of the client.
    pub(super) async fn buy_as(&self, request: &str, deal: &Campaign, user: &str, quantity: u64) -> Purchase {
        self.purchase(purchase(deal, user, quantity, Some(request))).await
    }

    async fn purchase(&self, wish: PurchaseWish) -> Purchase {
        self.store.deal_purchase(&Sending::once(), &[wish]).await.unwrap()[0]
    }

    pub(super) async fn hold(
        &self,
        campaign: &Campaign,
        id: HoldId,
        user: &str,
        quantity: u64,
        ttl: Duration,
    ) -> HoldPlace {
        let wish = hold(campaign, id, user, quantity, ttl);
        self.store.hold_place(&Sending::once(), &[wish]).await.unwrap()[0]
    }

    /// Puts something aside for longer than the test takes.
    pub(super) async fn held(&self, campaign: &Campaign, user: &str, quantity: u64) -> HoldId {
        let id = HoldId::random();
        let answer = self.hold(campaign, id, user, quantity, LONG_HOLD).await;
        assert!(matches!(answer, HoldPlace::Held { .. }), "{answer:?}");
        id
    }

    pub(super) async fn settle(
        &self,
        campaign: &Campaign,
        id: HoldId,
        user: &str,
        settlement: Settlement,
    ) -> HoldSettle {
        let wish = settlement_of(campaign, id, user, settlement);
        self.store.hold_settle(&Sending::once(), &[wish]).await.unwrap()[0]
    }

    pub(super) async fn revoke(&self, campaign: &Campaign, user: &str, seq: u64) -> Revoke {
        let wish = RevokeWish { campaign: campaign.clone(), user: name(user), seq };
        self.store.grant_revoke(&Sending::once(), &[wish]).await.unwrap()[0]
    }

    pub(super) async fn order(&self, id: &Name, user: &str, items: &[(&Campaign, u64)]) -> OrderPlace {
        let orders = [order(id, user, items)];
        self.store.order_place(&Sending::once(), &orders).await.unwrap().remove(0)
    }

    /// Returns when the store's wall clock shows that time. A few milliseconds more, because it is waited for by another
    /// clock, which may be a little faster.
    pub(super) async fn wait_until(&self, time: Timestamp) {
        self.let_pass(time.since(self.clock.wall()) + Duration::from_millis(5)).await;
    }

    pub(super) fn in_a_moment(&self) -> Timestamp {
        // Whole milliseconds, and a little later: what matters is that it lies ahead.
        Timestamp::from_millis((self.clock.wall() + MOMENT).as_millis() + 1)
    }

    /// What the journal says of a campaign. Only what has come since the last look is read.
    pub(super) async fn journal_of(&self, campaign: &Campaign) -> Vec<JournalEntry> {
        let partition = self.store.partition_of(campaign.home());
        let mut known = self.journal.0.lock().await;
        let (read_through, entries) = known.entry(partition).or_default();
        for entry in self.journal_after(partition, *read_through).await {
            *read_through = entry.position;
            entries.entry(entry.campaign.clone()).or_default().push(entry);
        }
        entries.get(campaign).cloned().unwrap_or_default()
    }

    /// All of a partition's journal from after a position on, read in pieces.
    pub(super) async fn journal_after(&self, partition: u16, after: JournalPosition) -> Vec<JournalEntry> {
        let (mut entries, mut after) = (Vec::new(), after);
        loop {
            let piece = self.store.journal_read(partition, after, 500).await.unwrap();
            let (Some(first), Some(last)) = (piece.first(), piece.last()) else { return entries };
            assert!(first.position > after, "{:?} does not come after {after}", first.position);
            after = last.position;
            entries.extend(piece);
        }
    }

    /// Proves that every change of the campaign stands in the journal once and in its order, and that together they
    /// make what the campaign has counted. Returns them.
    pub(super) async fn journal_is_whole(&self, campaign: &Campaign) -> Vec<JournalChange> {
        let (status, entries) = (self.status(campaign).await, self.journal_of(campaign).await);
        assert!(entries.is_sorted_by(|one, next| one.position < next.position), "{entries:?}");
        assert!(entries.is_sorted_by_key(|entry| entry.at), "time went back: {entries:?}");
        let mut rev = 0;
        for entry in &entries {
            assert_eq!(entry.rev, rev + 1, "a gap or a repeat: {entries:?}");
            rev = entry.last_rev();
        }
        let changes: Vec<_> = entries.into_iter().map(|entry| entry.change).collect();
        let told = changes.iter().fold(Told::default(), Told::and_then);
        let Told { quantity, granted, held, seq } = told;
        let is = (status.rev, status.quantity, status.granted, status.held, status.seq);
        assert_eq!((rev, quantity, granted, held, seq), is, "the journal tells another story: {changes:?}");
        changes
    }

    /// Sends a batch, and the same again: it must be answered the same, and done once. An earlier number must be refused
    /// and change nothing; a later one must run and change something.
    pub(super) async fn is_done_once<T: PartialEq + Debug>(
        &self,
        campaign: &Campaign,
        first: impl AsyncFn(&Sending) -> Result<T, StoreError>,
        later: impl AsyncFn(&Sending) -> Result<T, StoreError>,
    ) {
        let process = Token::random();
        let sent = |number| Sending { process, slot: 3, number };
        let before = self.status(campaign).await;
        let answer = first(&sent(2)).await.unwrap();
        let done = self.status(campaign).await;
        assert!(done.rev > before.rev, "it has changed nothing: {answer:?}");
        assert_eq!(first(&sent(2)).await.unwrap(), answer, "answered in another way");
        assert_eq!(self.status(campaign).await, done, "done twice");
        let late = later(&sent(1)).await;
        assert!(matches!(late, Err(StoreError::Refused(_))), "{late:?}");
        assert_eq!(self.status(campaign).await, done, "a late copy was done");
        assert_eq!(first(&sent(2)).await.unwrap(), answer, "a late copy made the store forget");

        later(&sent(3)).await.unwrap();
        let later = self.status(campaign).await;
        assert!(later.rev > done.rev, "a later batch was not done");
        let late = first(&sent(2)).await;
        assert!(matches!(late, Err(StoreError::Refused(_))), "{late:?}");
        assert_eq!(self.status(campaign).await, later);
        self.journal_is_whole(campaign).await;
    }
}

/// What a journal tells of a campaign's numbers.
#[derive(Default)]
struct Told {
    quantity: u64,
    granted: u64,
    held: u64,
    seq: u64,
}

impl Told {
    fn and_then(self, change: &JournalChange) -> Self {
        let Self { quantity, granted, held, seq } = self;
        let taken = |new: u64, by: u64| {
            assert!(new > seq, "number {new} after {seq}");
            Self { granted: granted + by, seq: new, ..self }
        };
        match change {
            JournalChange::Opened { terms } => Self { quantity: terms.quantity, ..self },
            JournalChange::Changed { change: CampaignChange::Restock { by } } => {
                Self { quantity: quantity + by, ..self }
            }
            JournalChange::Changed { .. } => self,
            JournalChange::Issued { seq: first, users, .. } => {
                assert_eq!(*first, seq + 1, "numbers were left out");
                let count = users.len() as u64;
                taken(seq + count, count)
            }
            JournalChange::Bought { seq, quantity, .. } => taken(*seq, *quantity),
            JournalChange::Held { quantity, .. } => Self { held: held + quantity, ..self },
            JournalChange::Confirmed { seq, quantity, .. } => {
                Self { held: held - quantity, ..taken(*seq, *quantity) }
            }
            JournalChange::Cancelled { quantity, .. } | JournalChange::Expired { quantity, .. } => {
                Self { held: held - quantity, ..self }
            }
            JournalChange::Revoked { quantity, .. } => Self { granted: granted - quantity, ..self },
            JournalChange::Lost { count } => Self { seq: seq + count, ..self },
        }
    }
}

pub(super) fn terms(quantity: u64) -> Terms {
    Terms::new(quantity).unwrap()
}

pub(super) fn limited(quantity: u64, per_user: u64) -> Terms {
    terms(quantity).per_user(per_user).unwrap()
}

pub(super) fn in_group(kind: CampaignKind, group: &Name, text: &str) -> Campaign {
    Campaign { group: Some(group.clone()), ..Campaign::new(kind, name(text)) }
}

pub(super) fn unopened(kind: CampaignKind) -> Campaign {
    Campaign::new(kind, fresh(kind.as_str()))
}

pub(super) fn issue_wishes(coupon: &Campaign, users: &[&str]) -> Vec<IssueWish> {
    users.iter().map(|user| IssueWish { coupon: coupon.clone(), user: name(user), pass: None }).collect()
}

pub(super) fn purchase(deal: &Campaign, user: &str, quantity: u64, request: Option<&str>) -> PurchaseWish {
    PurchaseWish { deal: deal.clone(), user: name(user), quantity, request: request.map(name), pass: None }
}

pub(super) fn hold(campaign: &Campaign, id: HoldId, user: &str, quantity: u64, ttl: Duration) -> HoldWish {
    HoldWish { campaign: campaign.clone(), id, user: name(user), quantity, ttl, pass: None }
}

pub(super) fn settlement_of(
    campaign: &Campaign,
    id: HoldId,
    user: &str,
    settlement: Settlement,
) -> SettleWish {
    SettleWish { campaign: campaign.clone(), id, user: name(user), settlement }
}

pub(super) fn order(id: &Name, user: &str, items: &[(&Campaign, u64)]) -> OrderWish {
    let item = |(sku, quantity): &(&Campaign, u64)| OrderItem { sku: (*sku).clone(), quantity: *quantity };
    OrderWish::new(id.clone(), name(user), items.iter().map(item).collect()).unwrap()
}

#[track_caller]
pub(super) fn is_refused<T: Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::InvalidInput(_))), "{answer:?}");
}
