//! A line with people in it.

use std::time::Duration;

use lockgate::Gate;
use lockgate::key::Name;
use lockgate::line::{Entry, Line, LineTerms, Ticket};
use lockgate::store::{EnterWish, MAX_LINE_CALL, TicketAt};

use crate::bench::Failure;
use crate::bench::stock::new_users;

/// One in so many has left, where positions are asked for.
const LEFT: usize = 100;

/// See the [module](self).
pub(super) struct Hall {
    pub(super) gate: Gate,
    pub(super) line: Line,
    pub(super) edition: u64,
    /// In the order of their numbers.
    people: Vec<String>,
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// One is admitted, and then nobody for a day: the line stands as it was filled, and nobody is called absent.
pub(super) fn stands_still() -> Result<LineTerms, Failure> {
    Ok(LineTerms::new(1, DAY)?.grace(Some(DAY))?)
}

impl Hall {
    pub(super) async fn open(gate: &Gate, name: &str, terms: &LineTerms) -> Result<Self, Failure> {
        let line = gate.line(name)?;
        line.open(terms).await?;
        let edition = line.status().await?.ok_or("the line is not there")?.edition;
        Ok(Self { gate: gate.clone(), line, edition, people: Vec::new() })
    }

    pub(super) async fn of(gate: &Gate, name: &str, people: u64) -> Result<Self, Failure> {
        let mut hall = Self::open(gate, name, &stands_still()?).await?;
        hall.fill(new_users(people)).await?;
        Ok(hall)
    }

    /// Lets people in, each of them new.
    pub(super) async fn fill(&mut self, people: impl Iterator<Item = String>) -> Result<(), Failure> {
        let mut people = people.peekable();
        while people.peek().is_some() {
            let some: Vec<_> = people.by_ref().take(MAX_LINE_CALL).collect();
            self.let_in(&some).await?;
            self.people.extend(some);
        }
        Ok(())
    }

    async fn let_in(&self, people: &[String]) -> Result<(), Failure> {
        let wish = |user: &String| Ok(EnterWish { user: Name::new("user", user)?, known: None });
        let wishes = people.iter().map(wish).collect::<Result<Vec<_>, Failure>>()?;
        let told = self.gate.store().line_enter(self.line.name(), self.edition, &wishes).await?;
        told.map(|_| ()).ok_or_else(|| "the line has changed".into())
    }

    /// One in a hundred leaves.
    pub(super) async fn let_some_leave(&self) -> Result<(), Failure> {
        for number in (0..self.people.len() as u64).skip(LEFT / 2).step_by(LEFT) {
            let at = TicketAt { number, place: number };
            self.gate.store().ticket_leave(self.line.name(), self.edition, at).await?;
        }
        Ok(())
    }

    /// The tickets of so many of those who have not left, from everywhere in the line.
    pub(super) async fn tickets(&self, count: usize) -> Result<Vec<Ticket>, Failure> {
        let there = self.people.iter().enumerate().filter(|(number, _)| number % LEFT != LEFT / 2);
        let there: Vec<_> = there.map(|(_, user)| user.clone()).collect();
        let some: Vec<_> =
            (0..count).filter_map(|each| there.get(each * there.len() / count).cloned()).collect();
        self.tickets_of(&some).await
    }

    /// The tickets of people who are in the line.
    pub(super) async fn tickets_of(&self, people: &[String]) -> Result<Vec<Ticket>, Failure> {
        let mut tickets = Vec::with_capacity(people.len());
        for user in people {
            match self.line.enter(user).await? {
                Entry::In { ticket, .. } => tickets.push(ticket),
                other => return Err(format!("not in the line: {other:?}").into()),
            }
        }
        Ok(tickets)
    }

    /// Nothing of it goes on, in the store or here.
    pub(super) async fn close(self) -> Result<(), Failure> {
        self.line.close().await?;
        self.line.forget().await?;
        Ok(())
    }
}
