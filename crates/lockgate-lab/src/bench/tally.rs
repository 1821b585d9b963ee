//! What one worker did, in a form that can be added up and sent between processes.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Failure;
use super::command_count::Effort;

/// A turn is steady from this part of its length to its end: before, everybody queues for the first time; after, they leave.
pub(super) const STEADY_FROM: f64 = 0.25;

/// How long each of many things took, in nanoseconds. They go into the histogram some at a time: a thousand workers' histograms fit
/// into no cache, and the faster the contender, the more of its time a miss for each thing would be.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    latest: Vec<u64>,
    histogram: Histogram<u64>,
}

impl Latencies {
    const AT_ONCE: usize = 64;

    fn new() -> Result<Self, Failure> {
        Ok(Self { latest: Vec::with_capacity(Self::AT_ONCE), histogram: Histogram::new(3)? })
    }

    pub(super) fn record(&mut self, nanos: u64) -> Result<(), Failure> {
        self.latest.push(nanos);
        if self.latest.len() == Self::AT_ONCE {
            self.latest.drain(..).try_for_each(|nanos| self.histogram.record(nanos))?;
        }
        Ok(())
    }

    fn add_to(&self, all: &mut Histogram<u64>) -> Result<(), Failure> {
        all.add(&self.histogram)?;
        Ok(self.latest.iter().try_for_each(|nanos| all.record(*nanos))?)
    }
}

/// What one worker did.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) operations: u64,
    /// Those of them that ended in the steady part of the turn.
    pub(super) steady_operations: u64,
    /// Nanoseconds per operation (or call, where a call does several).
    pub(super) latencies: Latencies,
    /// Nanoseconds from the call of a release to the next holder; empty where nothing is handed over.
    pub(super) gaps: Latencies,
    /// Nanoseconds for which a lock was held, in all.
    pub(super) held_nanos: u64,
}

impl Tally {
    pub(super) fn new() -> Result<Self, Failure> {
        let (latencies, gaps) = (Latencies::new()?, Latencies::new()?);
        Ok(Self { operations: 0, steady_operations: 0, latencies, gaps, held_nanos: 0 })
    }
}

/// All workers of one turn.
#[derive(Clone, Debug)]
pub(super) struct Tallies {
    /// In the order of the workers: what each has done.
    pub(super) operations_of_each: Vec<u64>,
    pub(super) latencies: Histogram<u64>,
    pub(super) gaps: Histogram<u64>,
    pub(super) held_nanos: u64,
    /// Operations in the steady part of the turn; 0 where it has none.
    pub(super) steady_operations: u64,
    /// How often two were where only one may be; `None` where nobody looked.
    pub(super) violations: Option<u64>,
    /// How long the turn took, in seconds, if it was not as long as was asked for.
    pub(super) seconds: Option<f64>,
    /// What the server was asked, if not all of the turn counts.
    pub(super) effort: Option<Effort>,
}

impl Tallies {
    pub(super) fn new() -> Result<Self, Failure> {
        let (latencies, gaps) = (Histogram::new(3)?, Histogram::new(3)?);
        let operations_of_each = Vec::new();
        Ok(Self {
            operations_of_each,
            latencies,
            gaps,
            held_nanos: 0,
            steady_operations: 0,
            violations: None,
            seconds: None,
            effort: None,
        })
    }

    pub(super) fn add(&mut self, tally: &Tally) -> Result<(), Failure> {
        self.operations_of_each.push(tally.operations);
        tally.latencies.add_to(&mut self.latencies)?;
        tally.gaps.add_to(&mut self.gaps)?;
        self.held_nanos += tally.held_nanos;
        self.steady_operations += tally.steady_operations;
        Ok(())
    }

    /// What the same workers, or others, did in another part of the turn.
    pub(super) fn add_all(&mut self, others: &Tallies) -> Result<(), Failure> {
        self.operations_of_each.extend(&others.operations_of_each);
        Ok(self.latencies.add(&others.latencies)?)
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations_of_each.iter().sum()
    }

    pub(super) fn add_sent(&mut self, sent: &SentTallies) -> Result<(), Failure> {
        self.operations_of_each.extend(&sent.operations_of_each);
        for (value, count) in &sent.latencies {
            self.latencies.record_n(*value, *count)?;
        }
        for (value, count) in &sent.gaps {
            self.gaps.record_n(*value, *count)?;
        }
        self.held_nanos += sent.held_nanos;
        self.steady_operations += sent.steady_operations;
        Ok(())
    }
}

/// The same on its way to another process: histograms as pairs of value and count.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentTallies {
    operations_of_each: Vec<u64>,
    latencies: Vec<(u64, u64)>,
    gaps: Vec<(u64, u64)>,
    held_nanos: u64,
    steady_operations: u64,
}

impl From<&Tallies> for SentTallies {
    fn from(tallies: &Tallies) -> Self {
        let pairs = |histogram: &Histogram<u64>| {
            histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
        };
        Self {
            operations_of_each: tallies.operations_of_each.clone(),
            latencies: pairs(&tallies.latencies),
            gaps: pairs(&tallies.gaps),
            held_nanos: tallies.held_nanos,
            steady_operations: tallies.steady_operations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let mut tally = Tally::new().unwrap();
        tally.operations = 3;
        for nanos in [1_000, 2_000, 3_000_000] {
            tally.latencies.record(nanos).unwrap();
            tally.gaps.record(nanos * 2).unwrap();
        }
        let mut here = Tallies::new().unwrap();
        here.add(&tally).unwrap();
        let text = serde_json::to_string(&SentTallies::from(&here)).unwrap();
        let mut there = Tallies::new().unwrap();
        there.add_sent(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(there.operations_of_each, [3]);
        assert_eq!((there.latencies.len(), there.gaps.max()), (3, here.gaps.max()));
    }
}
