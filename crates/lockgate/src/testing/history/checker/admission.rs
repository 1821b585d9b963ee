//! Lines whose terms are known: the order of admission is the order of arrival without those who left or were passed over,
//! nobody is admitted twice, nobody is lost, never more than so many are admitted at once, and never more than so many in any
//! stretch of the time of one batch. (That nobody overtakes is judged in `line.rs`.)
//!
//! A place was passed after the last look at the line that still had it ahead was sent, and before the first answer that has it
//! behind: between those two moments, whoever did it. A clock that is set may bring the line's own time forward by a step, which
//! is one batch early and half of the grace period; what lies in such a window is allowed that much more.

mod fate;
mod pace;

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::answer::Answer;
use super::super::call::{Call, OpenLine};
use super::super::row::{Fate, Row};
use super::super::violation::Violation;
use super::order::{Numbered, out_of_order};
use super::{Bounds, Op, Report, count};

/// What happened in one line.
#[derive(Default)]
struct Line<'o> {
    opened: Vec<&'o OpenLine>,
    looks: Vec<Seen<'o>>,
    /// When the clock was set: from when to when it may have been.
    clock_set: Vec<(u64, u64)>,
    listing: Option<&'o Op<'o>>,
    users: BTreeMap<&'o str, User<'o>>,
}

/// The line as somebody saw it.
struct Seen<'o> {
    head: u64,
    admitted: u64,
    active: u64,
    answered: u64,
    op: &'o Op<'o>,
}

/// What is known of one user.
#[derive(Default)]
struct User<'o> {
    enters: Vec<&'o Op<'o>>,
    looks: Vec<&'o Op<'o>>,
    leaves: Vec<&'o Op<'o>>,
    finishes: Vec<&'o Op<'o>>,
}

/// How the line admits.
struct Terms {
    batch: usize,
    every: u64,
    max_active: Option<u64>,
    grace: Option<u64>,
    pass_ttl: u64,
}

pub(super) fn judge<'o>(ops: &'o [Op<'o>], bounds: &Bounds, report: &mut Report) {
    let mut lines: BTreeMap<&str, Line<'o>> = BTreeMap::new();
    for op in ops.iter().filter(|op| op.answer().is_some() || op.is_unknown()) {
        if let Some(name) = line_of(op.call) {
            lines.entry(name).or_default().note(op);
        }
    }
    for (name, line) in &lines {
        judge_looks(name, line, report);
        judge_twice(name, line, report);
        let Some(terms) = line.terms() else { continue };
        pace::judge_active(name, line, &terms, report);
        if let Some(listing) = line.listing {
            let fates = fates_in(listing);
            report.judged.listed_places += count(fates.len());
            pace::judge_pace(name, line, &terms, &fates, report);
            fate::judge(name, line, &terms, &fates, listing, bounds, report);
        }
    }
}

fn line_of(call: &Call) -> Option<&str> {
    match call {
        Call::OpenLine(call) => Some(&call.line),
        Call::ReadLine(call) => Some(&call.line),
        Call::SetClock(call) => Some(&call.line),
        Call::Enter(call) => Some(&call.line),
        Call::Look(call) => Some(&call.line),
        Call::Leave(call) => Some(&call.line),
        Call::Finish(call) => Some(&call.line),
        Call::ListPlaces(call) => Some(&call.line),
        _ => None,
    }
}

impl<'o> Line<'o> {
    fn note(&mut self, op: &'o Op<'o>) {
        match (op.call, op.answer()) {
            (Call::OpenLine(call), _) => self.opened.push(call),
            (Call::ReadLine(_), Some((answered, Answer::LineStands { head, admitted, active }))) => {
                let (head, admitted, active) = (*head, *admitted, *active);
                self.looks.push(Seen { head, admitted, active, answered, op });
            }
            (Call::SetClock(_), set) => self.clock_set.push((op.invoked, set.map_or(u64::MAX, |(at, _)| at))),
            (Call::ListPlaces(_), Some(_)) => self.listing = Some(op),
            (Call::Enter(call), _) => self.user(&call.user).enters.push(op),
            (Call::Look(call), _) => self.user(&call.user).looks.push(op),
            (Call::Leave(call), _) => self.user(&call.user).leaves.push(op),
            (Call::Finish(call), _) => self.user(&call.user).finishes.push(op),
            _ => {}
        }
    }

    fn user(&mut self, user: &'o str) -> &mut User<'o> {
        self.users.entry(user).or_default()
    }

    /// None when it is not known, or was changed.
    fn terms(&self) -> Option<Terms> {
        let [OpenLine { batch, every_ms, max_active, grace_ms, pass_ttl_ms, .. }] = self.opened[..] else {
            return None;
        };
        Some(Terms {
            batch: usize::try_from(*batch).ok()?,
            every: nanos(*every_ms),
            max_active: *max_active,
            grace: grace_ms.map(nanos),
            pass_ttl: nanos(*pass_ttl_ms),
        })
    }

    /// How often the clock was set, perhaps, in a stretch of time.
    fn clock_sets_within(&self, from: u64, to: u64) -> u64 {
        count(self.clock_set.iter().filter(|(begun, ended)| *begun <= to && *ended >= from).count())
    }
}

impl<'o> User<'o> {
    /// The place of somebody who entered once, as far as anybody can know, and the operation that says so first.
    fn only_place(&self) -> Option<(u64, &'o Op<'o>)> {
        let mut place = None;
        for enter in &self.enters {
            let (_, Answer::Entered { place: given }) = enter.answer()? else { return None };
            match place {
                None => place = Some((*given, *enter)),
                Some((known, _)) if known == *given => {}
                Some(_) => return None,
            }
        }
        place
    }

    fn looks_answered(&self, answer: &Answer) -> impl Iterator<Item = (u64, &'o Op<'o>)> {
        self.looks
            .iter()
            .filter_map(move |op| op.answer().filter(|(_, said)| *said == answer).map(|(at, _)| (at, *op)))
    }
}

fn nanos(millis: u64) -> u64 {
    u64::try_from(Duration::from_millis(millis).as_nanos()).unwrap_or(u64::MAX)
}

fn fates_in(listing: &Op<'_>) -> BTreeMap<u64, Fate> {
    let of = |row: &&Row| match row {
        Row::Place(row) => Some((row.place, row.fate)),
        _ => None,
    };
    listing.rows.iter().filter_map(of).collect()
}

/// The head only rises, and passes at least everybody whom it admits.
fn judge_looks(name: &str, line: &Line<'_>, report: &mut Report) {
    for seen in line.looks.iter().filter(|seen| seen.admitted > seen.head) {
        report.add(Violation::MoreAdmittedThanPassed {
            line: name.to_owned(),
            admitted: seen.admitted,
            head: seen.head,
            by: seen.op.witness(),
        });
    }
    let numbered: Vec<Numbered> = line
        .looks
        .iter()
        .map(|seen| Numbered { from: seen.op.invoked, until: seen.answered, number: seen.head })
        .collect();
    for (earlier, later) in out_of_order(&numbered) {
        let (earlier, later) = (&line.looks[earlier], &line.looks[later]);
        report.add(Violation::HeadWentBack {
            line: name.to_owned(),
            head: later.head,
            later: later.op.witness(),
            higher: earlier.head,
            earlier: earlier.op.witness(),
        });
    }
}

/// Whoever has finished or left is not admitted any more, unless by entering anew.
fn judge_twice(name: &str, line: &Line<'_>, report: &mut Report) {
    for (user, known) in &line.users {
        let ends = known.finishes.iter().chain(&known.leaves);
        for end in ends.filter(|end| matches!(end.answer(), Some((_, Answer::Finished | Answer::Left)))) {
            let may_be_later = |enter: &&&Op<'_>| enter.answer().is_none_or(|(at, _)| at > end.invoked);
            let enters_anew = known.enters.iter().find(may_be_later).is_some();
            let ended_at = end.last_heard_of();
            let again = known.looks_answered(&Answer::LookAdmitted).find(|(_, look)| look.invoked > ended_at);
            if let (false, Some((_, again))) = (enters_anew, again) {
                let (line, user) = (name.to_owned(), (*user).to_owned());
                let (ended, again) = (end.witness(), again.witness());
                report.add(Violation::AdmittedTwice { line, user, ended, again });
            }
        }
    }
}
