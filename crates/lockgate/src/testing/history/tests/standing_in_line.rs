//! Lines whose terms are known: what the judge must catch, and what it must let pass.

use super::{Answer, Fate, Script, enter, entered, look};
use crate::testing::history::{Bounds, Finish, Leave, OpenLine, ReadLine, SetClock};

/// Two every 100 ms, at most three at once; whoever is not seen for 50 ms may be passed over. Ann, Bob and Cid enter.
fn line_of_three(write: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::default();
    let line = "q".into();
    let opened = OpenLine {
        line,
        batch: 2,
        every_ms: 100,
        max_active: Some(3),
        grace_ms: Some(50),
        pass_ttl_ms: 1_000,
    };
    script.ok(0, 1, opened, Answer::LineOpened);
    for (place, user) in (0..).zip(["ann", "bob", "cid"]) {
        script.ok(2 + place, 3 + place, enter(user), entered(place));
    }
    write(&mut script);
    script
}

fn read() -> ReadLine {
    ReadLine { line: "q".into() }
}

fn stands(head: u64, admitted: u64, active: u64) -> Answer {
    Answer::LineStands { head, admitted, active }
}

fn finish(user: &str) -> Finish {
    Finish { line: "q".into(), user: user.into() }
}

fn leave(user: &str) -> Leave {
    Leave { line: "q".into(), user: user.into() }
}

use Fate::{Admitted, Left, Skipped};

#[test]
fn an_orderly_line_passes() {
    let script = line_of_three(|s| {
        s.ok(9, 10, read(), stands(0, 0, 0));
        s.ok(12, 13, read(), stands(2, 2, 2));
        s.ok(20, 21, look("ann"), Answer::LookAdmitted);
        s.ok(22, 23, look("bob"), Answer::LookAdmitted);
        s.ok(30, 31, finish("ann"), Answer::Finished);
        s.ok(109, 110, read(), stands(2, 2, 1));
        s.ok(112, 113, read(), stands(3, 3, 2));
        s.list_places(200, &[Admitted, Admitted, Admitted]);
    });
    script.assert_legal();
    let judged = script.verdict().judged;
    assert_eq!((judged.timed_admissions, judged.most_active, judged.listed_places), (3, 2, 3));
}

#[test]
fn three_in_the_time_of_two_are_found() {
    let script = line_of_three(|s| {
        s.ok(9, 10, read(), stands(0, 0, 0));
        s.ok(50, 51, read(), stands(2, 2, 2));
        s.ok(100, 108, read(), stands(3, 3, 3));
        s.list_places(200, &[Admitted, Admitted, Admitted]);
    });
    assert_eq!(script.kinds(), ["AdmittedTooFast"]);
}

#[test]
fn nobody_knows_how_fast_it_was_when_nobody_looked() {
    let script = line_of_three(|s| {
        s.ok(9, 10, read(), stands(0, 0, 0));
        s.ok(50, 109, read(), stands(3, 3, 3));
        s.list_places(200, &[Admitted, Admitted, Admitted]);
    });
    script.assert_legal();
}

#[test]
fn who_was_passed_over_does_not_count_as_admitted() {
    let script = line_of_three(|s| {
        s.ok(69, 70, read(), stands(0, 0, 0));
        s.ok(72, 73, read(), stands(3, 2, 2));
        s.list_places(200, &[Admitted, Skipped, Admitted]);
    });
    script.assert_legal();
}

#[test]
fn a_clock_that_is_set_brings_one_batch_forward_and_not_two() {
    let batches = |last| {
        line_of_three(|s| {
            for (place, user) in (3..).zip(["dan", "eve", "fay"]) {
                s.ok(5 + place, 6 + place, enter(user), entered(place));
            }
            s.ok(12, 13, read(), stands(0, 0, 0));
            s.ok(20, 21, read(), stands(2, 2, 2));
            s.ok(22, 23, SetClock { line: "q".into() }, Answer::ClockSet);
            s.ok(24, 25, read(), stands(4, 4, 3));
            s.ok(last, last + 1, read(), stands(6, 6, 3));
            s.list_places(200, &[Admitted; 6]);
        })
    };
    assert_eq!(batches(26).kinds(), ["AdmittedTooFast"]);
    batches(126).assert_legal();
}

#[test]
fn more_at_once_than_may_be_are_found_by_what_the_line_says() {
    let script = line_of_three(|s| s.ok(9, 10, read(), stands(4, 4, 4)));
    assert_eq!(script.kinds(), ["TooManyActive"]);
}

#[test]
fn more_at_once_than_may_be_are_found_by_what_they_see() {
    let all_in = |end_of_ann| {
        line_of_three(|s| {
            s.ok(6, 7, enter("dan"), entered(3));
            for (at, user) in [(10, "ann"), (12, "bob"), (14, "cid")] {
                s.ok(at, at + 1, look(user), Answer::LookAdmitted);
            }
            s.ok(end_of_ann, end_of_ann + 1, finish("ann"), Answer::Finished);
            s.ok(30, 31, look("dan"), Answer::LookAdmitted);
        })
    };
    assert_eq!(all_in(40).kinds(), ["TooManyActive"]);
    all_in(29).assert_legal();
}

#[test]
fn an_admission_after_the_end_is_found() {
    let admitted_again = |enters_anew: bool| {
        line_of_three(|s| {
            s.ok(10, 11, look("ann"), Answer::LookAdmitted);
            s.ok(12, 13, finish("ann"), Answer::Finished);
            if enters_anew {
                s.unknown(14, 15, enter("ann"));
            }
            s.ok(16, 17, look("ann"), Answer::LookAdmitted);
        })
    };
    assert_eq!(admitted_again(false).kinds(), ["AdmittedTwice"]);
    admitted_again(true).assert_legal();
}

#[test]
fn a_head_that_goes_back_is_found() {
    let script = line_of_three(|s| {
        s.ok(9, 10, read(), stands(2, 2, 2));
        s.ok(11, 12, read(), stands(1, 1, 1));
    });
    assert_eq!(script.kinds(), ["HeadWentBack"]);
}

#[test]
fn more_admitted_than_passed_are_found() {
    assert_eq!(line_of_three(|s| s.ok(9, 10, read(), stands(1, 2, 2))).kinds(), ["MoreAdmittedThanPassed"]);
}

#[test]
fn somebody_admitted_and_not_counted_is_found() {
    let script = line_of_three(|s| {
        s.ok(300, 301, read(), stands(3, 2, 0));
        s.list_places(310, &[Admitted, Admitted, Admitted]);
    });
    assert_eq!(script.kinds(), ["AdmittedUncounted"]);
}

#[test]
fn whoever_was_there_is_not_passed_over() {
    let passed_at = |at| {
        line_of_three(|s| {
            s.ok(40, 41, look("bob"), Answer::LookWaiting);
            s.ok(at, at + 1, read(), stands(3, 2, 2));
            s.list_places(300, &[Admitted, Skipped, Admitted]);
        })
    };
    assert_eq!(passed_at(88).kinds(), ["SkippedThoughSeen"]);
    passed_at(89).assert_legal();
}

#[test]
fn whoever_is_admitted_and_comes_in_time_finds_it_so() {
    let comes_at = |at| {
        line_of_three(|s| {
            s.ok(40, 41, look("bob"), Answer::LookWaiting);
            s.ok(at, at + 1, look("bob"), Answer::LookGone);
            s.list_places(300, &[Admitted, Admitted, Admitted]);
        })
    };
    assert_eq!(comes_at(88).kinds(), ["AdmissionLost"]);
    comes_at(89).assert_legal();
}

#[test]
fn whoever_watches_is_there() {
    let script = line_of_three(|s| {
        s.queued_ok((10, 11, 290), look("bob"), Answer::LookGone);
        s.list_places(300, &[Admitted, Skipped, Admitted]);
    });
    assert_eq!(script.kinds(), ["SkippedWhileWatching"]);
    let disturbed = Bounds { watchers_are_seen: false, ..Bounds::default() };
    assert!(script.verdict_within(&disturbed).violations.is_empty());
}

#[test]
fn nobody_leaves_unasked() {
    let left = |asks: bool| {
        line_of_three(|s| {
            if asks {
                s.unknown(10, 11, leave("bob"));
            }
            s.list_places(300, &[Admitted, Left, Admitted]);
        })
    };
    assert_eq!(left(false).kinds(), ["LeftWithoutAsking"]);
    left(true).assert_legal();
}

#[test]
fn a_lost_place_is_found() {
    let script = line_of_three(|s| s.list_places(300, &[Admitted, Admitted]));
    assert_eq!(script.kinds(), ["PlaceLost"]);
}

#[test]
fn an_admission_that_is_not_remembered_is_found() {
    let script = line_of_three(|s| {
        s.ok(10, 11, look("ann"), Answer::LookAdmitted);
        s.list_places(300, &[Skipped, Admitted, Admitted]);
    });
    assert_eq!(script.kinds(), ["FateAltered"]);
}

#[test]
fn a_place_of_nobody_is_found() {
    let listed = |is_unknown: bool| {
        line_of_three(|s| {
            if is_unknown {
                s.unknown(10, 11, enter("dan"));
            }
            s.list_places(300, &[Admitted; 4]);
        })
    };
    assert_eq!(listed(false).kinds(), ["PlaceInvented"]);
    listed(true).assert_legal();
}
