//! One minimal bad history per kind of violation, and exactly that kind is found.

use super::{
    Answer, Bounds, Call, GrantRow, Issue, ListGrants, Open, Row, Script, Step, acquire, acquired, already,
    enter, entered, granted_row, issue, issued, kinds, look, open, other_row, release, renew, revoke,
    revoked_row, write,
};
use crate::testing::history::Admit;

fn script(write: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::default();
    write(&mut script);
    script
}

/// A campaign of ten in which "ann" has seq 1 and "bob" has seq 2.
fn sold_two(write: impl FnOnce(&mut Script)) -> Script {
    script(|s| {
        s.ok(0, 1, open(10), Answer::Opened);
        s.ok(2, 3, issue("ann"), issued(1));
        s.ok(4, 5, issue("bob"), issued(2));
        write(s);
    })
}

fn admit() -> Admit {
    Admit { line: "q".into() }
}

fn admitted(user: &str) -> Answer {
    Answer::AdmittedUsers { users: vec![user.into()] }
}

#[test]
fn one_fence_for_two_grants_is_found() {
    let script = script(|s| {
        s.ok(0, 1, acquire(2), acquired(7));
        s.ok(10, 11, acquire(2), acquired(7));
    });
    assert_eq!(script.kinds(), ["FenceGivenTwice"]);
}

#[test]
fn a_fence_that_goes_back_is_found() {
    let script = script(|s| {
        s.ok(0, 1, acquire(2), acquired(7));
        s.ok(10, 11, acquire(2), acquired(6));
    });
    assert_eq!(script.kinds(), ["FenceWentBack"]);
}

#[test]
fn a_stale_write_that_gets_through_is_found() {
    let script = script(|s| {
        s.ok(0, 1, write(8), Answer::WriteAccepted);
        s.ok(2, 3, write(7), Answer::WriteAccepted);
    });
    assert_eq!(script.kinds(), ["StaleWriteAccepted"]);
}

#[test]
fn two_holders_within_their_leases_are_found() {
    let script = script(|s| {
        s.ok(0, 1, acquire(100), acquired(1));
        s.ok(50, 51, acquire(100), acquired(2));
    });
    assert_eq!(script.kinds(), ["TwoHolders"]);
}

#[test]
fn a_holder_that_renewed_is_still_a_holder() {
    let script = script(|s| {
        s.ok(0, 1, acquire(100), acquired(1));
        s.ok(90, 95, renew(1, 100), Answer::Renewed);
        s.ok(150, 151, acquire(100), acquired(2));
    });
    assert_eq!(script.kinds(), ["TwoHolders"]);
}

#[test]
fn a_holder_overlapped_by_a_short_and_by_a_long_lease_is_found_twice() {
    let script = script(|s| {
        s.ok(0, 1, acquire(1_000), acquired(1));
        s.ok(10, 11, acquire(10), acquired(2));
        s.ok(500, 501, acquire(1_000), acquired(3));
    });
    assert_eq!(script.kinds(), ["TwoHolders", "TwoHolders"]);
}

#[test]
fn a_short_renewal_of_unknown_fate_leaves_at_least_its_own_lease() {
    let script = script(|s| {
        s.ok(0, 1, acquire(1_000), acquired(1));
        s.unknown(10, 11, renew(1, 5));
        s.ok(100, 101, renew(1, 1_000), Answer::Renewed);
        s.ok(102, 103, acquire(1_000), acquired(2));
    });
    assert_eq!(script.kinds(), ["TwoHolders"]);
}

#[test]
fn a_short_renewal_cuts_nothing_that_was_renewed_after_it() {
    let script = script(|s| {
        s.ok(0, 1, acquire(1_000), acquired(1));
        s.ok(10, 11, renew(1, 5), Answer::Renewed);
        s.ok(12, 13, renew(1, 1_000), Answer::Renewed);
        s.ok(500, 501, acquire(1_000), acquired(2));
    });
    assert_eq!(script.kinds(), ["TwoHolders"]);
}

#[test]
fn an_overtaken_waiter_is_found() {
    let script = overtaken_waiter();
    assert_eq!(script.kinds(), ["WaiterOvertaken"]);
    let bounds = Bounds { lock_overtakes: 1, ..Bounds::default() };
    assert!(kinds(&script.verdict_within(&bounds)).is_empty());
}

fn overtaken_waiter() -> Script {
    script(|s| {
        s.ok(0, 1, acquire(1_000), acquired(1));
        s.queued_ok((2, 3, 30), acquire(1_000), acquired(3));
        s.ok(5, 11, acquire(1_000), acquired(2));
        s.ok(10, 11, release(1), Answer::Released);
        s.ok(20, 21, release(2), Answer::Released);
    })
}

#[test]
fn overselling_is_found() {
    let script = script(|s| {
        s.ok(0, 1, Open { campaign: "c".into(), quantity: 2, per_user: 9 }, Answer::Opened);
        for (user, seq) in [("ann", 1), ("bob", 2)] {
            let two = Issue { campaign: "c".into(), user: user.into(), quantity: 2 };
            s.ok(2 * seq, 2 * seq + 1, two, issued(seq));
        }
    });
    assert_eq!(script.kinds(), ["Oversold"]);
}

#[test]
fn a_total_that_is_lowered_below_what_is_out_is_overselling() {
    let script = sold_two(|s| s.ok(6, 7, open(1), Answer::Opened));
    assert_eq!(script.kinds(), ["Oversold"]);
}

#[test]
fn overselling_that_only_the_listing_shows_is_found() {
    let script = script(|s| {
        s.ok(0, 1, open(1), Answer::Opened);
        s.ok(2, 3, issue("ann"), issued(1));
        s.unknown(4, 5, issue("bob"));
        s.list_grants(9, &[("ann", 1), ("bob", 2)]);
    });
    assert_eq!(script.kinds(), ["OversoldInListing"]);
}

#[test]
fn a_seq_beyond_the_total_is_found() {
    let script = sold_two(|s| s.ok(6, 7, issue("eve"), issued(11)));
    assert_eq!(script.kinds(), ["SeqOutOfRange"]);
}

#[test]
fn a_seq_of_zero_is_found() {
    assert_eq!(sold_two(|s| s.ok(6, 7, issue("eve"), issued(0))).kinds(), ["SeqOutOfRange"]);
}

#[test]
fn one_seq_for_two_users_is_found() {
    assert_eq!(sold_two(|s| s.ok(6, 7, issue("eve"), issued(2))).kinds(), ["SeqGivenTwice"]);
}

#[test]
fn one_grant_that_two_requests_were_told_is_new_is_found() {
    assert_eq!(sold_two(|s| s.ok(6, 7, issue("bob"), issued(2))).kinds(), ["SeqGivenTwice"]);
}

#[test]
fn a_user_with_two_seqs_is_found() {
    assert_eq!(sold_two(|s| s.ok(6, 7, issue("bob"), issued(3))).kinds(), ["UserOverLimit"]);
}

#[test]
fn an_already_with_another_seq_is_found() {
    assert_eq!(sold_two(|s| s.ok(6, 7, issue("bob"), already(3))).kinds(), ["UserOverLimit"]);
}

#[test]
fn a_user_who_has_too_much_in_the_listing_is_found() {
    let script = sold_two(|s| {
        s.unknown(6, 7, issue("bob"));
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("bob", 3)]);
    });
    assert_eq!(script.kinds(), ["UserOverLimitInListing"]);
}

#[test]
fn an_already_without_a_grant_is_found_when_nothing_is_sent_twice() {
    let script = sold_two(|s| s.ok(6, 7, issue("eve"), already(3)));
    let bounds = Bounds { resends: false, ..Bounds::default() };
    assert_eq!(kinds(&script.verdict_within(&bounds)), ["AlreadyWithoutGrant"]);
}

#[test]
fn a_lost_grant_is_found() {
    assert_eq!(sold_two(|s| s.list_grants(9, &[("ann", 1)])).kinds(), ["GrantLost"]);
}

#[test]
fn a_grant_that_only_an_already_showed_can_be_lost_too() {
    let script = sold_two(|s| {
        s.unknown(6, 7, issue("eve"));
        s.ok(8, 9, issue("eve"), already(3));
        s.list_grants(10, &[("ann", 1), ("bob", 2)]);
    });
    assert_eq!(script.kinds(), ["GrantLost"]);
}

#[test]
fn a_grant_of_another_quantity_is_found() {
    let script = sold_two(|s| {
        let row = |user: &str, seq, quantity| Row::Granted(GrantRow { user: user.into(), seq, quantity });
        s.ok(6, 7, Open { campaign: "c".into(), quantity: 10, per_user: 2 }, Answer::Opened);
        s.list(9, ListGrants { campaign: "c".into() }, vec![row("ann", 1, 1), row("bob", 2, 2)]);
    });
    assert_eq!(script.kinds(), ["GrantAltered"]);
}

#[test]
fn a_revoke_that_did_not_last_is_found() {
    let script = sold_two(|s| {
        s.ok(6, 7, revoke("bob", 2), Answer::Revoked);
        s.list_grants(9, &[("ann", 1), ("bob", 2)]);
    });
    assert_eq!(script.kinds(), ["RevokeLost"]);
}

#[test]
fn a_grant_that_nobody_asked_for_is_found() {
    let script = sold_two(|s| s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 3)]));
    assert_eq!(script.kinds(), ["GrantInvented"]);
}

#[test]
fn a_grant_for_somebody_who_was_denied_is_found() {
    let script = sold_two(|s| {
        s.ok(6, 7, issue("eve"), Answer::IssueDenied);
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 3)]);
    });
    assert_eq!(script.kinds(), ["GrantInvented"]);
}

#[test]
fn a_grant_for_somebody_whose_request_failed_is_found() {
    let script = sold_two(|s| {
        s.fail(6, 7, issue("eve"));
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 3)]);
    });
    assert_eq!(script.kinds(), ["GrantInvented"]);
}

#[test]
fn a_request_that_was_sent_after_the_listing_explains_nothing_in_it() {
    let script = sold_two(|s| {
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 3)]);
        s.unknown(20, 21, issue("eve"));
    });
    assert_eq!(script.kinds(), ["GrantInvented"]);
}

#[test]
fn one_request_of_unknown_fate_explains_one_grant() {
    let script = sold_two(|s| {
        s.ok(6, 7, Open { campaign: "c".into(), quantity: 10, per_user: 2 }, Answer::Opened);
        s.unknown(8, 9, issue("eve"));
        s.list_grants(10, &[("ann", 1), ("bob", 2), ("eve", 3), ("eve", 4)]);
    });
    assert_eq!(script.kinds(), ["GrantInvented"]);
}

#[test]
fn a_seq_that_is_listed_twice_is_found() {
    let script = sold_two(|s| {
        s.unknown(6, 7, issue("eve"));
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 2)]);
    });
    assert_eq!(script.kinds(), ["ListedTwice"]);
}

#[test]
fn a_hole_in_the_seqs_is_found() {
    let script = sold_two(|s| {
        s.ok(6, 7, issue("eve"), issued(4));
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 4)]);
    });
    assert_eq!(script.kinds(), ["SeqsNotDense"]);
}

#[test]
fn a_gap_in_the_revs_is_found() {
    let rows = vec![granted_row(1, "ann", 1), granted_row(3, "bob", 2)];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["RevGap"]);
}

#[test]
fn revs_that_do_not_begin_with_one_are_found() {
    let rows = vec![granted_row(2, "ann", 1), granted_row(3, "bob", 2)];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["RevGap"]);
}

#[test]
fn a_repeated_rev_is_found() {
    let rows = vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2), granted_row(2, "bob", 2)];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["RevRepeated"]);
}

#[test]
fn a_rev_with_two_contents_is_found() {
    let mut other = granted_row(2, "bob", 2);
    other.content = "something else".into();
    let rows = vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2), other];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["RevConflict"]);
}

#[test]
fn a_missing_ledger_row_is_found() {
    assert_eq!(sold_two(|s| s.list_ledger(9, vec![granted_row(1, "ann", 1)])).kinds(), ["LedgerRowMissing"]);
}

#[test]
fn a_missing_ledger_row_of_a_revoke_is_found() {
    let script = sold_two(|s| {
        s.ok(6, 7, revoke("bob", 2), Answer::Revoked);
        s.list_ledger(9, vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2)]);
    });
    assert_eq!(script.kinds(), ["LedgerRowMissing"]);
}

#[test]
fn a_second_ledger_row_is_found() {
    let rows = vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2), granted_row(3, "bob", 2)];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["LedgerRowTwice"]);
}

#[test]
fn an_invented_ledger_row_is_found() {
    let rows = vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2), granted_row(3, "eve", 3)];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["LedgerRowInvented"]);
}

#[test]
fn an_invented_ledger_row_of_a_revoke_is_found() {
    let rows = vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2), revoked_row(3, "bob", 2)];
    assert_eq!(sold_two(|s| s.list_ledger(9, rows)).kinds(), ["LedgerRowInvented"]);
}

#[test]
fn a_store_and_a_ledger_that_disagree_are_found() {
    let script = sold_two(|s| {
        s.unknown(6, 7, issue("eve"));
        s.list_grants(9, &[("ann", 1), ("bob", 2), ("eve", 3)]);
        s.list_ledger(11, vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2), other_row(3)]);
    });
    assert_eq!(script.kinds(), ["LedgerDisagrees"]);
}

#[test]
fn what_store_or_ledger_lost_is_said_once() {
    let both = || vec![granted_row(1, "ann", 1), granted_row(2, "bob", 2)];
    let lost_by_store = sold_two(|s| {
        s.list_grants(9, &[("ann", 1)]);
        s.list_ledger(11, both());
    });
    assert_eq!(lost_by_store.kinds(), ["GrantLost"]);
    let lost_by_ledger = sold_two(|s| {
        s.list_grants(9, &[("ann", 1), ("bob", 2)]);
        s.list_ledger(11, both()[..1].to_vec());
    });
    assert_eq!(lost_by_ledger.kinds(), ["LedgerRowMissing"]);
}

#[test]
fn one_place_for_two_users_is_found() {
    let script = script(|s| {
        s.ok(0, 1, enter("ann"), entered(1));
        s.ok(2, 3, enter("bob"), entered(1));
    });
    assert_eq!(script.kinds(), ["PlaceGivenTwice"]);
}

#[test]
fn a_place_that_goes_back_is_found() {
    let script = script(|s| {
        s.ok(0, 1, enter("ann"), entered(2));
        s.ok(2, 3, enter("bob"), entered(1));
    });
    assert_eq!(script.kinds(), ["PlaceWentBack"]);
}

#[test]
fn somebody_who_waits_while_a_later_one_is_through_is_found() {
    let script = script(|s| {
        s.ok(0, 1, enter("ann"), entered(1));
        s.ok(2, 3, enter("bob"), entered(2));
        s.ok(4, 5, look("bob"), Answer::LookAdmitted);
        s.ok(6, 7, look("ann"), Answer::LookWaiting);
    });
    assert_eq!(script.kinds(), ["LineOvertaken"]);
    let bounds = Bounds { line_overtakes: 1, ..Bounds::default() };
    assert!(kinds(&script.verdict_within(&bounds)).is_empty());
}

#[test]
fn entering_again_later_does_not_hide_that_somebody_was_overtaken() {
    let script = script(|s| {
        s.ok(0, 1, enter("ann"), entered(1));
        s.ok(2, 3, enter("bob"), entered(2));
        s.ok(4, 5, look("bob"), Answer::LookAdmitted);
        s.ok(6, 7, look("ann"), Answer::LookWaiting);
        s.unknown(8, 9, enter("ann"));
    });
    assert_eq!(script.kinds(), ["LineOvertaken"]);
}

#[test]
fn admitting_a_later_one_first_is_found() {
    let script = script(|s| {
        s.ok(0, 1, enter("ann"), entered(1));
        s.ok(2, 3, enter("bob"), entered(2));
        s.ok(4, 5, admit(), admitted("bob"));
        s.ok(6, 7, admit(), admitted("ann"));
    });
    assert_eq!(script.kinds(), ["LineOvertaken"]);
}

#[test]
fn admitting_somebody_who_never_entered_is_found() {
    assert_eq!(script(|s| s.ok(4, 5, admit(), admitted("eve"))).kinds(), ["AdmittedWithoutEntering"]);
}

#[test]
fn an_end_without_a_beginning_is_malformed() {
    assert_eq!(script(|s| s.step(9, 1, Step::Fail)).kinds(), ["NeverInvoked"]);
}

#[test]
fn a_second_beginning_is_malformed() {
    let script = script(|s| {
        let op = s.invoke(0, write(1));
        s.step(op, 1, Step::Invoke(write(1).into()));
    });
    assert_eq!(script.kinds(), ["InvokedTwice"]);
}

#[test]
fn a_second_end_is_malformed() {
    let script = script(|s| {
        let op = s.invoke(0, write(1));
        s.step(op, 1, Step::Unknown);
        s.step(op, 2, Step::Ok(Answer::WriteAccepted));
    });
    assert_eq!(script.kinds(), ["EndedTwice"]);
}

#[test]
fn an_end_before_the_beginning_is_malformed() {
    assert_eq!(script(|s| s.ok(5, 4, write(1), Answer::WriteAccepted)).kinds(), ["TimeWentBack"]);
}

#[test]
fn an_answer_to_another_question_is_malformed_and_is_not_judged() {
    let script = script(|s| s.ok(0, 1, write(1), Answer::Released));
    assert_eq!(script.kinds(), ["MismatchedAnswer"]);
    assert!(script.verdict().is_empty());
}

#[test]
fn a_queued_release_is_malformed() {
    let script = script(|s| s.queued_ok((0, 1, 2), release(1), Answer::Released));
    assert_eq!(script.kinds(), ["CannotQueue"]);
}

#[test]
fn a_ledger_row_among_grants_is_malformed() {
    let script = script(|s| {
        let op = s.invoke(0, Call::ListGrants(ListGrants { campaign: "c".into() }));
        s.step(op, 1, Step::Row(Row::Ledger(other_row(1))));
    });
    assert_eq!(script.kinds(), ["StrayRow"]);
}

#[test]
fn a_listing_that_lacks_rows_is_malformed() {
    let script = script(|s| s.ok(0, 1, ListGrants { campaign: "c".into() }, Answer::Listed { rows: 1 }));
    assert_eq!(script.kinds(), ["MissingRows"]);
}

#[test]
fn a_violation_names_process_operation_and_times_in_one_sentence() {
    let verdict = overtaken_waiter().verdict();
    assert_eq!(
        verdict.violations[0].to_string(),
        "lock \"l\": operation 2 of p (0.002000000s to 0.030000000s) was overtaken 1 times while queued, at most \
         0 are allowed; once by operation 3 of p (0.005000000s to 0.011000000s)"
    );
}
