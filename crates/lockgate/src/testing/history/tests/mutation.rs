//! A single false fact in a history that was right is always caught.

use std::collections::HashMap;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::model::{choices, history_of};
use super::{Answer, Bounds, Call, Change, Event, History, Row, Step, check, kinds};

/// Builds many right histories, falsifies each by `mutate`, and expects `kind` to be found. A history in which
/// there is nothing to falsify is not counted, and too many of those fail the test.
fn is_always_caught(kind: &str, mutate: fn(&mut Vec<Event>) -> Option<()>) {
    let config = ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&choices(100..250), |choices| {
        let mut events = history_of(&choices);
        mutate(&mut events).ok_or_else(|| TestCaseError::reject("nothing to falsify"))?;
        let found = kinds(&check(&History::from_events(events), &Bounds::default()));
        if found.iter().any(|found| found == kind) {
            return Ok(());
        }
        Err(TestCaseError::fail(format!("{kind} was not found, only {found:?}")))
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// An answered operation, by the index of its answer.
struct Answered {
    call: Call,
    invoked: u64,
    queued: Option<u64>,
    at: u64,
    answer: usize,
}

fn answered(events: &[Event]) -> Vec<Answered> {
    let mut calls = HashMap::new();
    let mut queued = HashMap::new();
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match &event.step {
            Step::Invoke(call) => drop(calls.insert(event.op, (call.clone(), event.at))),
            Step::Queued => drop(queued.insert(event.op, event.at)),
            Step::Ok(_) => {
                let (call, invoked) = calls[&event.op].clone();
                let queued = queued.get(&event.op).copied();
                found.push(Answered { call, invoked, queued, at: event.at, answer: index });
            }
            _ => {}
        }
    }
    found
}

/// Two answered operations of which `fits` says yes.
fn find_pair(
    events: &[Event],
    fits: impl Fn((&Answered, &Answer), (&Answered, &Answer)) -> bool,
) -> Option<(usize, usize)> {
    let all = answered(events);
    let answer = |op: &Answered| match &events[op.answer].step {
        Step::Ok(answer) => answer.clone(),
        _ => unreachable!("only answers are collected"),
    };
    for first in &all {
        for second in &all {
            if first.answer != second.answer && fits((first, &answer(first)), (second, &answer(second))) {
                return Some((first.answer, second.answer));
            }
        }
    }
    None
}

fn swap_steps(events: &mut [Event], (first, second): (usize, usize)) {
    let step = events[first].step.clone();
    events[first].step = std::mem::replace(&mut events[second].step, step);
}

/// Removes or changes the first row that `pick` selects, or repeats it, and keeps the listing complete.
fn with_row(
    events: &mut Vec<Event>,
    pick: impl Fn(&Row) -> bool,
    change: impl Fn(Row) -> Vec<Row>,
) -> Option<()> {
    let index = events.iter().position(|event| matches!(&event.step, Step::Row(row) if pick(row)))?;
    let event = events.remove(index);
    let Step::Row(row) = event.step.clone() else { return None };
    let rows = change(row);
    let added = u64::try_from(rows.len()).unwrap();
    for row in rows {
        events.insert(index, Event { step: Step::Row(row), ..event.clone() });
    }
    for end in events.iter_mut().filter(|end| end.op == event.op) {
        if let Step::Ok(Answer::Listed { rows }) = &mut end.step {
            *rows = *rows + added - 1;
        }
    }
    Some(())
}

/// A grant that was acknowledged as new and that nobody tried to revoke.
fn a_lasting_grant(events: &[Event]) -> Option<(String, u64)> {
    let revoked = |user: &str, seq: u64| {
        events.iter().any(|event| {
            matches!(&event.step, Step::Invoke(Call::Revoke(call)) if call.user == user && call.seq == seq)
        })
    };
    answered(events).into_iter().find_map(|op| match (&op.call, &events[op.answer].step) {
        (Call::Issue(call), Step::Ok(Answer::Issued { seq })) if !revoked(&call.user, *seq) => {
            Some((call.user.clone(), *seq))
        }
        _ => None,
    })
}

#[test]
fn a_fence_that_is_given_again_is_always_caught() {
    is_always_caught("FenceGivenTwice", |events| {
        let (first, second) = find_pair(events, |(_, first), (_, second)| {
            matches!((first, second), (Answer::Acquired { .. }, Answer::Acquired { .. }))
        })?;
        events[second].step = events[first].step.clone();
        Some(())
    });
}

#[test]
fn two_swapped_fences_are_always_caught() {
    is_always_caught("FenceWentBack", |events| {
        let pair = find_pair(events, |(a, first), (b, second)| {
            matches!((first, second), (Answer::Acquired { .. }, Answer::Acquired { .. })) && a.at < b.invoked
        })?;
        swap_steps(events, pair);
        Some(())
    });
}

#[test]
fn leases_that_never_end_are_always_caught() {
    is_always_caught("TwoHolders", |events| {
        find_pair(events, |(_, first), (_, second)| {
            matches!((first, second), (Answer::Acquired { .. }, Answer::Acquired { .. }))
        })?;
        for event in events.iter_mut() {
            match &mut event.step {
                Step::Invoke(Call::Acquire(call)) => call.lease_ms = u64::MAX,
                Step::Invoke(Call::Renew(call)) => call.fence = u64::MAX,
                Step::Invoke(Call::Release(call)) => call.fence = u64::MAX,
                _ => {}
            }
        }
        Some(())
    });
}

#[test]
fn a_waiter_that_changes_places_with_a_later_one_is_always_caught() {
    is_always_caught("WaiterOvertaken", |events| {
        let pair = find_pair(events, |(a, first), (b, second)| {
            matches!((first, second), (Answer::Acquired { .. }, Answer::Acquired { .. }))
                && a.queued.is_some_and(|queued| queued < b.invoked)
        })?;
        swap_steps(events, pair);
        Some(())
    });
}

#[test]
fn a_refused_write_that_gets_through_is_always_caught() {
    is_always_caught("StaleWriteAccepted", |events| {
        let (_, stale) = find_pair(events, |(a, first), (b, second)| match (&a.call, &b.call) {
            (Call::FencedWrite(high), Call::FencedWrite(low)) => {
                high.fence > low.fence
                    && a.at < b.invoked
                    && (first, second) == (&Answer::WriteAccepted, &Answer::WriteRefused)
            }
            _ => false,
        })?;
        events[stale].step = Step::Ok(Answer::WriteAccepted);
        Some(())
    });
}

#[test]
fn a_total_that_was_smaller_is_always_caught() {
    is_always_caught("Oversold", |events| {
        a_lasting_grant(events)?;
        for event in events.iter_mut() {
            if let Step::Invoke(Call::Open(call)) = &mut event.step {
                call.quantity = 0;
            }
        }
        Some(())
    });
}

#[test]
fn a_seq_that_is_given_again_is_always_caught() {
    is_always_caught("SeqGivenTwice", |events| {
        let (first, second) = find_pair(events, |(_, first), (_, second)| {
            matches!((first, second), (Answer::Issued { .. }, Answer::Issued { .. }))
        })?;
        events[second].step = events[first].step.clone();
        Some(())
    });
}

#[test]
fn a_second_grant_for_a_user_is_always_caught() {
    is_always_caught("UserOverLimit", |events| {
        let (user, _) = a_lasting_grant(events)?;
        let (_, repeated) = find_pair(events, |_, (b, second)| {
            matches!(&b.call, Call::Issue(call) if call.user == user)
                && matches!(second, Answer::AlreadyIssued { .. })
        })?;
        events[repeated].step = Step::Ok(Answer::Issued { seq: 999 });
        Some(())
    });
}

#[test]
fn a_grant_that_disappears_is_always_caught() {
    is_always_caught("GrantLost", |events| {
        let (user, seq) = a_lasting_grant(events)?;
        with_row(
            events,
            |row| matches!(row, Row::Granted(row) if row.user == user && row.seq == seq),
            |_| vec![],
        )
    });
}

#[test]
fn a_grant_that_changes_hands_is_always_caught() {
    is_always_caught("GrantInvented", |events| {
        let to_a_stranger = |row| match row {
            Row::Granted(mut row) => {
                row.user = "never-sent".into();
                vec![Row::Granted(row)]
            }
            row => vec![row],
        };
        with_row(events, |row| matches!(row, Row::Granted(_)), to_a_stranger)
    });
}

#[test]
fn a_ledger_row_that_disappears_is_always_caught() {
    is_always_caught("LedgerRowMissing", |events| {
        let (lost_user, lost_seq) = a_lasting_grant(events)?;
        let is_lost = |row: &Row| match row {
            Row::Ledger(row) => {
                matches!(&row.change, Change::Grant { user, seq } if *user == lost_user && *seq == lost_seq)
            }
            _ => false,
        };
        with_row(events, is_lost, |_| vec![])
    });
}

#[test]
fn a_missing_rev_is_always_caught() {
    is_always_caught("RevGap", |events| {
        find_ledger_row(events, 2)?;
        with_row(events, |row| matches!(row, Row::Ledger(row) if row.rev == 1), |_| vec![])
    });
}

fn find_ledger_row(events: &[Event], rev: u64) -> Option<&Event> {
    events.iter().find(|event| matches!(&event.step, Step::Row(Row::Ledger(row)) if row.rev == rev))
}

#[test]
fn a_repeated_rev_is_always_caught() {
    is_always_caught("RevRepeated", |events| {
        with_row(events, |row| matches!(row, Row::Ledger(_)), |row| vec![row.clone(), row])
    });
}

#[test]
fn a_rev_with_another_content_is_always_caught() {
    is_always_caught("RevConflict", |events| {
        let with_other_content = |row: Row| match row.clone() {
            Row::Ledger(mut other) => {
                other.content.push('!');
                vec![row, Row::Ledger(other)]
            }
            _ => vec![row],
        };
        with_row(events, |row| matches!(row, Row::Ledger(_)), with_other_content)
    });
}

#[test]
fn a_place_that_is_given_again_is_always_caught() {
    is_always_caught("PlaceGivenTwice", |events| {
        let (first, second) = find_pair(events, |(a, first), (b, second)| {
            matches!((first, second), (Answer::Entered { .. }, Answer::Entered { .. })) && a.call != b.call
        })?;
        events[second].step = events[first].step.clone();
        Some(())
    });
}

#[test]
fn somebody_through_before_who_waits_ahead_is_always_caught() {
    is_always_caught("LineOvertaken", |events| {
        let ends = answered(events);
        // Only users who entered once, and know their place, can be compared for certain.
        let place_of = |user: &str| {
            let enters =
                |event: &&Event| matches!(&event.step, Step::Invoke(Call::Enter(c)) if c.user == user);
            let mut answers = ends.iter().filter(|op| matches!(&op.call, Call::Enter(c) if c.user == user));
            match (events.iter().filter(enters).count(), answers.next().map(|op| &events[op.answer].step)) {
                (1, Some(Step::Ok(Answer::Entered { place }))) => Some(*place),
                _ => None,
            }
        };
        let behind = |ahead: &str, other: &str| match (place_of(ahead), place_of(other)) {
            (Some(ahead), Some(other)) => ahead < other,
            _ => false,
        };
        let (waiting, passing) = find_pair(events, |(a, first), (b, second)| match (&a.call, &b.call) {
            (Call::Look(ahead), Call::Look(other)) => {
                first == &Answer::LookAdmitted
                    && second != &Answer::LookAdmitted
                    && b.at < a.invoked
                    && behind(&ahead.user, &other.user)
            }
            _ => false,
        })?;
        events[waiting].step = Step::Ok(Answer::LookWaiting);
        events[passing].step = Step::Ok(Answer::LookAdmitted);
        Some(())
    });
}
