//! How fast, and how many at once.

use std::collections::BTreeMap;

use super::super::super::answer::Answer;
use super::super::super::row::Fate;
use super::super::super::violation::Violation;
use super::super::{Op, Report, count};
use super::{Line, Seen, Terms, User};

/// From when to when each place was passed.
pub(super) struct Passing {
    /// The heads that were seen, the lowest first, with the last moment at which a look at one so low or lower was sent.
    ahead: Vec<(u64, u64)>,
    /// The same, with the first moment at which one so high or higher was answered.
    behind: Vec<(u64, u64)>,
}

impl Passing {
    pub(super) fn of(line: &Line<'_>) -> Self {
        let mut by_head: Vec<&Seen<'_>> = line.looks.iter().collect();
        by_head.sort_by_key(|seen| seen.head);
        let (mut latest, mut earliest) = (0, u64::MAX);
        let ahead = by_head.iter().map(|seen| {
            latest = latest.max(seen.op.invoked);
            (seen.head, latest)
        });
        let ahead = ahead.collect();
        let behind = by_head.iter().rev().map(|seen| {
            earliest = earliest.min(seen.answered);
            (seen.head, earliest)
        });
        let mut behind: Vec<_> = behind.collect();
        behind.reverse();
        Self { ahead, behind }
    }

    /// Not before this moment.
    fn from(&self, place: u64) -> Option<u64> {
        let looks = self.ahead.partition_point(|(head, _)| *head <= place);
        Some(self.ahead.get(looks.checked_sub(1)?)?.1)
    }

    /// Not after this moment.
    pub(super) fn until(&self, place: u64) -> Option<u64> {
        let looks = self.behind.partition_point(|(head, _)| *head <= place);
        Some(self.behind.get(looks)?.1)
    }
}

/// One more than a batch was certainly not admitted in less than the time of one.
pub(super) fn judge_pace(
    name: &str,
    line: &Line<'_>,
    terms: &Terms,
    fates: &BTreeMap<u64, Fate>,
    report: &mut Report,
) {
    let passing = Passing::of(line);
    let admitted: Vec<u64> =
        fates.iter().filter(|(_, fate)| **fate == Fate::Admitted).map(|(place, _)| *place).collect();
    report.judged.timed_admissions +=
        count(admitted.iter().filter(|place| passing.until(**place).is_some()).count());
    let mut reported_up_to = 0;
    for (at, first) in admitted.iter().enumerate() {
        let Some(from) = passing.from(*first) else { continue };
        if let Some((found, last, window)) = too_many(line, terms, &passing, &admitted[at..], from)
            && *first >= reported_up_to
        {
            report.add(Violation::AdmittedTooFast {
                line: name.to_owned(),
                found,
                allowed: count(terms.batch),
                first: *first,
                last,
                window_ns: window,
                every_ns: terms.every,
            });
            // One flood is one violation.
            reported_up_to = last;
        }
    }
}

/// Whether more of these than may be were admitted in less than the time of a batch, of whom the first not before `from`: how
/// many, up to which place, in how much time at most.
fn too_many(
    line: &Line<'_>,
    terms: &Terms,
    passing: &Passing,
    admitted: &[u64],
    from: u64,
) -> Option<(u64, u64, u64)> {
    let mut early = 0;
    loop {
        let beyond = terms.batch.saturating_mul(usize::try_from(early).ok()? + 1);
        let last = *admitted.get(beyond)?;
        let until = passing.until(last)?;
        let window = until.saturating_sub(from);
        if window >= terms.every {
            return None;
        }
        let sets = line.clock_sets_within(from, until);
        if sets <= early {
            return Some((count(beyond + 1), last, window));
        }
        early = sets;
    }
}

/// Somebody who was admitted for certain: from the answer that says so to whatever may have ended it.
struct Stay<'o> {
    from: u64,
    to: u64,
    op: &'o Op<'o>,
}

/// Never more at once than may be: as the line says, and as they saw it themselves.
pub(super) fn judge_active(name: &str, line: &Line<'_>, terms: &Terms, report: &mut Report) {
    let allowed = terms.max_active.unwrap_or(u64::MAX);
    for seen in line.looks.iter().filter(|seen| seen.active > allowed) {
        let (line, active, by) = (name.to_owned(), seen.active, seen.op.witness());
        report.add(Violation::TooManyActive { line, active, allowed, by });
    }
    let mut stays: Vec<_> = line.users.values().filter_map(|user| stay_of(user, line, terms)).collect();
    stays.sort_by_key(|stay| stay.from);
    let mut ends: Vec<u64> = Vec::new();
    for stay in &stays {
        ends.retain(|end| *end > stay.from);
        ends.push(stay.to);
        let active = count(ends.len());
        report.judged.most_active = report.judged.most_active.max(active);
        if active > allowed {
            let (line, by) = (name.to_owned(), stay.op.witness());
            report.add(Violation::TooManyActive { line, active, allowed, by });
        }
    }
}

fn stay_of<'o>(user: &User<'o>, line: &Line<'_>, terms: &Terms) -> Option<Stay<'o>> {
    user.only_place()?;
    let (from, op) = user.looks_answered(&Answer::LookAdmitted).min_by_key(|(at, _)| *at)?;
    let by_itself = op.invoked.saturating_add(terms.pass_ttl);
    let by_the_user = user.finishes.iter().chain(&user.leaves).map(|op| op.invoked).min();
    let by_the_clock =
        line.clock_set.iter().map(|(begun, _)| *begun).filter(|begun| *begun >= op.invoked).min();
    let to = [Some(by_itself), by_the_user, by_the_clock].into_iter().flatten().min()?;
    (from < to).then_some(Stay { from, to, op })
}
