//! What became of everybody.

use std::collections::BTreeMap;

use super::super::super::answer::Answer;
use super::super::super::row::Fate;
use super::super::super::violation::Violation;
use super::super::{Bounds, Op, Report, count};
use super::pace::Passing;
use super::{Line, Terms, User};

/// Somebody with one place.
struct Person<'o> {
    name: &'o str,
    place: u64,
    known: &'o User<'o>,
    entered: &'o Op<'o>,
}

pub(super) fn judge<'o>(
    name: &str,
    line: &'o Line<'o>,
    terms: &Terms,
    fates: &BTreeMap<u64, Fate>,
    listing: &Op<'_>,
    bounds: &Bounds,
    report: &mut Report,
) {
    let passing = Passing::of(line);
    for person in people(line) {
        match fates.get(&person.place) {
            None => judge_lost(name, &person, listing, report),
            Some(Fate::Admitted) => judge_kept(name, line, &person, terms, report),
            Some(Fate::Left) => judge_left(name, &person, listing, report),
            Some(Fate::Skipped) => {
                judge_seen(name, line, &person, terms, &passing, report);
                judge_watching(name, &person, bounds, report);
            }
        }
        judge_altered(name, &person, fates.get(&person.place), listing, report);
    }
    judge_invented(name, line, fates, listing, report);
    judge_count(name, line, fates, listing, report);
}

fn people<'o>(line: &'o Line<'o>) -> impl Iterator<Item = Person<'o>> {
    line.users.iter().filter_map(|(name, known)| {
        let (place, entered) = known.only_place()?;
        Some(Person { name, place, known, entered })
    })
}

fn judge_lost(name: &str, person: &Person<'_>, listing: &Op<'_>, report: &mut Report) {
    if person.entered.last_heard_of() < listing.invoked {
        report.add(Violation::PlaceLost {
            line: name.to_owned(),
            user: person.name.to_owned(),
            place: person.place,
            by: person.entered.witness(),
            listing: listing.witness(),
        });
    }
}

fn judge_left(name: &str, person: &Person<'_>, listing: &Op<'_>, report: &mut Report) {
    if person.known.leaves.is_empty() {
        report.add(Violation::LeftWithoutAsking {
            line: name.to_owned(),
            user: person.name.to_owned(),
            place: person.place,
            listing: listing.witness(),
        });
    }
}

/// Whoever was told to be waiting was seen at that moment, and is not passed over within the grace period.
fn judge_seen(
    name: &str,
    line: &Line<'_>,
    person: &Person<'_>,
    terms: &Terms,
    passing: &Passing,
    report: &mut Report,
) {
    let was_told = person.known.looks_answered(&Answer::LookWaiting).map(|(_, look)| look);
    let Some(seen) = was_told.chain([person.entered]).max_by_key(|op| op.invoked) else { return };
    let (Some(passed_by), Some(grace)) = (passing.until(person.place), terms.grace) else { return };
    let ago = passed_by.saturating_sub(seen.invoked);
    let brought_forward = line.clock_sets_within(seen.invoked, passed_by) * (grace / 2);
    if ago.saturating_add(brought_forward) < grace {
        report.add(Violation::SkippedThoughSeen {
            line: name.to_owned(),
            user: person.name.to_owned(),
            place: person.place,
            seen: seen.witness(),
            ago_ns: ago,
        });
    }
}

/// Whoever was admitted and comes within the grace period finds it so.
fn judge_kept(name: &str, line: &Line<'_>, person: &Person<'_>, terms: &Terms, report: &mut Report) {
    let known = person.known;
    let Some((answered, gone)) = known.looks_answered(&Answer::LookGone).min_by_key(|(at, _)| *at) else {
        return;
    };
    let was_told = known.looks_answered(&Answer::LookWaiting).map(|(_, look)| look).chain([person.entered]);
    let was_told = was_told.filter(|look| look.invoked < gone.invoked).max_by_key(|look| look.invoked);
    let (Some(waiting), Some(grace)) = (was_told, terms.grace) else { return };
    let has_ended_it = known.leaves.iter().chain(&known.finishes).any(|end| end.invoked < answered);
    let may_have_been_told = known.looks.iter().any(|look| look.is_unknown())
        || known.looks_answered(&Answer::LookAdmitted).next().is_some();
    let brought_forward = line.clock_sets_within(waiting.invoked, answered) * (grace / 2);
    let within = (answered - waiting.invoked).saturating_add(brought_forward);
    if !has_ended_it && !may_have_been_told && gone.queued.is_none() && within < grace {
        report.add(Violation::AdmissionLost {
            line: name.to_owned(),
            user: person.name.to_owned(),
            place: person.place,
            waiting: waiting.witness(),
            gone: gone.witness(),
        });
    }
}

/// A wait that was confirmed and ended with nothing is somebody who was there all the time.
fn judge_watching(name: &str, person: &Person<'_>, bounds: &Bounds, report: &mut Report) {
    let watched = person.known.looks_answered(&Answer::LookGone).find(|(_, look)| look.queued.is_some());
    if let (true, Some((_, watching))) = (bounds.watchers_are_seen, watched) {
        let (line, user, watching) = (name.to_owned(), person.name.to_owned(), watching.witness());
        report.add(Violation::SkippedWhileWatching { line, user, watching });
    }
}

/// Whoever was told to be admitted was.
fn judge_altered(
    name: &str,
    person: &Person<'_>,
    fate: Option<&Fate>,
    listing: &Op<'_>,
    report: &mut Report,
) {
    let told = person.known.looks_answered(&Answer::LookAdmitted).next();
    if let (Some(fate @ (Fate::Left | Fate::Skipped)), Some((_, by))) = (fate, told) {
        report.add(Violation::FateAltered {
            line: name.to_owned(),
            user: person.name.to_owned(),
            place: person.place,
            fate: if *fate == Fate::Left { "left" } else { "passed over" },
            by: by.witness(),
            listing: listing.witness(),
        });
    }
}

/// Every place was given to somebody: to one who was told, or to one of those who never heard.
fn judge_invented(
    name: &str,
    line: &Line<'_>,
    fates: &BTreeMap<u64, Fate>,
    listing: &Op<'_>,
    report: &mut Report,
) {
    let mut unclaimed = fates.clone();
    let mut unknown = 0;
    for enter in line.users.values().flat_map(|user| &user.enters) {
        match enter.answer() {
            Some((_, Answer::Entered { place })) => drop(unclaimed.remove(place)),
            _ => unknown += 1,
        }
    }
    for place in unclaimed.keys().skip(unknown) {
        let (line, listing) = (name.to_owned(), listing.witness());
        report.add(Violation::PlaceInvented { line, place: *place, listing });
    }
}

/// A line that has passed all who are listed as admitted has counted them, once each.
fn judge_count(
    name: &str,
    line: &Line<'_>,
    fates: &BTreeMap<u64, Fate>,
    listing: &Op<'_>,
    report: &mut Report,
) {
    let listed = count(fates.values().filter(|fate| **fate == Fate::Admitted).count());
    let last = fates.iter().rfind(|(_, fate)| **fate == Fate::Admitted).map_or(0, |(place, _)| *place);
    if let Some(seen) = line.looks.iter().find(|seen| seen.head > last)
        && seen.admitted != listed
    {
        report.add(Violation::AdmittedUncounted {
            line: name.to_owned(),
            listed,
            admitted: seen.admitted,
            by: seen.op.witness(),
            listing: listing.witness(),
        });
    }
}
