//! What is counted. Names begin with `lockgate_stock_`; a recorder must be installed before the gate is opened.
//!
//! A call of the store is counted as one, however many callers share it: each counter that it moves is moved once. What a store decides
//! at once, in memory, is counted and not timed: reading the clock would take longer than deciding.

use std::marker::PhantomData;
use std::time::Duration;

use metrics::{Counter, Histogram};

use crate::coalesce::Meter;
use crate::store::{HoldPlace, HoldSettle, Issue, OrderPlace, Purchase};

/// What an answer is to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the caller's now.
    Granted,
    /// It was the caller's before.
    Repeated,
    /// It is put aside.
    Held,
    /// What was put aside is back on the shelf.
    GivenBack,
    /// What was put aside had gone back by itself.
    Expired,
    Refused(Reason),
}

/// Why somebody gets nothing: the label `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    SoldOut,
    LimitExceeded,
    NotOpen,
    Paused,
    Closed,
    Pass,
    Held,
    AlreadyIssued,
    Resolved,
    KeyReused,
    Unknown,
    Recovering,
}

/// The words for them, in their order.
const REASONS: [&str; 12] = [
    "sold-out",
    "limit-exceeded",
    "not-open",
    "paused",
    "closed",
    "pass",
    "held",
    "already-issued",
    "resolved",
    "key-reused",
    "unknown",
    "recovering",
];

/// An answer that is counted.
pub(crate) trait Counted: Send + 'static {
    /// The label `what`.
    const WHAT: &'static str;

    fn verdict(&self) -> Verdict;
}

/// Handles, looked up once.
pub(crate) struct Metrics<S> {
    grants: Counter,
    repeats: Counter,
    refusals: [Counter; REASONS.len()],
    held: Counter,
    given_back: Counter,
    expired: Counter,
    /// How many wishes one call of the store had.
    batch_size: Histogram,
    /// How long such a call took, seconds.
    call: Histogram,
    answers: PhantomData<fn(S)>,
}

impl<S: Counted> Default for Metrics<S> {
    fn default() -> Self {
        let what = S::WHAT;
        let refused =
            |reason| metrics::counter!("lockgate_stock_refusals_total", "what" => what, "reason" => reason);
        let holds = |outcome| metrics::counter!("lockgate_stock_holds_total", "outcome" => outcome);
        Self {
            grants: metrics::counter!("lockgate_stock_grants_total", "what" => what),
            repeats: metrics::counter!("lockgate_stock_repeats_total", "what" => what),
            refusals: REASONS.map(refused),
            held: holds("placed"),
            given_back: holds("cancelled"),
            expired: holds("expired"),
            batch_size: metrics::histogram!("lockgate_stock_batch_size", "what" => what),
            call: metrics::histogram!("lockgate_stock_call_seconds", "what" => what),
            answers: PhantomData,
        }
    }
}

impl<S: Counted> Meter<S> for Metrics<S> {
    fn count(&self, answers: &[S]) {
        if let [alone] = answers {
            self.counter(alone.verdict()).increment(1);
            return;
        }
        let mut sums: Vec<(Verdict, u64)> = Vec::new();
        for verdict in answers.iter().map(Counted::verdict) {
            // Of a crowd, nearly all are told one of two things.
            match sums.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, sum)) => *sum += 1,
                None => sums.push((verdict, 1)),
            }
        }
        for (verdict, sum) in sums {
            self.counter(verdict).increment(sum);
        }
    }

    fn time(&self, wishes: usize, took: Duration) {
        self.batch_size.record(u32::try_from(wishes).map_or(f64::MAX, f64::from));
        self.call.record(took);
    }
}

impl<S> Metrics<S> {
    fn counter(&self, verdict: Verdict) -> &Counter {
        match verdict {
            Verdict::Granted => &self.grants,
            Verdict::Repeated => &self.repeats,
            Verdict::Held => &self.held,
            Verdict::GivenBack => &self.given_back,
            Verdict::Expired => &self.expired,
            Verdict::Refused(reason) => &self.refusals[reason as usize],
        }
    }
}

/// The reasons that purchases, holds and coupons have in common, and whatever else is said of one of them.
macro_rules! counted {
    ($answer:ident as $what:literal: $($said:pat => $verdict:expr,)+) => {
        impl Counted for $answer {
            const WHAT: &'static str = $what;

            fn verdict(&self) -> Verdict {
                Verdict::Refused(match self {
                    $($said => return $verdict,)+
                    Self::PassRequired | Self::PassInvalid | Self::PassExpired | Self::PassUsed => Reason::Pass,
                    Self::SoldOut { .. } => Reason::SoldOut,
                    Self::NotOpen { .. } => Reason::NotOpen,
                    Self::Paused => Reason::Paused,
                    Self::Closed => Reason::Closed,
                    Self::Unknown => Reason::Unknown,
                    Self::Recovering => Reason::Recovering,
                })
            }
        }
    };
}

counted! { Issue as "coupon":
    Self::Issued { .. } => Verdict::Granted,
    Self::AlreadyIssued { .. } => Verdict::Repeated,
    Self::Held { .. } => Verdict::Refused(Reason::Held),
}

counted! { Purchase as "deal":
    Self::Bought { .. } => Verdict::Granted,
    Self::AlreadyBought { .. } => Verdict::Repeated,
    Self::RequestReused => Verdict::Refused(Reason::KeyReused),
    Self::LimitExceeded { .. } => Verdict::Refused(Reason::LimitExceeded),
}

counted! { HoldPlace as "hold":
    Self::Held { .. } => Verdict::Held,
    Self::RequestReused => Verdict::Refused(Reason::KeyReused),
    Self::AlreadyIssued { .. } => Verdict::Refused(Reason::AlreadyIssued),
    Self::LimitExceeded { .. } => Verdict::Refused(Reason::LimitExceeded),
}

impl Counted for HoldSettle {
    const WHAT: &'static str = "hold";

    fn verdict(&self) -> Verdict {
        match self {
            Self::Confirmed { .. } => Verdict::Granted,
            Self::Cancelled => Verdict::GivenBack,
            Self::Expired => Verdict::Expired,
            Self::AlreadyConfirmed { .. } | Self::AlreadyCancelled => Verdict::Refused(Reason::Resolved),
            Self::Unknown => Verdict::Refused(Reason::Unknown),
            Self::Recovering => Verdict::Refused(Reason::Recovering),
        }
    }
}

impl Counted for OrderPlace {
    const WHAT: &'static str = "order";

    fn verdict(&self) -> Verdict {
        Verdict::Refused(match self {
            Self::Placed { .. } => return Verdict::Granted,
            Self::AlreadyPlaced { .. } => return Verdict::Repeated,
            Self::RequestReused => Reason::KeyReused,
            Self::Short(_) => Reason::SoldOut,
            Self::NotOpen { .. } => Reason::NotOpen,
            Self::Paused { .. } => Reason::Paused,
            Self::Closed { .. } => Reason::Closed,
            Self::Unknown { .. } => Reason::Unknown,
            Self::Recovering { .. } => Reason::Recovering,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_word() {
        let words = |reason: Reason| REASONS[reason as usize];
        assert_eq!(words(Reason::SoldOut), "sold-out");
        assert_eq!(words(Reason::LimitExceeded), "limit-exceeded");
        assert_eq!(words(Reason::NotOpen), "not-open");
        assert_eq!(words(Reason::Paused), "paused");
        assert_eq!(words(Reason::Closed), "closed");
        assert_eq!(words(Reason::Pass), "pass");
        assert_eq!(words(Reason::Held), "held");
        assert_eq!(words(Reason::AlreadyIssued), "already-issued");
        assert_eq!(words(Reason::Resolved), "resolved");
        assert_eq!(words(Reason::KeyReused), "key-reused");
        assert_eq!(words(Reason::Unknown), "unknown");
        assert_eq!(words(Reason::Recovering), "recovering");
    }
}
