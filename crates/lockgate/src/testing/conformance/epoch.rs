//! What the operations must do by which campaigns are trusted again, as far as it concerns a store that has not changed; what
//! they do when it has is shown with servers that really change (`tests/it/epoch.rs`).
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use super::stock::{JOURNAL, LONG_HOLD, limited, terms, unopened};
use super::{Home, name, pass};
use crate::clock::Timestamp;
use crate::store::{
    Campaign, CampaignChange, CampaignKind, EpochSettle, HoldId, Issue, JournalChange, JournalEntry,
    JournalPosition, MAX_BATCH, Purchase, Rebuild, Rebuilt, Reopen, Seen, Settlement,
};

fn seen(campaign: &Campaign, rev: u64) -> Seen {
    Seen { campaign: campaign.clone(), rev }
}

/// [`Store::epoch_read`](crate::store::Store::epoch_read)
pub async fn epoch_read(home: &Home) {
    for partition in 0..home.store.partitions() {
        assert!(home.store.epoch_read(partition).await.unwrap().is_settled);
    }
    // What somebody has seen and the store has not is missing, until it is built anew.
    let lost = unopened(CampaignKind::Coupon);
    let partition = home.store.partition_of(lost.home());
    let answer = home.store.campaign_reopen(&[seen(&lost, 7)], true).await.unwrap();
    assert_eq!(answer, [Reopen::Missing { rev: 0, known: 7 }]);
    let status = home.store.epoch_read(partition).await.unwrap();
    let is_noted = status.missing.iter().any(|(missing, known)| *missing == lost && *known == 7);
    assert!(status.is_settled && is_noted == home.forgets(), "{status:?}");
}

/// [`Store::epoch_settle`](crate::store::Store::epoch_settle)
pub async fn epoch_settle(home: &Home) {
    let campaign = home.opened(CampaignKind::Coupon, terms(1)).await;
    let partition = home.store.partition_of(campaign.home());
    for if_empty in [true, false] {
        let settled = home.store.epoch_settle(partition, if_empty).await.unwrap();
        assert_eq!(settled, EpochSettle::Settled, "it was settled before");
    }
}

/// [`Store::campaign_reopen`](crate::store::Store::campaign_reopen)
pub async fn campaign_reopen(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(5)).await;
    home.issue(&coupon, &["a", "b"]).await;
    for decides in [true, false] {
        let open = home.store.campaign_reopen(&[seen(&coupon, 1)], decides).await.unwrap();
        assert_eq!(open, [Reopen::Open { rev: 3 }], "it was never closed");
    }
    let nobody = unopened(CampaignKind::Coupon);
    assert_eq!(home.store.campaign_reopen(&[seen(&nobody, 0)], true).await.unwrap(), [Reopen::Unknown]);
    assert_eq!(home.store.campaign_reopen(&[], true).await.unwrap(), []);
    let too_many = vec![seen(&coupon, 1); MAX_BATCH + 1];
    assert!(home.store.campaign_reopen(&too_many, true).await.is_err());
    assert_eq!(home.issue(&coupon, &["c"]).await, [Issue::Issued { seq: 3, remaining: 2 }]);
}

/// [`Store::campaign_rebuild`](crate::store::Store::campaign_rebuild)
pub async fn campaign_rebuild(home: &Home) {
    let _kept = JOURNAL.read().await;
    what_is_trusted_is_left_alone(home).await;
    a_coupon_is_what_it_was(home).await;
    a_deal_is_what_it_was(home).await;
    a_used_pass_is_still_used(home).await;
    what_is_lost_is_counted(home).await;
    what_does_not_follow_is_refused(home).await;
}

async fn rebuild(home: &Home, campaign: &Campaign, step: Rebuild) -> Rebuilt {
    home.store.campaign_rebuild(campaign, &step).await.unwrap()
}

/// The life of one campaign told again as that of another, in small pieces, each of them twice.
async fn rebuilt_from(home: &Home, life: &[JournalEntry], lost: u64) -> Campaign {
    let campaign = unopened(life[0].campaign.kind);
    rebuild(home, &campaign, Rebuild::Begin).await;
    let mut after = 0;
    for piece in life.chunks(3) {
        let entries: Vec<_> = piece.iter().map(|entry| told_of(&campaign, entry)).collect();
        let last = entries.last().unwrap().last_rev();
        for _ in 0..2 {
            let step = Rebuild::Apply { after, entries: entries.clone() };
            assert_eq!(rebuild(home, &campaign, step).await, Rebuilt::Done { rev: last });
        }
        after = last;
    }
    assert_eq!(rebuild(home, &campaign, Rebuild::Finish { lost }).await, Rebuilt::Done { rev: after + lost });
    let again = rebuild(home, &campaign, Rebuild::Finish { lost }).await;
    assert_eq!(again, Rebuilt::Open { rev: after + lost }, "a second time changes nothing");
    campaign
}

fn told_of(campaign: &Campaign, entry: &JournalEntry) -> JournalEntry {
    JournalEntry { campaign: campaign.clone(), position: JournalPosition::START, ..entry.clone() }
}

async fn what_is_trusted_is_left_alone(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(5)).await;
    home.issue(&coupon, &["a"]).await;
    for step in [Rebuild::Begin, Rebuild::Apply { after: 0, entries: vec![] }, Rebuild::Finish { lost: 9 }] {
        assert_eq!(rebuild(home, &coupon, step).await, Rebuilt::Open { rev: 2 });
    }
    assert_eq!(home.issue(&coupon, &["a", "b"]).await[0], Issue::AlreadyIssued { seq: 1 });
    assert_eq!(home.status(&coupon).await.rev, 3);
}

async fn a_coupon_is_what_it_was(home: &Home) {
    let before = home.opened(CampaignKind::Coupon, terms(10)).await;
    home.issue(&before, &["a", "b\0 {c}", "c"]).await;
    let (kept, left) = (HoldId::random(), HoldId::random());
    home.hold(&before, kept, "d", 1, LONG_HOLD).await;
    home.hold(&before, left, "e", 1, LONG_HOLD).await;
    home.settle(&before, left, "e", Settlement::Confirm).await;
    home.revoke(&before, "a", 1).await;
    home.change(&before, CampaignChange::Restock { by: 5 }).await;

    let after = rebuilt_from(home, &home.journal_of(&before).await, 0).await;
    assert_eq!(home.status(&after).await, home.status(&before).await);
    for user in ["a", "b\0 {c}", "c", "d", "e", "f"] {
        assert_eq!(home.share(&after, user).await, home.share(&before, user).await, "{user}");
    }
    for hold in [kept, left] {
        let [was, is] = [&before, &after].map(async |campaign| home.store.hold_read(campaign, &hold).await);
        assert_eq!(is.await.unwrap(), was.await.unwrap());
    }
    assert_eq!(
        home.settle(&after, kept, "d", Settlement::Confirm).await,
        home.settle(&before, kept, "d", Settlement::Confirm).await
    );
    assert_eq!(home.issue(&after, &["a", "e"]).await, home.issue(&before, &["a", "e"]).await);
}

async fn a_deal_is_what_it_was(home: &Home) {
    let before = home.opened(CampaignKind::Deal, limited(20, 5)).await;
    home.buy(&before, "a", 3).await;
    home.buy_as("request", &before, "b", 2).await;
    home.buy(&before, "c", 4).await;
    let (open, expired) = (HoldId::random(), HoldId::random());
    home.hold(&before, open, "c", 1, LONG_HOLD).await;
    home.hold(&before, expired, "a", 1, LONG_HOLD).await;
    home.settle(&before, expired, "a", Settlement::Cancel).await;
    home.revoke(&before, "a", 1).await;
    home.change(&before, CampaignChange::Pause).await;
    home.change(&before, CampaignChange::Resume).await;

    let after = rebuilt_from(home, &home.journal_of(&before).await, 0).await;
    assert_eq!(home.status(&after).await, home.status(&before).await);
    for user in ["a", "b", "c"] {
        assert_eq!(home.share(&after, user).await, home.share(&before, user).await, "{user}");
    }
    // What a client has asked for once is answered again, and the limits hold.
    let replayed = home.buy_as("request", &after, "b", 2).await;
    assert!(matches!(replayed, Purchase::AlreadyBought { seq: 2, .. }), "{replayed:?}");
    assert_eq!(home.buy(&after, "c", 1).await, Purchase::LimitExceeded { taken: 5, per_user: 5 });
    assert_eq!(home.revoke(&after, "c", 3).await, home.revoke(&before, "c", 3).await);
}

async fn a_used_pass_is_still_used(home: &Home) {
    for kind in [CampaignKind::Coupon, CampaignKind::Deal] {
        let (life, passes, line) = pass::used_passes(home, kind).await;
        let after = rebuilt_from(home, &life, 0).await;
        pass::the_passes_are_used(home, &after, &passes, &line).await;
    }
}

async fn what_is_lost_is_counted(home: &Home) {
    let before = home.opened(CampaignKind::Coupon, terms(10)).await;
    home.issue(&before, &["a", "b"]).await;
    let after = rebuilt_from(home, &home.journal_of(&before).await, 4).await;
    let status = home.status(&after).await;
    assert_eq!(
        (status.rev, status.seq, status.granted),
        (7, 6, 2),
        "numbers that may have been told are not used again"
    );
    assert_eq!(home.issue(&after, &["c"]).await, [Issue::Issued { seq: 7, remaining: 7 }]);
    let told = home.journal_of(&after).await;
    let lost = told.iter().find(|entry| entry.change == JournalChange::Lost { count: 4 }).unwrap();
    assert_eq!((lost.rev, lost.last_rev()), (4, 7));
    let listed =
        home.store.campaign_list(home.store.partition_of(after.home()), None, usize::MAX).await.unwrap();
    assert!(listed.contains(&after));
}

async fn what_does_not_follow_is_refused(home: &Home) {
    let campaign = unopened(CampaignKind::Coupon);
    let at = Timestamp::from_millis(1);
    let opened = JournalChange::Opened { terms: terms(3) };
    let entry = |rev| JournalEntry {
        position: JournalPosition::START,
        campaign: campaign.clone(),
        rev,
        at,
        change: opened.clone(),
    };
    let hole = Rebuild::Apply { after: 0, entries: vec![entry(1), entry(3)] };
    assert!(home.store.campaign_rebuild(&campaign, &hole).await.is_err());
    let users = (0..600).map(|user| name(&user.to_string())).collect();
    let many = JournalChange::Issued { seq: 1, users, passes: Vec::new() };
    let twice = [entry(2), entry(602)].map(|entry| JournalEntry { change: many.clone(), ..entry });
    let too_many = Rebuild::Apply { after: 1, entries: twice.to_vec() };
    assert!(home.store.campaign_rebuild(&campaign, &too_many).await.is_err());
}
