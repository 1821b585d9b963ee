//! What an entry and a look at the position cost when a thousand wait and when all do, and what everybody takes in memory.
//!
//! A thousand stay about a thousand: those who enter the short line do so in small groups, each in a line of its own.

use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::line::Ticket;

use super::enter::EnterWorker;
use super::hall::{Hall, stands_still};
use super::position::{AskWorker, Way};
use super::{Stage, gate_at, longest};
use crate::bench::command_count::{CommandCounter, Effort};
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::report::{Bar, Figure, Report, Spread};
use crate::bench::slice::{Slice, work_in_tasks, work_so_often};
use crate::bench::stock::new_users;
use crate::bench::tally::Tallies;
use crate::bench::{Failure, used_memory};

/// How many wait in the short line.
const FEW: u64 = 1_000;

/// How many enter it before the next one is opened.
const GROUP: usize = 4_000;

/// How many tickets are shown, one after the other.
const TICKETS: usize = 1_000;

/// What may become of it when a thousand times as many wait.
const BAR: Bar = Bar::AtMost(1.5);

pub(super) async fn measure(
    stage: &Stage<'_>,
    report: &mut Report<impl std::io::Write>,
) -> Result<Vec<Figure>, Failure> {
    let gate = gate_at(stage.redis).await?;
    let empty = used_memory(stage.redis).await?;
    let mut long = Hall::open(&gate, "long", &stands_still()?).await?;
    let filling = long.fill(twelve_characters(stage.point.people));
    let ((), entering_ms) = stage.watchman.watch(filling).await?;
    let mut figures = vec![
        bytes_figure("bytes per person, ids like user-1234567", stage, empty, Some(200.0)).await?,
        longest::figure("longest script: entering, 512 a call, ms", entering_ms),
    ];
    long.let_some_leave().await?;
    let short = Hall::of(&gate, "short", FEW).await?;
    short.let_some_leave().await?;
    figures.extend(compare(stage, report, &gate, &short, &mut long).await?);
    figures.extend(longest::measure_long(stage, &long).await?);
    gate.shutdown().await;
    Ok(figures)
}

/// Ids as long as `user-1234567`, and none that anybody else has.
fn twelve_characters(people: u64) -> impl Iterator<Item = String> {
    (0..people).map(|person| format!("name-{person:07}"))
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
pub(super) async fn bytes_figure(
    name: &'static str,
    stage: &Stage<'_>,
    empty: u64,
    most: Option<f64>,
) -> Result<Figure, Failure> {
    let bytes = used_memory(stage.redis).await?.saturating_sub(empty);
    Ok(Figure { name, value: bytes as f64 / stage.point.people as f64, bar: most.map(Bar::AtMost) })
}

/// What is done, by whom, and what the figures are called.
struct Question {
    name: &'static str,
    is_entering: bool,
    is_crowd: bool,
    /// Whether there are just so many that the hash of all users is growing.
    is_growing: bool,
    figures: [&'static str; 2],
}

const QUESTIONS: [Question; 5] = [
    Question {
        name: "line: an entry, by how many wait",
        is_entering: true,
        is_crowd: true,
        is_growing: false,
        figures: [
            "time of an entry in a crowd, all waiting, of that at 1,000",
            "Redis' time for an entry in a crowd, all waiting, of that at 1,000",
        ],
    },
    Question {
        name: "line: an entry, by how many wait",
        is_entering: true,
        is_crowd: false,
        is_growing: false,
        figures: [
            "time of an entry alone, all waiting, of that at 1,000",
            "Redis' time for an entry alone, all waiting, of that at 1,000",
        ],
    },
    Question {
        name: "line: a position, by how many wait",
        is_entering: false,
        is_crowd: true,
        is_growing: false,
        figures: [
            "time of a position in a crowd, all waiting, of that at 1,000",
            "Redis' time for a position in a crowd, all waiting, of that at 1,000",
        ],
    },
    Question {
        name: "line: a position, by how many wait",
        is_entering: false,
        is_crowd: false,
        is_growing: false,
        figures: [
            "time of a position alone, all waiting, of that at 1,000",
            "Redis' time for a position alone, all waiting, of that at 1,000",
        ],
    },
    Question {
        name: "line: an entry, while Redis doubles the table of all users",
        is_entering: true,
        is_crowd: true,
        is_growing: true,
        figures: [
            "time of an entry in a crowd, while the table doubles, of that at 1,000",
            "Redis' time for an entry in a crowd, while the table doubles, of that at 1,000",
        ],
    },
];

async fn compare(
    stage: &Stage<'_>,
    report: &mut Report<impl std::io::Write>,
    gate: &Gate,
    short: &Hall,
    long: &mut Hall,
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for question in QUESTIONS {
        if question.is_growing {
            // Redis doubles a table as soon as it has more users than slots.
            let arrived = long.line.status().await?.ok_or("the line is not there")?.arrived;
            long.fill(new_users((arrived.next_power_of_two() - arrived) + 1)).await?;
        }
        let long = &*long;
        let contenders: Vec<Box<dyn Contender + '_>> = if question.is_entering {
            let entering = |long| Entering { gate, counter: stage.counter, long };
            vec![Box::new(entering(None)), Box::new(entering(Some(long)))]
        } else {
            vec![
                Box::new(Showing { name: FEW_WAIT, tickets: short.tickets(TICKETS).await? }),
                Box::new(Showing { name: ALL_WAIT, tickets: long.tickets(TICKETS).await? }),
            ]
        };
        let tasks = if question.is_crowd { stage.point.tasks } else { 1 };
        let case = Case { name: question.name.into(), tasks, contenders };
        let rounds = stage.run(&case, report).await?;
        figures.extend(question.figures_of(&rounds));
    }
    Ok(figures)
}

impl Question {
    fn figures_of(&self, rounds: &[Vec<Slice>]) -> [Figure; 2] {
        let median =
            |ratio: fn(&[Slice]) -> f64| Spread::of(rounds.iter().map(|slices| ratio(slices))).median;
        let by_time = median(|slices| slices[0].per_second / slices[1].per_second);
        let by_redis = median(|slices| match (slices[0].server_us, slices[1].server_us) {
            (Some(few), Some(all)) => all / few,
            _ => f64::NAN,
        });
        let [time, redis] = self.figures;
        [(time, by_time), (redis, by_redis)].map(|(name, value)| Figure {
            name,
            value,
            bar: (!self.is_growing).then_some(BAR),
        })
    }
}

const FEW_WAIT: &str = "1,000 wait";
const ALL_WAIT: &str = "all wait (1,000,000 unless --people)";
const OUR_COMMANDS: &[&str] = &["eval", "evalsha"];

/// Enters, in groups whose time alone counts.
struct Entering<'a> {
    gate: &'a Gate,
    counter: &'a CommandCounter,
    /// Where all wait; otherwise in a new line for every group.
    long: Option<&'a Hall>,
}

impl Contender for Entering<'_> {
    fn name(&self) -> &'static str {
        if self.long.is_some() { ALL_WAIT } else { FEW_WAIT }
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        OUR_COMMANDS
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        Box::pin(async move {
            let (mut all, mut spent, mut effort) = (Tallies::new()?, Duration::ZERO, Effort::default());
            while spent < length {
                let fresh = match self.long {
                    Some(_) => None,
                    None => Some(Hall::of(self.gate, &fresh_name(), FEW).await?),
                };
                if let Some(hall) = self.long.or(fresh.as_ref()) {
                    let group = self.enter_as_group(hall, tasks).await?;
                    all.add_all(&group.tallies)?;
                    (spent, effort) = (spent + group.took, effort + group.effort);
                }
                let Some(fresh) = fresh else {
                    // One group in each round, so that the line stays about as long as it was.
                    break;
                };
                fresh.close().await?;
            }
            (all.seconds, all.effort) = (Some(spent.as_secs_f64()), Some(effort));
            Ok(all)
        })
    }
}

/// What one group did.
struct Group {
    tallies: Tallies,
    took: Duration,
    effort: Effort,
}

impl Entering<'_> {
    async fn enter_as_group(&self, hall: &Hall, tasks: usize) -> Result<Group, Failure> {
        let clock = Clock::system();
        // So that what has to be known of the line is known.
        EnterWorker(hall.line.clone()).work().await?;
        let worker = |_| Box::new(EnterWorker(hall.line.clone())) as Box<dyn Worker>;
        let before = self.counter.read().await?;
        let start = clock.monotonic();
        let times = (GROUP / tasks).clamp(1, usize::try_from(FEW)?);
        let tallies = work_so_often((0..tasks).map(worker), times).await?;
        let took = clock.monotonic().since(start);
        let effort = self.counter.read().await?.since(&before, OUR_COMMANDS);
        Ok(Group { tallies, took, effort })
    }
}

/// A name that no line has.
fn fresh_name() -> String {
    new_users(1).next().unwrap_or_default()
}

struct Showing {
    name: &'static str,
    tickets: Vec<Ticket>,
}

impl Contender for Showing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        OUR_COMMANDS
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let for_each = self.tickets.len().div_ceil(tasks);
        let workers: Vec<_> = self
            .tickets
            .chunks(for_each)
            .map(|tickets| AskWorker::boxed(tickets.to_vec(), Way::Show))
            .collect();
        Box::pin(work_in_tasks(workers.into_iter(), length))
    }
}
