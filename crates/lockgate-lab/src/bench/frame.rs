//! Cases, contenders, rounds.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::command_count::CommandCounter;
use super::report::Report;
use super::slice::{Slice, measure_slice};
use super::tally::Tallies;
use super::yardstick::Yardstick;
use super::{Failure, report};

/// What a contender is in its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// As fast as it can be: what the others are measured against.
    Limit,
    /// What people use today.
    Peer,
    /// Ours.
    Ours,
}

/// One way to do what the case asks for.
pub(super) trait Contender: Send + Sync {
    fn name(&self) -> &'static str;
    fn role(&self) -> Role;
    /// The commands that this contender's clients send themselves. Those that only its scripts call are not listed.
    fn client_commands(&self) -> &'static [&'static str];
    /// What has to be done before a turn and is not measured.
    fn prepare(&self, _tasks: usize, _length: Duration) -> Doing<'_, ()> {
        Box::pin(async { Ok(()) })
    }
    /// Does it over and over in so many tasks, for so long.
    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies>;
}

pub(super) type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Somebody who does it over and over.
pub(super) trait Worker: Send {
    /// Does it once (or, when it works in batches, a few times); says how many times.
    fn work(&mut self) -> Doing<'_, u64>;
}

/// A question that all its contenders answer in their own way.
pub(super) struct Case<'a> {
    pub(super) name: String,
    pub(super) tasks: usize,
    /// The first is the limit.
    pub(super) contenders: Vec<Box<dyn Contender + 'a>>,
}

/// How long each turn is, and how many there are.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    slice: Duration,
    rounds: u32,
}

impl Pace {
    pub(super) fn new(time_per_contender: Duration, rounds: u32) -> Self {
        let rounds = rounds.max(1);
        Self { slice: time_per_contender / rounds, rounds }
    }
}

/// Runs all rounds of a case; every finished slice goes into the report at once. Answers the slices of all rounds but the
/// warm-up, in the order of the contenders.
pub(super) async fn run_case(
    case: &Case<'_>,
    pace: &Pace,
    counter: &CommandCounter,
    report: &mut Report<impl std::io::Write>,
) -> Result<Vec<Vec<Slice>>, Failure> {
    let yardstick = Yardstick::default();
    let mut rounds = Vec::new();
    for round in 0..=pace.rounds {
        let mut slices = Vec::with_capacity(case.contenders.len());
        for turn in 0..case.contenders.len() {
            let place = turn_order(turn, round, case.contenders.len());
            let contender = case.contenders[place].as_ref();
            let yardstick_us = yardstick.measure();
            let slice = measure_slice(contender, case.tasks, pace.slice, yardstick_us, counter).await?;
            let is_warm_up = round == 0;
            report.slice(&report::SliceLine { case, contender, round, is_warm_up, slice: &slice })?;
            slices.push((place, slice));
        }
        slices.sort_by_key(|(place, _)| *place);
        if round > 0 {
            rounds.push(slices.into_iter().map(|(_, slice)| slice).collect::<Vec<Slice>>());
        }
    }
    report.case(case, &rounds)?;
    Ok(rounds)
}

/// Rotates, and turns round every other time, so that nobody is always first or always follows the same neighbour.
fn turn_order(turn: usize, round: u32, contenders: usize) -> usize {
    let place = (turn + usize::try_from(round).unwrap_or(0)) % contenders;
    if round.is_multiple_of(2) { place } else { contenders - 1 - place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_gives_everybody_one_turn_and_nobody_is_always_first() {
        let rounds: Vec<Vec<_>> =
            (0..3).map(|round| (0..3).map(|turn| turn_order(turn, round, 3)).collect()).collect();
        assert_eq!(rounds, [[0, 1, 2], [1, 0, 2], [2, 0, 1]]);
    }
}
