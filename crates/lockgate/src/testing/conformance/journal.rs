//! What the operations on the journal must do. That every other operation writes down what it does is shown beside it.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::stock::{JOURNAL, LONG_HOLD, MOMENT, limited, terms};
use super::{Home, fresh, name};
use crate::clock::Timestamp;
use crate::store::{
    CampaignChange, CampaignKind, HoldId, HoldPlace, JournalChange, JournalPosition, Settlement,
};

/// [`Store::journal_read`](crate::store::Store::journal_read)
pub async fn journal_read(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_life_is_told_from_its_beginning_to_its_end(home).await;
    it_is_read_piece_by_piece(home).await;
    the_changes_of_one_step_stand_in_their_order(home).await;
}

async fn a_life_is_told_from_its_beginning_to_its_end(home: &Home) {
    let before = home.clock.wall();
    let deal = home.opened(CampaignKind::Deal, limited(10, 5)).await;
    let (kept, left, forgotten) = (HoldId::random(), HoldId::random(), HoldId::random());
    home.buy(&deal, "a", 2).await;
    home.buy_as("r", &deal, "b", 1).await;
    let mut ends = Vec::new();
    for (id, ttl) in [(kept, LONG_HOLD), (left, LONG_HOLD), (forgotten, MOMENT)] {
        let answer = home.hold(&deal, id, "c", 1, ttl).await;
        let HoldPlace::Held { expires_at, .. } = answer else { unreachable!("{answer:?}") };
        ends.push(expires_at);
    }
    home.settle(&deal, kept, "c", Settlement::Confirm).await;
    home.settle(&deal, left, "c", Settlement::Cancel).await;
    home.wait_until(ends[2]).await;
    home.revoke(&deal, "a", 1).await;
    for change in [
        CampaignChange::Pause,
        CampaignChange::Resume,
        CampaignChange::Restock { by: 7 },
        CampaignChange::Close,
    ] {
        home.change(&deal, change).await;
    }
    home.open(&deal, terms(30)).await;

    let held = |id, end: usize| JournalChange::Held {
        id,
        user: name("c"),
        quantity: 1,
        expires_at: ends[end],
        pass: None,
    };
    let changed = |change| JournalChange::Changed { change };
    let expected = [
        JournalChange::Opened { terms: limited(10, 5) },
        JournalChange::Bought { seq: 1, user: name("a"), quantity: 2, request: None, pass: None },
        JournalChange::Bought { seq: 2, user: name("b"), quantity: 1, request: Some(name("r")), pass: None },
        held(kept, 0),
        held(left, 1),
        held(forgotten, 2),
        JournalChange::Confirmed { id: kept, seq: 3, user: name("c"), quantity: 1 },
        JournalChange::Cancelled { id: left, user: name("c"), quantity: 1 },
        JournalChange::Expired { id: forgotten, user: name("c"), quantity: 1 },
        JournalChange::Revoked { seq: 1, user: name("a"), quantity: 2 },
        changed(CampaignChange::Pause),
        changed(CampaignChange::Resume),
        changed(CampaignChange::Restock { by: 7 }),
        changed(CampaignChange::Close),
        JournalChange::Opened { terms: terms(30) },
    ];
    assert_eq!(home.journal_is_whole(&deal).await, expected);
    let entries = home.journal_of(&deal).await;
    let now = home.clock.wall();
    let (before, given_back) = (whole_millis(before), whole_millis(ends[2]));
    assert!(entries.iter().all(|entry| entry.at >= before && entry.at <= now), "{entries:?}");
    assert!(entries.iter().all(|entry| entry.last_rev() == entry.rev));
    assert!(entries[8].at >= given_back, "it was given back too early");
}

/// A journal may know its times in milliseconds only.
fn whole_millis(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.as_millis())
}

async fn it_is_read_piece_by_piece(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(100)).await;
    for user in 0..20 {
        home.issue(&coupon, &[&format!("user-{user}")]).await;
    }
    let partition = home.store.partition_of(coupon.home());
    let ours = home.journal_of(&coupon).await;
    assert_eq!(ours.len(), 21);
    let after = ours[4].position;
    // Others write too: what was there is still the same, and ours are among it in their order.
    for limit in [1, 3, 10_000] {
        let piece = home.store.journal_read(partition, after, limit).await.unwrap();
        assert!(piece.len() <= limit && piece[0].position > after);
        assert!(piece.is_sorted_by(|one, next| one.position < next.position));
        let mut found = piece.iter().filter(|entry| entry.campaign == coupon);
        assert!(ours[5..].iter().zip(&mut found).all(|(expected, entry)| expected == entry));
    }
    let all = home.store.journal_read(partition, after, usize::MAX).await.unwrap();
    assert_eq!(all.iter().filter(|entry| entry.campaign == coupon).count(), 16);
    assert_eq!(home.store.journal_read(partition, after, 0).await.unwrap(), []);
    for entry in ours {
        let written = entry.position.to_string();
        assert_eq!(JournalPosition::parse(&written), Some(entry.position));
    }
}

async fn the_changes_of_one_step_stand_in_their_order(home: &Home) {
    let [one, two] = home.opened_together(CampaignKind::Sku, [5, 5]).await;
    home.order(&fresh("order"), "a", &[(&one, 1), (&two, 1)]).await;
    let [first, second] = [&one, &two].map(async |sku| home.journal_of(sku).await[1].clone());
    let (first, second) = (first.await, second.await);
    assert!(first.position < second.position, "{first:?} {second:?}");
    // Redis stamps each entry by itself, so a step may stand in two milliseconds; never in more than it took.
    assert!(first.at <= second.at && second.at < first.at + Duration::from_secs(1), "{first:?} {second:?}");
}

/// [`Store::journal_trim`](crate::store::Store::journal_trim)
pub async fn journal_trim(home: &Home) {
    let _alone = JOURNAL.write().await;
    let coupon = home.opened(CampaignKind::Coupon, terms(100)).await;
    for user in 0..5 {
        home.issue(&coupon, &[&format!("user-{user}")]).await;
    }
    let partition = home.store.partition_of(coupon.home());
    assert_eq!(home.store.journal_trim(partition, JournalPosition::START).await.unwrap(), 0);

    let all = home.journal_after(partition, JournalPosition::START).await;
    let still_there = async || {
        let mut entries = home.journal_after(partition, JournalPosition::START).await;
        entries.retain(|entry| entry.campaign == coupon);
        entries
    };
    let ours = still_there().await;
    let through = ours[3].position;
    let expected = all.iter().filter(|entry| entry.position <= through).count() as u64;
    assert_eq!(home.store.journal_trim(partition, through).await.unwrap(), expected);
    assert_eq!(home.store.journal_trim(partition, through).await.unwrap(), 0, "trimmed twice");
    assert_eq!(still_there().await, ours[4..]);
    let from_before = home.store.journal_read(partition, ours[0].position, 1).await.unwrap();
    assert_eq!(from_before, ours[4..5], "a reader that stayed behind goes on with what is left");

    // The campaign itself has forgotten nothing, and goes on counting.
    let rev = home.status(&coupon).await.rev;
    home.issue(&coupon, &["late"]).await;
    let last = still_there().await.pop().unwrap();
    assert_eq!((last.rev, home.status(&coupon).await.granted), (rev + 1, 6));
    assert_eq!(home.store.journal_trim(partition, last.position).await.unwrap(), 3);
    assert_eq!(home.journal_after(partition, JournalPosition::START).await, []);
    home.issue(&coupon, &["later"]).await;
    let next = still_there().await;
    assert!(next.len() == 1 && next[0].position > last.position, "{next:?}");
    assert_eq!(
        next[0].change,
        JournalChange::Issued { seq: 7, users: vec![name("later")], passes: Vec::new() }
    );
}
