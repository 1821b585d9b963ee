//! Histories that look suspicious and are in order.

use super::{
    Answer, Bounds, Issue, Open, Script, acquire, acquired, already, enter, entered, granted_row, issue,
    issued, look, open, other_row, release, renew, revoke, revoked_row, write,
};
use crate::testing::history::{Admit, History, Leave, Rejected, check};

#[test]
fn an_empty_history_proves_nothing() {
    let verdict = check(&History::default(), &Bounds::default());
    assert!(verdict.violations.is_empty() && verdict.is_empty());
    assert_eq!(verdict.into_result(), Err(Rejected::Empty));
}

#[test]
fn another_holder_may_come_when_the_lease_is_over() {
    let mut s = Script::default();
    s.ok(0, 40, acquire(100), acquired(1));
    s.ok(90, 100, acquire(100), acquired(2));
    s.assert_legal();
    assert_eq!(s.verdict().judged.trusted_leases, 2);
}

#[test]
fn a_release_ends_trust_when_it_is_sent_even_if_its_answer_is_lost_or_late() {
    let mut s = Script::default();
    s.ok(0, 1, acquire(1_000), acquired(1));
    s.unknown(10, 500, release(1));
    s.ok(5, 11, acquire(1_000), acquired(2));
    s.ok(20, 600, release(2), Answer::Released);
    s.ok(20, 21, acquire(1_000), acquired(3));
    s.assert_legal();
}

#[test]
fn a_renewal_that_was_not_answered_extends_nothing() {
    let mut s = Script::default();
    s.ok(0, 1, acquire(100), acquired(1));
    s.unknown(90, 95, renew(1, 100));
    s.fail(96, 97, renew(1, 100));
    s.ok(50, 101, acquire(100), acquired(2));
    s.assert_legal();
}

#[test]
fn a_renewal_with_a_shorter_lease_gives_time_back_even_if_its_answer_is_lost() {
    let mut s = Script::default();
    s.ok(0, 1, acquire(1_000), acquired(1));
    s.unknown(10, 20, renew(1, 5));
    s.ok(14, 15, acquire(100), acquired(2));
    s.assert_legal();
}

#[test]
fn who_learns_that_the_lock_is_lost_trusts_it_no_longer() {
    let mut s = Script::default();
    s.ok(0, 1, acquire(1_000), acquired(1));
    s.ok(10, 20, renew(1, 1_000), Answer::RenewLost);
    s.ok(15, 25, acquire(100), acquired(2));
    s.assert_legal();
}

#[test]
fn a_margin_makes_room_for_clocks_that_drift() {
    let mut s = Script::default();
    s.ok(0, 1, acquire(100), acquired(1));
    s.ok(50, 99, acquire(100), acquired(2));
    assert_eq!(s.kinds(), ["TwoHolders"]);
    let bounds = Bounds { lease_margin: std::time::Duration::from_millis(1), ..Bounds::default() };
    assert!(s.verdict_within(&bounds).violations.is_empty());
}

#[test]
fn overlapping_acquires_may_be_answered_in_any_order() {
    let mut s = Script::default();
    s.ok(0, 50, acquire(20), acquired(1));
    s.ok(0, 40, acquire(60), acquired(2));
    s.assert_legal();
}

#[test]
fn a_lower_fence_may_write_while_the_higher_one_is_not_acknowledged() {
    let mut s = Script::default();
    s.ok(0, 10, write(8), Answer::WriteAccepted);
    s.ok(9, 20, write(7), Answer::WriteAccepted);
    s.ok(21, 22, write(7), Answer::WriteRefused);
    s.ok(23, 24, write(8), Answer::WriteAccepted);
    s.assert_legal();
}

#[test]
fn a_waiter_whose_place_was_not_confirmed_in_time_was_not_overtaken() {
    let mut s = Script::default();
    s.queued_ok((0, 10, 40), acquire(1_000), acquired(2));
    s.ok(9, 20, acquire(1_000), acquired(1));
    s.ok(30, 31, release(1), Answer::Released);
    s.assert_legal();
    assert_eq!(s.verdict().judged.queued_waiters, 1);
}

#[test]
fn a_grant_whose_answer_is_late_was_not_overtaken() {
    let mut s = Script::default();
    s.queued_ok((0, 1, 90), acquire(5), acquired(1));
    s.ok(10, 11, acquire(20), acquired(2));
    s.assert_legal();
}

#[test]
fn what_the_clock_cannot_tell_apart_counts_as_concurrent() {
    let mut s = Script::default();
    s.ok(0, 5, write(8), Answer::WriteAccepted);
    s.ok(5, 9, write(7), Answer::WriteAccepted);
    s.ok(0, 5, acquire(5), acquired(2));
    s.ok(5, 9, acquire(5), acquired(1));
    s.queued_ok((10, 11, 20), acquire(5), acquired(4));
    s.ok(11, 12, acquire(5), acquired(3));
    s.ok(0, 5, enter("bob"), entered(2));
    s.ok(5, 9, enter("ann"), entered(1));
    s.ok(10, 15, look("bob"), Answer::LookAdmitted);
    s.ok(15, 20, look("ann"), Answer::LookWaiting);
    s.assert_legal();
}

#[test]
fn unknown_issues_may_have_happened_or_not() {
    let mut s = Script::default();
    s.ok(0, 1, open(10), Answer::Opened);
    s.unknown(2, 3, issue("ann"));
    s.invoke(4, issue("bob"));
    s.ok(5, 6, issue("eve"), issued(2));
    s.list_grants(9, &[("ann", 1), ("eve", 2)]);
    s.list_ledger(11, vec![granted_row(1, "ann", 1), granted_row(2, "eve", 2)]);
    s.assert_legal();
    let judged = s.verdict().judged;
    assert_eq!((judged.unknown, judged.stock_grants, judged.listed_rows, judged.ledger_rows), (2, 1, 2, 2));
}

#[test]
fn an_issue_that_was_sent_twice_may_meet_itself() {
    let mut s = Script::default();
    s.ok(0, 1, open(10), Answer::Opened);
    s.ok(2, 9, issue("ann"), already(1));
    s.list_grants(10, &[("ann", 1)]);
    s.assert_legal();
}

#[test]
fn two_issues_of_one_user_may_be_answered_in_the_wrong_order() {
    let mut s = Script::default();
    s.ok(0, 1, open(10), Answer::Opened);
    s.ok(2, 9, issue("ann"), issued(1));
    s.ok(2, 5, issue("ann"), already(1));
    let bounds = Bounds { resends: false, ..Bounds::default() };
    assert!(s.verdict_within(&bounds).violations.is_empty());
}

#[test]
fn a_revoked_user_may_get_a_new_seq_and_the_old_one_leaves_a_hole() {
    let mut s = Script::default();
    s.ok(0, 1, open(1), Answer::Opened);
    s.ok(2, 3, issue("ann"), issued(1));
    s.ok(4, 9, revoke("ann", 1), Answer::Revoked);
    s.ok(5, 8, issue("ann"), issued(2));
    s.list_grants(10, &[("ann", 2)]);
    s.list_ledger(
        12,
        vec![other_row(1), granted_row(2, "ann", 1), revoked_row(3, "ann", 1), granted_row(4, "ann", 2)],
    );
    s.assert_legal();
}

#[test]
fn an_unknown_revoke_may_have_made_room_or_not() {
    for left in [&[("ann", 1)][..], &[]] {
        let mut s = Script::default();
        s.ok(0, 1, open(1), Answer::Opened);
        s.ok(2, 3, issue("ann"), issued(1));
        s.unknown(4, 9, revoke("ann", 1));
        s.list_grants(10, left);
        s.assert_legal();
    }
}

#[test]
fn a_revoke_that_was_sent_twice_may_meet_itself() {
    let mut s = Script::default();
    s.ok(0, 1, open(1), Answer::Opened);
    s.ok(2, 3, issue("ann"), issued(1));
    s.ok(4, 9, revoke("ann", 1), Answer::RevokeNotGranted);
    s.list_grants(10, &[]);
    s.assert_legal();
}

#[test]
fn a_larger_total_counts_from_when_it_was_sent() {
    let mut s = Script::default();
    s.ok(0, 1, open(1), Answer::Opened);
    s.ok(2, 3, issue("ann"), issued(1));
    s.ok(4, 99, open(2), Answer::Opened);
    s.ok(5, 6, issue("bob"), issued(2));
    s.assert_legal();
}

#[test]
fn a_total_of_unknown_fate_may_take_effect_at_any_later_time() {
    let mut s = Script::default();
    s.unknown(0, 1, open(9));
    s.ok(2, 3, open(1), Answer::Opened);
    s.ok(4, 5, issue("ann"), issued(1));
    s.ok(6, 7, issue("bob"), issued(2));
    s.assert_legal();
}

#[test]
fn two_totals_that_were_set_at_the_same_time_may_have_come_in_any_order() {
    let mut s = Script::default();
    s.ok(0, 10, open(9), Answer::Opened);
    s.ok(5, 20, open(1), Answer::Opened);
    s.ok(30, 31, issue("ann"), issued(1));
    s.ok(32, 33, issue("bob"), issued(2));
    s.assert_legal();
}

#[test]
fn what_is_taken_back_makes_room_at_once() {
    let mut s = Script::default();
    s.ok(0, 1, open(1), Answer::Opened);
    s.ok(2, 3, issue("ann"), issued(1));
    s.ok(4, 9, issue("bob"), issued(2));
    s.ok(9, 20, revoke("ann", 1), Answer::Revoked);
    s.assert_legal();
}

#[test]
fn a_ledger_that_is_read_later_may_know_more() {
    let mut s = Script::default();
    s.ok(0, 1, open(10), Answer::Opened);
    s.list_grants(10, &[]);
    s.ok(15, 16, issue("ann"), issued(1));
    s.list_ledger(20, vec![granted_row(1, "ann", 1)]);
    s.assert_legal();
}

#[test]
fn a_user_may_have_several_grants_up_to_the_limit() {
    let mut s = Script::default();
    let buy = |quantity| Issue { campaign: "c".into(), user: "ann".into(), quantity };
    s.ok(0, 1, Open { campaign: "c".into(), quantity: 10, per_user: 5 }, Answer::Opened);
    s.ok(2, 3, buy(2), issued(1));
    s.ok(4, 5, buy(3), issued(2));
    s.assert_legal();
}

#[test]
fn what_was_granted_after_a_listing_need_not_be_in_it() {
    let mut s = Script::default();
    s.ok(0, 1, open(10), Answer::Opened);
    s.ok(8, 20, issue("ann"), issued(1));
    s.list_grants(10, &[]);
    s.list_ledger(12, vec![]);
    s.assert_legal();
}

#[test]
fn an_incomplete_listing_says_nothing() {
    let mut s = Script::default();
    s.ok(0, 1, open(10), Answer::Opened);
    s.ok(2, 3, issue("ann"), issued(1));
    s.invoke(10, crate::testing::history::ListGrants { campaign: "c".into() });
    s.assert_legal();
    assert_eq!(s.verdict().judged.listings, 0);
}

#[test]
fn entering_again_gives_the_same_place() {
    let mut s = Script::default();
    s.unknown(0, 1, enter("ann"));
    s.ok(2, 3, enter("bob"), entered(2));
    s.ok(4, 5, enter("ann"), entered(1));
    s.ok(6, 7, enter("bob"), entered(2));
    s.assert_legal();
    assert_eq!(s.verdict().judged.places, 2);
}

#[test]
fn who_left_and_came_back_waits_behind_the_others() {
    let mut s = Script::default();
    s.ok(0, 1, enter("ann"), entered(1));
    s.ok(2, 3, enter("bob"), entered(2));
    s.ok(4, 5, Leave { line: "q".into(), user: "ann".into() }, Answer::Left);
    s.ok(6, 7, enter("ann"), entered(3));
    s.ok(8, 9, Admit { line: "q".into() }, Answer::AdmittedUsers { users: vec!["bob".into()] });
    s.queued_ok((10, 11, 20), look("ann"), Answer::LookAdmitted);
    s.assert_legal();
    assert_eq!(s.verdict().judged.admissions, 2);
}

#[test]
fn who_looks_while_the_others_are_let_in_may_still_see_itself_waiting() {
    let mut s = Script::default();
    s.ok(0, 1, enter("ann"), entered(1));
    s.ok(2, 3, enter("bob"), entered(2));
    s.ok(4, 20, look("ann"), Answer::LookWaiting);
    s.ok(5, 10, look("bob"), Answer::LookAdmitted);
    s.assert_legal();
}
