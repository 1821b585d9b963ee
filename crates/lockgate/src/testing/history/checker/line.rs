//! Lines: places are given once and rise with time, and who has the lower place is through first.
//!
//! Somebody may leave and enter again, so a user can have had several places. A claim then rests on the one that
//! makes it weakest: the highest for who waits, the lowest for who is through.

use std::collections::{BTreeMap, HashMap};

use super::super::answer::Answer;
use super::super::call::Call;
use super::super::violation::Violation;
use super::order::{Numbered, Tally, out_of_order};
use super::{Bounds, Op, Report, count};

/// What happened in one line.
#[derive(Default)]
struct Line<'o> {
    users: BTreeMap<&'o str, User<'o>>,
}

/// What is known of one user.
#[derive(Default)]
struct User<'o> {
    /// Attempts to enter that happened or may have.
    enters: Vec<&'o Op<'o>>,
    /// Operations during which the user was certainly still waiting at some time.
    waiting: Vec<&'o Op<'o>>,
    /// The operation that first showed that the user is through, and when.
    through: Option<(u64, &'o Op<'o>)>,
}

/// A place that somebody was given.
struct Place<'o> {
    place: u64,
    user: &'o str,
    /// The first attempt that may have been given it.
    from: u64,
    until: u64,
    op: &'o Op<'o>,
}

/// Somebody who was still waiting when `op` was sent, at `place` or before it.
struct Waiter<'o> {
    user: &'o str,
    place: u64,
    op: &'o Op<'o>,
}

/// Somebody who was through at a time, with `place` or a later one.
struct Through<'o> {
    user: &'o str,
    place: u64,
    at: u64,
    op: &'o Op<'o>,
}

pub(super) fn judge<'o>(ops: &'o [Op<'o>], bounds: &Bounds, report: &mut Report) {
    let mut lines: BTreeMap<&str, Line<'o>> = BTreeMap::new();
    for op in ops {
        match op.call {
            Call::Enter(call) => lines.entry(&call.line).or_default().note_enter(op, &call.user),
            Call::Look(call) => lines.entry(&call.line).or_default().note_look(op, &call.user),
            Call::Admit(call) => lines.entry(&call.line).or_default().note_admit(op),
            _ => {}
        }
    }
    for (name, line) in &lines {
        judge_places(name, line, report);
        judge_order(name, line, bounds, report);
        judge_uninvited(name, line, report);
    }
}

impl<'o> Line<'o> {
    fn note_enter(&mut self, op: &'o Op<'o>, user: &'o str) {
        if op.is_unknown() || op.answer().is_some() {
            self.users.entry(user).or_default().enters.push(op);
        }
    }

    fn note_look(&mut self, op: &'o Op<'o>, user: &'o str) {
        let user = self.users.entry(user).or_default();
        match op.answer() {
            Some((_, Answer::LookWaiting)) => user.waiting.push(op),
            Some((at, Answer::LookAdmitted)) => user.note_through(at, op),
            _ => {}
        }
        if op.queued.is_some() {
            user.waiting.push(op);
        }
    }

    /// Whom a call admits was waiting until then.
    fn note_admit(&mut self, op: &'o Op<'o>) {
        if let Some((at, Answer::AdmittedUsers { users })) = op.answer() {
            for user in users {
                let user = self.users.entry(user).or_default();
                user.waiting.push(op);
                user.note_through(at, op);
            }
        }
    }

    /// Each place of each user once, by place.
    fn places(&self) -> Vec<Place<'o>> {
        let mut places: Vec<Place<'o>> =
            self.users.iter().flat_map(|(user, known)| known.places(user)).collect();
        places.sort_by_key(|place| place.place);
        places
    }
}

impl<'o> User<'o> {
    fn note_through(&mut self, at: u64, op: &'o Op<'o>) {
        if self.through.is_none_or(|(earlier, _)| at < earlier) {
            self.through = Some((at, op));
        }
    }

    fn places(&self, user: &'o str) -> Vec<Place<'o>> {
        let first_unknown = self.enters.iter().filter(|op| op.is_unknown()).map(|op| op.invoked).min();
        let mut places: BTreeMap<u64, Place<'o>> = BTreeMap::new();
        for op in &self.enters {
            let Some((until, Answer::Entered { place })) = op.answer() else { continue };
            let from = first_unknown.map_or(op.invoked, |unknown| unknown.min(op.invoked));
            let known = places.entry(*place).or_insert(Place { place: *place, user, from, until, op });
            known.from = known.from.min(from);
            if until < known.until {
                (known.until, known.op) = (until, op);
            }
        }
        places.into_values().collect()
    }

    /// The highest place that the user can have had during `op`; none if that cannot be known.
    fn highest_place_during(&self, op: &Op<'_>) -> Option<u64> {
        let (ended, _) = op.answer().unwrap_or((u64::MAX, &Answer::LookGone));
        let mut highest = None;
        for enter in self.enters.iter().filter(|enter| enter.invoked <= ended) {
            let (_, Answer::Entered { place }) = enter.answer()? else { return None };
            highest = highest.max(Some(*place));
        }
        highest
    }

    /// The lowest place that the user can ever have had; none if that cannot be known.
    fn lowest_place(&self) -> Option<u64> {
        let mut lowest: Option<u64> = None;
        for enter in &self.enters {
            let (_, Answer::Entered { place }) = enter.answer()? else { return None };
            lowest = Some(lowest.map_or(*place, |low| low.min(*place)));
        }
        lowest
    }
}

fn judge_places(line: &str, history: &Line<'_>, report: &mut Report) {
    let places = history.places();
    report.judged.places += count(places.len());
    for pair in places.windows(2) {
        let [first, second] = pair else { continue };
        if first.place == second.place {
            report.add(Violation::PlaceGivenTwice {
                line: line.to_owned(),
                place: first.place,
                first_user: first.user.to_owned(),
                first: first.op.witness(),
                second_user: second.user.to_owned(),
                second: second.op.witness(),
            });
        }
    }
    let numbered: Vec<Numbered> =
        places.iter().map(|p| Numbered { from: p.from, until: p.until, number: p.place }).collect();
    for (earlier, later) in out_of_order(&numbered) {
        let (earlier, later) = (&places[earlier], &places[later]);
        report.add(Violation::PlaceWentBack {
            line: line.to_owned(),
            place: later.place,
            later: later.op.witness(),
            higher: earlier.place,
            earlier: earlier.op.witness(),
        });
    }
}

fn judge_order(line: &str, history: &Line<'_>, bounds: &Bounds, report: &mut Report) {
    let through = everybody_through(history);
    report.judged.admissions += count(through.len());

    let mut passed = Tally::over(through.iter().map(|user| user.place));
    let mut next = through.iter().peekable();
    let mut last_in_line: Option<&Through<'_>> = None;
    for waiter in everybody_waiting(history) {
        while let Some(user) = next.next_if(|user| user.at < waiter.op.invoked) {
            passed.add(user.place);
            if last_in_line.is_none_or(|last| last.place < user.place) {
                last_in_line = Some(user);
            }
        }
        let overtakes = passed.greater_than(waiter.place);
        if let Some(overtaker) = last_in_line
            && overtakes > bounds.line_overtakes
        {
            report.add(Violation::LineOvertaken {
                line: line.to_owned(),
                user: waiter.user.to_owned(),
                place: waiter.place,
                waiting: waiter.op.witness(),
                overtakes,
                allowed: bounds.line_overtakes,
                overtaker: overtaker.user.to_owned(),
                admission: overtaker.op.witness(),
            });
        }
    }
}

/// Who was through and with which place, by time.
fn everybody_through<'o>(line: &Line<'o>) -> Vec<Through<'o>> {
    let mut through = Vec::new();
    for (user, known) in &line.users {
        if let (Some((at, op)), Some(place)) = (known.through, known.lowest_place()) {
            through.push(Through { user, place, at, op });
        }
    }
    through.sort_by_key(|user| user.at);
    through
}

/// The last time that somebody was waiting at a place, by time.
fn everybody_waiting<'o>(line: &Line<'o>) -> Vec<Waiter<'o>> {
    let mut waiting = Vec::new();
    for (user, known) in &line.users {
        let mut last: HashMap<u64, &'o Op<'o>> = HashMap::new();
        for op in &known.waiting {
            let Some(place) = known.highest_place_during(op) else { continue };
            let latest = last.entry(place).or_insert(op);
            if latest.invoked < op.invoked {
                *latest = op;
            }
        }
        waiting.extend(last.into_iter().map(|(place, op)| Waiter { user, place, op }));
    }
    waiting.sort_by_key(|waiter| (waiter.op.invoked, waiter.place));
    waiting
}

fn judge_uninvited(line: &str, history: &Line<'_>, report: &mut Report) {
    for (user, known) in &history.users {
        if let Some((at, op)) = known.through
            && !known.enters.iter().any(|enter| enter.invoked <= at)
        {
            report.add(Violation::AdmittedWithoutEntering {
                line: line.to_owned(),
                user: (*user).to_owned(),
                by: op.witness(),
            });
        }
    }
}
