//! What a reader wants to know first of a strategy, in a symbol, a word and a colour: never in a colour alone.

use super::audit::Flaw;
use super::claim::Promise;
use super::report::{Finding, Tried};

/// How a strategy did, over all of its rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Everybody had the right answer, every time.
    Exact,
    /// The same, but some were told to try again later, as it says.
    GaveUp,
    /// The same, but it says that it would not be so with several processes, or with more users than there are pieces.
    ExactHere,
    /// It was wrong, in the way that it says.
    WrongAsClaimed,
    /// Claim and finding differ, whichever of them is the better one.
    NotAsClaimed,
}

impl Verdict {
    pub(super) const ALL: [Self; 5] =
        [Self::Exact, Self::GaveUp, Self::ExactHere, Self::WrongAsClaimed, Self::NotAsClaimed];

    pub(super) fn of(tried: &Tried) -> Self {
        let gave_up = tried.rounds.iter().any(|round| round.answers.gave_up > 0);
        if !tried.finding.is_as_claimed {
            return Self::NotAsClaimed;
        }
        match tried.finding.seen.as_slice() {
            [] if fails_elsewhere(tried) => Self::ExactHere,
            [] if !gave_up => Self::Exact,
            // Those who were turned away are why something was left.
            [] | [Flaw::Undersold] if gave_up => Self::GaveUp,
            _ => Self::WrongAsClaimed,
        }
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Exact => "✓",
            Self::GaveUp => "◐",
            Self::ExactHere => "◇",
            Self::WrongAsClaimed => "✗",
            Self::NotAsClaimed => "⚠",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::GaveUp => "exact, but gave up on some",
            Self::ExactHere => "exact here, not everywhere",
            Self::WrongAsClaimed => "wrong, as it says",
            Self::NotAsClaimed => "not as claimed",
        }
    }

    /// What the style sheet calls it.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::GaveUp => "gave-up",
            Self::ExactHere => "here",
            Self::WrongAsClaimed => "wrong",
            Self::NotAsClaimed => "surprise",
        }
    }
}

/// Whether it says that it fails under a condition that these rounds did not meet. More processes than there were is one.
fn fails_elsewhere(tried: &Tried) -> bool {
    [&tried.claim.in_one_process, &tried.claim.across_processes]
        .into_iter()
        .any(|promise| matches!(promise, Promise::Fails { .. }))
}

impl Finding {
    /// What was seen, and in how many rounds.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.seen.is_empty() {
            return format!("exact ({0} of {0})", self.all_rounds);
        }
        let seen: Vec<_> = self.seen.iter().map(ToString::to_string).collect();
        let wrong = self.all_rounds.saturating_sub(self.exact_rounds);
        format!("{} ({wrong} of {})", seen.join(", "), self.all_rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn each_kind_of_strategy_has_its_verdict() {
        let report = sample::report();
        let verdict = |name: &str| {
            Verdict::of(report.strategies.iter().find(|tried| tried.name == name).expect("in the sample"))
        };
        assert_eq!(verdict("right"), Verdict::Exact);
        assert_eq!(verdict("patient"), Verdict::GaveUp);
        assert_eq!(verdict("local"), Verdict::ExactHere);
        assert_eq!(verdict("hasty"), Verdict::WrongAsClaimed);
        assert_eq!(verdict("boaster"), Verdict::NotAsClaimed);
    }

    #[test]
    fn no_two_verdicts_look_alike() {
        let mut looks: Vec<_> =
            Verdict::ALL.iter().flat_map(|verdict| [verdict.symbol(), verdict.word()]).collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 10);
    }
}
