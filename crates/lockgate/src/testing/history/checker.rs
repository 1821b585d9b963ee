//! Judges a history by the promises alone.
//!
//! The checker knows nothing of how a gate works. It knows when each request was about to be sent and when its
//! answer had arrived; the effect lies somewhere in between, and an operation without an answer may take effect
//! at any later time or never. It reports only what no choice of those times can explain, so a violation is
//! always real, and everything here is about what is *certain*.
//!
//! Each rule sorts what it needs and sweeps over it once: O(n log n) in all.

mod admission;
mod fence;
mod lease;
mod ledger;
mod line;
mod listing;
mod lock;
mod order;
mod overtaking;
mod selling;
mod stock;
mod totals;

use super::History;
use super::operation::{Op, put_together};
use super::verdict::{Bounds, Judged, Verdict};
use super::violation::Violation;

/// Judges everything that can be judged.
pub fn check(history: &History, bounds: &Bounds) -> Verdict {
    let (ops, malformed) = put_together(history);
    let mut report = Report::default();
    report.violations.extend(malformed.into_iter().map(Violation::Malformed));
    report.judged.operations = count(ops.len());
    report.judged.unknown = count(ops.iter().filter(|op| op.is_unknown()).count());
    report.judged.torn_lines = history.torn_lines();

    lock::judge(&ops, bounds, &mut report);
    stock::judge(&ops, bounds, &mut report);
    line::judge(&ops, bounds, &mut report);
    admission::judge(&ops, bounds, &mut report);
    Verdict { violations: report.violations, judged: report.judged }
}

/// Where the rules write what they find.
#[derive(Default)]
struct Report {
    violations: Vec<Violation>,
    judged: Judged,
}

impl Report {
    fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }
}

fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}
