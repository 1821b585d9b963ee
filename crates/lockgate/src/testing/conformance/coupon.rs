//! What the coupon operation must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::collections::BTreeSet;

use super::stock::{JOURNAL, is_refused, issue_wishes, limited, terms, unopened};
use super::{Home, name, nasty_names, pass};
use crate::store::{
    Campaign, CampaignChange, CampaignKind, Issue, IssueWish, JournalChange, MAX_BATCH, Sending, Settlement,
};

/// [`Store::coupon_issue`](crate::store::Store::coupon_issue)
pub async fn coupon_issue(home: &Home) {
    let _kept = JOURNAL.read().await;
    everybody_gets_one_in_order_until_none_is_left(home).await;
    nobody_gets_two(home).await;
    it_is_one_per_user_whatever_the_terms_say(home).await;
    an_unknown_coupon_is_unknown_to_everybody(home).await;
    the_window_is_kept_by_the_stores_clock(home).await;
    who_has_one_is_told_so_whatever_the_state(home).await;
    who_holds_one_is_told_which_hold(home).await;
    one_batch_may_concern_several_coupons(home).await;
    a_user_may_be_called_anything(home).await;
    a_large_batch_is_issued_whole_and_a_larger_one_refused_whole(home).await;
    a_crowd_gets_exactly_what_there_is(home).await;
    each_issue_is_one_change_of_the_journal(home).await;
    a_batch_that_is_sent_again_is_issued_once(home).await;
    what_has_no_wishes_is_no_batch(home).await;
    only_coupons_are_issued(home).await;
    pass::a_pass_is_demanded(home, pass::Way::Issue).await;
    pass::passes_go_with_their_wishes(home).await;
    pass::who_has_a_coupon_needs_no_pass_to_hear_it(home).await;
    pass::a_batch_with_passes_is_done_once(home).await;
}

/// The largest number of a batch.
const MAX_NUMBER: u64 = (1 << 53) - 1;

const fn issued(seq: u64, remaining: u64) -> Issue {
    Issue::Issued { seq, remaining }
}

const fn already(seq: u64) -> Issue {
    Issue::AlreadyIssued { seq }
}

async fn coupon(home: &Home, quantity: u64) -> Campaign {
    home.opened(CampaignKind::Coupon, terms(quantity)).await
}

async fn everybody_gets_one_in_order_until_none_is_left(home: &Home) {
    let three = coupon(home, 3).await;
    assert_eq!(home.issue(&three, &[]).await, []);
    assert_eq!(home.issue(&three, &["a", "b"]).await, [issued(1, 2), issued(2, 1)]);
    assert_eq!(home.issue(&three, &["c", "d", "e"]).await, [issued(3, 0), Issue::SoldOut, Issue::SoldOut]);
    assert_eq!(home.issue(&three, &["d"]).await, [Issue::SoldOut]);
    let status = home.status(&three).await;
    assert_eq!((status.granted, status.seq, status.rev), (3, 3, 4));
    assert_eq!(home.issue(&coupon(home, 0).await, &["a"]).await, [Issue::SoldOut]);
    home.journal_is_whole(&three).await;

    let exactly = coupon(home, 2).await;
    assert_eq!(home.issue(&exactly, &["a", "b"]).await, [issued(1, 1), issued(2, 0)]);
    home.journal_is_whole(&exactly).await;
}

async fn nobody_gets_two(home: &Home) {
    let three = coupon(home, 3).await;
    assert_eq!(
        home.issue(&three, &["a", "a", "b", "a"]).await,
        [issued(1, 2), already(1), issued(2, 1), already(1)]
    );
    assert_eq!(
        home.issue(&three, &["b", "c", "d", "a", "c"]).await,
        [already(2), issued(3, 0), Issue::SoldOut, already(1), already(3)]
    );
    assert_eq!(home.status(&three).await.granted, 3);
    home.journal_is_whole(&three).await;
}

async fn it_is_one_per_user_whatever_the_terms_say(home: &Home) {
    let generous = home.opened(CampaignKind::Coupon, limited(9, 5)).await;
    assert_eq!(home.issue(&generous, &["a", "a"]).await, [issued(1, 8), already(1)]);
}

async fn an_unknown_coupon_is_unknown_to_everybody(home: &Home) {
    let coupon = unopened(CampaignKind::Coupon);
    assert_eq!(home.issue(&coupon, &["a", "b"]).await, [Issue::Unknown, Issue::Unknown]);
    assert_eq!(home.store.campaign_read(&coupon).await.unwrap(), None, "asking created it");
    assert_eq!(home.journal_of(&coupon).await, []);
}

async fn the_window_is_kept_by_the_stores_clock(home: &Home) {
    let (coupon, opens_at) = (unopened(CampaignKind::Coupon), home.in_a_moment());
    home.open(&coupon, terms(9).between(Some(opens_at), None).unwrap()).await;
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::NotOpen { opens_at }]);
    home.wait_until(opens_at).await;
    assert_eq!(home.issue(&coupon, &["a"]).await, [issued(1, 8)]);

    let closes_at = home.in_a_moment();
    home.open(&coupon, terms(9).between(None, Some(closes_at)).unwrap()).await;
    assert_eq!(home.issue(&coupon, &["b"]).await, [issued(2, 7)]);
    home.wait_until(closes_at).await;
    assert_eq!(home.issue(&coupon, &["c", "a"]).await, [Issue::Closed, already(1)]);
    assert_eq!(home.issue(&coupon, &["c"]).await, [Issue::Closed]);
}

async fn who_has_one_is_told_so_whatever_the_state(home: &Home) {
    let coupon = coupon(home, 2).await;
    home.issue(&coupon, &["a"]).await;
    let id = home.held(&coupon, "b", 1).await;
    let held = Issue::Held { hold: id };
    let opens_at = home.in_a_moment() + std::time::Duration::from_secs(60);
    let who = ["a", "b", "c"];
    assert_eq!(home.issue(&coupon, &who).await, [already(1), held, Issue::SoldOut]);
    home.open(&coupon, terms(9).between(Some(opens_at), None).unwrap()).await;
    assert_eq!(home.issue(&coupon, &who).await, [already(1), held, Issue::NotOpen { opens_at }]);
    home.change(&coupon, CampaignChange::Pause).await;
    assert_eq!(home.issue(&coupon, &who).await, [already(1), held, Issue::Paused]);
    home.change(&coupon, CampaignChange::Close).await;
    assert_eq!(home.issue(&coupon, &who).await, [already(1), held, Issue::Closed]);
    home.journal_is_whole(&coupon).await;
}

async fn who_holds_one_is_told_which_hold(home: &Home) {
    let coupon = coupon(home, 3).await;
    let id = home.held(&coupon, "a", 1).await;
    let held = Issue::Held { hold: id };
    assert_eq!(home.issue(&coupon, &["a", "b", "a", "c"]).await, [held, issued(1, 1), held, issued(2, 0)]);
    home.settle(&coupon, id, "a", Settlement::Cancel).await;
    assert_eq!(home.issue(&coupon, &["a", "d"]).await, [issued(3, 0), Issue::SoldOut]);
    home.journal_is_whole(&coupon).await;
}

async fn one_batch_may_concern_several_coupons(home: &Home) {
    let [three, none, one] = home.opened_together(CampaignKind::Coupon, [3, 0, 1]).await;
    let unknown = Campaign { name: name("nobody opened this"), ..three.clone() };
    let wishes: Vec<_> = [
        (&one, "a"),
        (&three, "a"),
        (&unknown, "a"),
        (&three, "b"),
        (&none, "a"),
        (&one, "b"),
        (&three, "a"),
        (&three, "c"),
        (&one, "a"),
    ]
    .into_iter()
    .map(|(coupon, user)| IssueWish { coupon: coupon.clone(), user: name(user), pass: None })
    .collect();
    assert_eq!(
        home.store.coupon_issue(&Sending::once(), &wishes).await.unwrap(),
        [
            issued(1, 0),
            issued(1, 2),
            Issue::Unknown,
            issued(2, 1),
            Issue::SoldOut,
            Issue::SoldOut,
            already(1),
            issued(3, 0),
            already(1),
        ]
    );
    for coupon in [three, none, one] {
        home.journal_is_whole(&coupon).await;
    }
}

async fn a_user_may_be_called_anything(home: &Home) {
    let users = nasty_names(&name("u"));
    let coupon = coupon(home, users.len() as u64 + 1).await;
    let wish = |user: &_| IssueWish { coupon: coupon.clone(), user: Clone::clone(user), pass: None };
    let wishes: Vec<_> = users.iter().map(wish).collect();
    let answers = home.store.coupon_issue(&Sending::once(), &wishes).await.unwrap();
    let seqs: Vec<_> = answers.iter().filter_map(issued_seq).collect();
    assert_eq!(seqs, (1..=users.len() as u64).collect::<Vec<_>>());
    let again = home.store.coupon_issue(&Sending::once(), &wishes).await.unwrap();
    assert_eq!(again, seqs.into_iter().map(already).collect::<Vec<_>>());
    let changes = home.journal_is_whole(&coupon).await;
    assert_eq!(issued_to(&changes), users);
}

/// Everybody to whom the journal says that a coupon was issued, in that order.
fn issued_to(changes: &[JournalChange]) -> Vec<crate::key::Name> {
    let users = changes.iter().filter_map(|change| match change {
        JournalChange::Issued { users, .. } => Some(users.clone()),
        _ => None,
    });
    users.flatten().collect()
}

async fn a_large_batch_is_issued_whole_and_a_larger_one_refused_whole(home: &Home) {
    let users: Vec<_> = (0..=MAX_BATCH).map(|user| format!("user-{user}")).collect();
    let users: Vec<_> = users.iter().map(String::as_str).collect();
    let coupon = coupon(home, users.len() as u64).await;
    let too_many = issue_wishes(&coupon, &users);
    is_refused(&home.store.coupon_issue(&Sending::once(), &too_many).await);
    assert_eq!(home.status(&coupon).await.granted, 0);
    let answers = home.issue(&coupon, &users[..MAX_BATCH]).await;
    assert_eq!(answers.iter().filter_map(issued_seq).count(), MAX_BATCH);
    // And one in which almost everybody has one already.
    let answers = home.issue(&coupon, &users[1..]).await;
    assert_eq!((answers[0], answers[MAX_BATCH - 1]), (already(2), issued(MAX_BATCH as u64 + 1, 0)));
    home.journal_is_whole(&coupon).await;
}

/// 300 people, each asking three times in three different crowds, for 100 coupons.
async fn a_crowd_gets_exactly_what_there_is(home: &Home) {
    let coupon = coupon(home, 100).await;
    let mut crowds = tokio::task::JoinSet::new();
    for crowd in 0..90 {
        let (store, coupon) = (home.store.clone(), coupon.clone());
        crowds.spawn(async move {
            let users: Vec<_> = (0..10).map(|place| format!("user-{}", (crowd * 10 + place) % 300)).collect();
            let users: Vec<_> = users.iter().map(String::as_str).collect();
            store.coupon_issue(&Sending::once(), &issue_wishes(&coupon, &users)).await.unwrap()
        });
    }
    let answers: Vec<_> = crowds.join_all().await.into_iter().flatten().collect();
    let seqs: Vec<_> = answers.iter().filter_map(issued_seq).collect();
    assert_eq!(seqs.len(), 100, "so many were issued");
    assert_eq!(seqs.into_iter().collect::<BTreeSet<_>>(), (1..=100).collect());
    assert_eq!(home.status(&coupon).await.granted, 100);
    let users = issued_to(&home.journal_is_whole(&coupon).await);
    assert_eq!(users.into_iter().collect::<BTreeSet<_>>().len(), 100, "somebody got two");
}

fn issued_seq(answer: &Issue) -> Option<u64> {
    match answer {
        Issue::Issued { seq, .. } => Some(*seq),
        _ => None,
    }
}

async fn each_issue_is_one_change_of_the_journal(home: &Home) {
    let coupon = coupon(home, 4).await;
    home.issue(&coupon, &["a", "b"]).await;
    assert_eq!(home.status(&coupon).await.rev, 3);
    home.issue(&coupon, &["b", "c", "b", "d", "e"]).await;
    assert_eq!(home.status(&coupon).await.rev, 5);
    home.issue(&coupon, &["a", "e"]).await;
    let users = |users: &[&str]| users.iter().map(|user| name(user)).collect::<Vec<_>>();
    assert_eq!(
        home.journal_is_whole(&coupon).await,
        [
            JournalChange::Opened { terms: terms(4) },
            JournalChange::Issued { seq: 1, users: users(&["a", "b"]), passes: Vec::new() },
            JournalChange::Issued { seq: 3, users: users(&["c", "d"]), passes: Vec::new() },
        ]
    );
}

async fn a_batch_that_is_sent_again_is_issued_once(home: &Home) {
    let coupon = coupon(home, 9).await;
    let (first, later) = (issue_wishes(&coupon, &["a", "b", "a"]), issue_wishes(&coupon, &["c"]));
    home.is_done_once(
        &coupon,
        async |sending| home.store.coupon_issue(sending, &first).await,
        async |sending| home.store.coupon_issue(sending, &later).await,
    )
    .await;
    // Every slot of every process is for itself.
    let process = crate::store::Token::random();
    for (slot, seq) in [(0, 4), (1, 5), (u16::MAX, 6)] {
        let (sending, user) =
            (Sending { process, slot, number: MAX_NUMBER - u64::from(slot) }, slot.to_string());
        let wishes = issue_wishes(&coupon, &[&user]);
        for _ in 0..2 {
            let answers = home.store.coupon_issue(&sending, &wishes).await.unwrap();
            assert_eq!(answers, [issued(seq, 9 - seq)]);
        }
    }
}

async fn what_has_no_wishes_is_no_batch(home: &Home) {
    let (coupon, process) = (coupon(home, 9).await, crate::store::Token::random());
    let sent = |number| Sending { process, slot: 0, number };
    assert_eq!(home.store.coupon_issue(&sent(5), &[]).await.unwrap(), []);
    for _ in 0..2 {
        let answers = home.store.coupon_issue(&sent(4), &issue_wishes(&coupon, &["a"])).await.unwrap();
        assert_eq!(answers, [issued(1, 8)]);
    }
    assert_eq!(home.store.coupon_issue(&sent(3), &[]).await.unwrap(), []);
}

async fn only_coupons_are_issued(home: &Home) {
    for kind in [CampaignKind::Deal, CampaignKind::Sku] {
        let other = home.opened(kind, terms(9)).await;
        is_refused(&home.store.coupon_issue(&Sending::once(), &issue_wishes(&other, &["a"])).await);
        assert_eq!(home.status(&other).await.rev, 1);
    }
}
