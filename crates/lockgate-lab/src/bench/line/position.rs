//! Asking where one stands, in a line in which one in a hundred has left.

use std::time::Duration;

use lockgate::line::{Ticket, Whereabouts};
use redis::aio::MultiplexedConnection;

use super::hall::Hall;
use super::{LinePoint, gate_at};
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::stock::new_users;
use crate::bench::tally::Tallies;
use crate::bench::{Failure, NAMESPACE, patient_connection, remove_our_keys};

/// The places of the contenders in the case.
pub(super) const ZRANK: usize = 0;
pub(super) const GLANCES: usize = 1;
pub(super) const SHOWN: usize = 2;

pub(super) async fn case(redis: &str, point: LinePoint) -> Result<Case<'static>, Failure> {
    let people = point.people_asking();
    remove_our_keys(redis).await?;
    let ours = Tickets::of_a_line(redis, people, point.tasks).await?;
    let embedded = Tickets::of_a_line("memory", people, point.tasks).await?;
    let contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(SortedSet::filled(redis, people).await?),
        Box::new(ours.asking("lockgate on Redis, glances", Way::Glance)),
        Box::new(ours.asking("lockgate on Redis, tickets shown", Way::Show)),
        Box::new(embedded.asking("lockgate embedded, tickets shown", Way::Show)),
    ];
    let name = format!("line: positions among {people}, one in a hundred has left");
    Ok(Case { name, tasks: point.tasks, contenders })
}

/// The sorted set by the time of arrival.
struct SortedSet {
    connection: MultiplexedConnection,
    people: Vec<String>,
}

fn set_key() -> String {
    format!("{NAMESPACE}:{{raw}}:ranked")
}

impl SortedSet {
    async fn filled(url: &str, people: u64) -> Result<Self, Failure> {
        let mut connection = patient_connection(url).await?;
        let people: Vec<_> = new_users(people).collect();
        for (thousand, some) in people.chunks(1_000).enumerate() {
            let mut add = redis::cmd("ZADD");
            add.arg(set_key());
            for user in some {
                // A thousand in each millisecond.
                add.arg(1_800_000_000_000 + thousand).arg(user);
            }
            add.exec_async(&mut connection).await?;
        }
        Ok(Self { connection, people })
    }
}

impl Contender for SortedSet {
    fn name(&self) -> &'static str {
        "ZRANK"
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["zrank"]
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = move |task: usize| {
            let user = self.people[task * self.people.len() / tasks].clone();
            Box::new(RankWorker { connection: self.connection.clone(), user }) as Box<dyn Worker>
        };
        Box::pin(work_in_tasks((0..tasks).map(worker), length))
    }
}

struct RankWorker {
    connection: MultiplexedConnection,
    user: String,
}

impl Worker for RankWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let mut rank = redis::cmd("ZRANK");
            rank.arg(set_key()).arg(&self.user);
            rank.query_async::<u64>(&mut self.connection).await?;
            Ok(1)
        })
    }
}

/// How a ticket is asked about.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// As of a tick ago: [`Ticket::glance`].
    Glance,
    /// As of now: [`Ticket::show`].
    Show,
}

struct Tickets(Vec<Ticket>);

impl Tickets {
    async fn of_a_line(url: &str, people: u64, tasks: usize) -> Result<Self, Failure> {
        let hall = Hall::of(&gate_at(url).await?, "asking", people).await?;
        hall.let_some_leave().await?;
        Ok(Self(hall.tickets(tasks).await?))
    }

    fn asking(&self, name: &'static str, way: Way) -> Ours {
        Ours { name, tickets: self.0.clone(), way }
    }
}

struct Ours {
    name: &'static str,
    tickets: Vec<Ticket>,
    way: Way,
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        if self.name.contains("Redis") { &["eval", "evalsha"] } else { &[] }
    }

    fn turn(&self, _: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |ticket: &Ticket| AskWorker::boxed(vec![ticket.clone()], self.way);
        Box::pin(work_in_tasks(self.tickets.iter().map(worker), length))
    }
}

/// Asks about one of its tickets after the other.
pub(super) struct AskWorker {
    tickets: Vec<Ticket>,
    way: Way,
    asked: usize,
}

impl AskWorker {
    pub(super) fn boxed(tickets: Vec<Ticket>, way: Way) -> Box<dyn Worker> {
        Box::new(Self { tickets, way, asked: 0 })
    }
}

impl Worker for AskWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            self.asked += 1;
            let ticket = self.tickets.get(self.asked % self.tickets.len()).ok_or("no ticket")?;
            let whereabouts = match self.way {
                Way::Glance => ticket.glance().await?,
                Way::Show => ticket.show().await?,
            };
            match whereabouts {
                // The very first is admitted.
                Whereabouts::Waiting { .. } | Whereabouts::Admitted(_) => Ok(1),
                other => Err(format!("not in the line: {other:?}").into()),
            }
        })
    }
}
