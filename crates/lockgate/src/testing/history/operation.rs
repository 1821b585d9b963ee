//! Puts the lines of a history together again: one [`Op`] per request, with all that is known of it.

use std::collections::HashMap;

use super::History;
use super::answer::Answer;
use super::call::Call;
use super::event::{Event, Step};
use super::row::Row;
use super::violation::{Malformed, Witness};

/// A request and what became of it.
#[derive(Debug)]
pub(super) struct Op<'h> {
    pub(super) process: &'h str,
    pub(super) number: u64,
    pub(super) call: &'h Call,
    pub(super) invoked: u64,
    /// When the store first confirmed a place in its queue.
    pub(super) queued: Option<u64>,
    pub(super) rows: Vec<&'h Row>,
    pub(super) outcome: Outcome<'h>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'h> {
    Answered {
        at: u64,
        answer: &'h Answer,
    },
    Failed {
        at: u64,
    },
    /// No answer, or no end at all. It may take effect at any time from its invoke on, even after the process
    /// that sent it is dead.
    Unknown {
        at: Option<u64>,
    },
}

impl<'h> Op<'h> {
    fn begin(event: &'h Event, call: &'h Call) -> Self {
        Self {
            process: &event.process,
            number: event.op,
            call,
            invoked: event.at,
            queued: None,
            rows: Vec::new(),
            outcome: Outcome::Unknown { at: None },
        }
    }

    /// The answer and its time, if there was one.
    pub(super) fn answer(&self) -> Option<(u64, &'h Answer)> {
        match self.outcome {
            Outcome::Answered { at, answer } => Some((at, answer)),
            Outcome::Failed { .. } | Outcome::Unknown { .. } => None,
        }
    }

    /// Whether nobody knows what became of it.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self.outcome, Outcome::Unknown { .. })
    }

    /// When its end was recorded, or when it was sent if no end was.
    pub(super) fn last_heard_of(&self) -> u64 {
        self.ended().unwrap_or(self.invoked)
    }

    fn ended(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Answered { at, .. } | Outcome::Failed { at } => Some(at),
            Outcome::Unknown { at } => at,
        }
    }

    /// What a violation says about it.
    pub(super) fn witness(&self) -> Witness {
        Witness {
            process: self.process.to_owned(),
            op: self.number,
            invoked: self.invoked,
            ended: self.ended(),
        }
    }
}

/// All operations that make sense, in the order of their first lines, and what did not make sense.
pub(super) fn put_together(history: &History) -> (Vec<Op<'_>>, Vec<Malformed>) {
    let mut assembly = Assembly::default();
    for event in history.events() {
        assembly.add(event);
    }
    assembly.finish()
}

#[derive(Default)]
struct Assembly<'h> {
    slots: Vec<Slot<'h>>,
    by_id: HashMap<(&'h str, u64), usize>,
    malformed: Vec<Malformed>,
}

struct Slot<'h> {
    op: Op<'h>,
    last_at: u64,
    ended: bool,
    /// Judging an operation whose record contradicts itself would only produce more noise.
    sound: bool,
}

impl<'h> Assembly<'h> {
    fn add(&mut self, event: &'h Event) {
        let id = (event.process.as_str(), event.op);
        let known = self.by_id.get(&id).copied();
        match (known, &event.step) {
            (None, Step::Invoke(call)) => {
                self.by_id.insert(id, self.slots.len());
                let op = Op::begin(event, call);
                self.slots.push(Slot { op, last_at: event.at, ended: false, sound: true });
            }
            (None, _) => self.malformed.push(Malformed::NeverInvoked(lone_witness(event))),
            (Some(index), step) => {
                let slot = &mut self.slots[index];
                if let Err(malformed) = slot.go_on(event.at, step) {
                    slot.sound = false;
                    self.malformed.push(malformed);
                }
            }
        }
    }

    fn finish(self) -> (Vec<Op<'h>>, Vec<Malformed>) {
        let ops = self.slots.into_iter().filter(|slot| slot.sound).map(|slot| slot.op).collect();
        (ops, self.malformed)
    }
}

impl<'h> Slot<'h> {
    fn go_on(&mut self, at: u64, step: &'h Step) -> Result<(), Malformed> {
        if at < self.last_at {
            return Err(Malformed::TimeWentBack(self.op.witness()));
        }
        if self.ended {
            return Err(Malformed::EndedTwice(self.op.witness()));
        }
        self.last_at = at;
        match step {
            Step::Invoke(_) => return Err(Malformed::InvokedTwice(self.op.witness())),
            Step::Queued => self.note_queued(at)?,
            Step::Row(row) => self.note_row(row)?,
            Step::Ok(answer) => self.end_with(at, answer)?,
            Step::Fail => self.end(Outcome::Failed { at }),
            Step::Unknown => self.end(Outcome::Unknown { at: Some(at) }),
        }
        Ok(())
    }

    fn note_queued(&mut self, at: u64) -> Result<(), Malformed> {
        if !self.op.call.waits() {
            return Err(Malformed::CannotQueue(self.op.witness()));
        }
        self.op.queued.get_or_insert(at);
        Ok(())
    }

    fn note_row(&mut self, row: &'h Row) -> Result<(), Malformed> {
        if !self.op.call.lists(row) {
            return Err(Malformed::StrayRow(self.op.witness()));
        }
        self.op.rows.push(row);
        Ok(())
    }

    fn end_with(&mut self, at: u64, answer: &'h Answer) -> Result<(), Malformed> {
        if !answer.answers(self.op.call) {
            return Err(Malformed::MismatchedAnswer(self.op.witness()));
        }
        if let Answer::Listed { rows } = answer
            && usize::try_from(*rows) != Ok(self.op.rows.len())
        {
            return Err(Malformed::MissingRows(self.op.witness()));
        }
        self.end(Outcome::Answered { at, answer });
        Ok(())
    }

    fn end(&mut self, outcome: Outcome<'h>) {
        self.op.outcome = outcome;
        self.ended = true;
    }
}

/// All that is known of an operation of which only a later line exists.
fn lone_witness(event: &Event) -> Witness {
    Witness { process: event.process.clone(), op: event.op, invoked: event.at, ended: Some(event.at) }
}
