//! What a strategy says of itself, and whether the rounds bear it out.
//!
//! **Promise:** who claims to be exact must be so in every round; who claims to fail must be seen to fail in the way that it
//! claims, at least once, and never in a way that it does not mention. A race may be won by luck, so what fails is given
//! more rounds to show it, and the report counts them. A claim that can be neither right nor wrong is none: each
//! is about one process or several, with the condition under which it holds.

use serde::{Deserialize, Serialize};

use super::audit::Flaw;
use super::report::{Finding, Round};

/// Up to so many times the rounds that were asked for are played until a claimed failure is seen.
const ENCORES: u32 = 10;

/// What a strategy says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// When all users are served by one process.
    pub in_one_process: Promise,
    /// When they are served by several.
    pub across_processes: Promise,
}

/// What is to be expected of every round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "promise", rename_all = "kebab-case")]
pub enum Promise {
    /// Everybody has the right answer, and the database agrees.
    Exact,
    /// The same, but in a crowd it may turn users away although there are some left.
    ExactOrGivesUp,
    /// It goes wrong.
    Fails {
        /// In this way, at least once over the rounds.
        how: Flaw,
        /// And perhaps in these ways too.
        perhaps: Vec<Flaw>,
        /// Under this condition; otherwise it is exact.
        when: When,
    },
}

/// Under which condition something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Whatever the numbers are.
    Always,
    /// When more want one than there are.
    MoreUsersThanStock,
}

impl Claim {
    /// Correct however many processes there are.
    #[must_use]
    pub fn exact() -> Self {
        Self { in_one_process: Promise::Exact, across_processes: Promise::Exact }
    }

    /// Correct, or too busy to answer.
    #[must_use]
    pub fn exact_or_gives_up() -> Self {
        Self { in_one_process: Promise::ExactOrGivesUp, across_processes: Promise::ExactOrGivesUp }
    }

    /// The same failure however many processes there are.
    #[must_use]
    pub fn fails(how: Flaw, perhaps: &[Flaw], when: When) -> Self {
        let fails = Promise::fails(how, perhaps, when);
        Self { in_one_process: fails.clone(), across_processes: fails }
    }

    /// Correct in one process, and not across several.
    #[must_use]
    pub fn exact_in_one_process(across_processes: Promise) -> Self {
        Self { in_one_process: Promise::Exact, across_processes }
    }

    /// The part that is about so many processes.
    #[must_use]
    pub fn with(&self, processes: usize) -> &Promise {
        if processes > 1 { &self.across_processes } else { &self.in_one_process }
    }
}

impl Promise {
    /// It goes wrong in this way, perhaps in those too.
    #[must_use]
    pub fn fails(how: Flaw, perhaps: &[Flaw], when: When) -> Self {
        Promise::Fails { how, perhaps: perhaps.to_vec(), when }
    }

    /// The claim in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Promise::Exact => "exact".to_owned(),
            Promise::ExactOrGivesUp => "exact, or gives up".to_owned(),
            Promise::Fails { how, when: When::Always, .. } => format!("fails: {how}"),
            Promise::Fails { how, when: When::MoreUsersThanStock, .. } => {
                format!("fails: {how} if users > stock")
            }
        }
    }

    fn allows(&self, flaw: Flaw, round: &Round) -> bool {
        match self {
            Promise::Exact => false,
            // Turning users away is not a flaw if it was said that it may happen, and it was said to them.
            Promise::ExactOrGivesUp => flaw == Flaw::Undersold && round.answers.gave_up > 0,
            Promise::Fails { how, perhaps, when } => {
                when.holds(round) && (*how == flaw || perhaps.contains(&flaw))
            }
        }
    }
}

impl When {
    fn holds(self, round: &Round) -> bool {
        match self {
            When::Always => true,
            When::MoreUsersThanStock => round.users > round.stock,
        }
    }
}

/// Compares a claim with all rounds; `rounds` are those of full size, `others` those of the growth series.
#[must_use]
pub fn check(claim: &Claim, processes: usize, rounds: &[Round], others: &[Round]) -> Finding {
    let promise = claim.with(processes);
    let all: Vec<&Round> = rounds.iter().chain(others).collect();
    let mut contradictions: Vec<String> = all.iter().filter_map(|round| unexpected(promise, round)).collect();
    contradictions.extend(unseen(promise, rounds));
    let mut seen: Vec<Flaw> = all.iter().flat_map(|round| round.flaws.iter().copied()).collect();
    seen.sort_unstable();
    seen.dedup();
    let exact = all.iter().filter(|round| round.is_exact()).count();
    Finding {
        is_as_claimed: contradictions.is_empty(),
        contradictions,
        exact_rounds: u32::try_from(exact).unwrap_or(u32::MAX),
        all_rounds: u32::try_from(all.len()).unwrap_or(u32::MAX),
        seen,
    }
}

/// A flaw that the claim does not mention.
fn unexpected(promise: &Promise, round: &Round) -> Option<String> {
    let flaw = round.flaws.iter().find(|flaw| !promise.allows(**flaw, round))?;
    let (claimed, found) = (promise.in_words(), round.evidence.in_words());
    let said = round.notes.first().map_or_else(String::new, |note| format!(" ({note})"));
    let (users, stock) = (round.users, round.stock);
    Some(format!(
        "claims \"{claimed}\", but with {users} users and a stock of {stock}: {flaw}: {found}{said}"
    ))
}

/// Whether another round is to be played: as many as were asked for, and more while a claimed failure has not shown.
pub(super) fn goes_on(claim: &Claim, processes: usize, asked_for: u32, rounds: &[Round]) -> bool {
    let played = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
    let may_go_on = played < asked_for.saturating_mul(ENCORES);
    played < asked_for || may_go_on && unseen(claim.with(processes), rounds).is_some()
}

/// A failure that was claimed and did not show.
fn unseen(promise: &Promise, rounds: &[Round]) -> Option<String> {
    let Promise::Fails { how, when, .. } = promise else { return None };
    let told: Vec<_> = rounds.iter().filter(|round| when.holds(round)).collect();
    if told.is_empty() || told.iter().any(|round| round.flaws.contains(how)) {
        return None;
    }
    let rounds = told.len();
    let claimed = promise.in_words();
    Some(format!(
        "claims \"{claimed}\", but that was not seen in {rounds} rounds; more --rounds or --users may show it"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::audit::Evidence;
    use super::super::report::{Answers, Cost};
    use super::*;

    fn round(users: u64, flaws: &[Flaw]) -> Round {
        Round {
            users,
            stock: 300,
            processes: 1,
            elapsed_ms: 1.0,
            write_back_ms: 0.0,
            answers: Answers::default(),
            cost: Cost::default(),
            latency: None,
            flaws: flaws.to_vec(),
            evidence: Evidence { oversold_by: 7, ..Evidence::default() },
            notes: Vec::new(),
        }
    }

    fn loses() -> Claim {
        Claim::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always)
    }

    #[test]
    fn who_claims_to_be_exact_must_be_so_in_every_round() {
        let exact = Claim::exact();
        assert!(check(&exact, 1, &[round(300, &[]), round(300, &[])], &[]).is_as_claimed);
        let finding = check(&exact, 1, &[round(300, &[]), round(300, &[Flaw::Oversold])], &[]);
        assert!(!finding.is_as_claimed);
        assert_eq!((finding.exact_rounds, finding.all_rounds), (1, 2));
        let words = &finding.contradictions[0];
        assert!(words.contains("claims \"exact\"") && words.contains("7 sold beyond the stock"), "{words}");
        assert!(
            !check(&exact, 1, &[round(300, &[])], &[round(75, &[Flaw::Stuck])]).is_as_claimed,
            "growth counts"
        );
    }

    #[test]
    fn who_claims_to_fail_must_be_seen_to_fail_once() {
        let once = [round(300, &[]), round(300, &[Flaw::LostUpdates])];
        assert!(check(&loses(), 1, &once, &[]).is_as_claimed);
        let finding = check(&loses(), 1, &[round(300, &[]), round(300, &[])], &[]);
        assert!(finding.contradictions[0].contains("not seen in 2 rounds"), "{:?}", finding.contradictions);
        let in_another_way = [round(300, &[Flaw::Oversold])];
        assert!(!check(&loses(), 1, &in_another_way, &[]).is_as_claimed, "only in the way that it may");
    }

    #[test]
    fn a_failure_that_does_not_show_at_once_gets_more_rounds_but_not_for_ever() {
        let lucky = |rounds: usize| vec![round(300, &[]); rounds];
        assert!(goes_on(&loses(), 1, 2, &lucky(1)) && goes_on(&loses(), 1, 2, &lucky(2)));
        assert!(goes_on(&loses(), 1, 2, &lucky(19)) && !goes_on(&loses(), 1, 2, &lucky(20)));
        let caught = [round(300, &[]), round(300, &[Flaw::LostUpdates])];
        assert!(goes_on(&loses(), 1, 3, &caught), "what was asked for is played");
        assert!(!goes_on(&loses(), 1, 2, &caught));
        assert!(!goes_on(&Claim::exact(), 1, 2, &lucky(2)));
    }

    #[test]
    fn nobody_fails_in_a_way_that_was_not_claimed() {
        let also_stuck = [round(300, &[Flaw::LostUpdates, Flaw::Stuck])];
        assert!(!check(&loses(), 1, &also_stuck, &[]).is_as_claimed);
        let also_oversold = [round(300, &[Flaw::LostUpdates, Flaw::Oversold])];
        assert!(check(&loses(), 1, &also_oversold, &[]).is_as_claimed);
    }

    #[test]
    fn a_condition_that_does_not_hold_asks_for_exactness() {
        let oversells = Claim::fails(Flaw::Oversold, &[], When::MoreUsersThanStock);
        assert!(check(&oversells, 1, &[round(300, &[])], &[]).is_as_claimed);
        assert!(!check(&oversells, 1, &[round(300, &[Flaw::Oversold])], &[]).is_as_claimed);
        assert!(!check(&oversells, 1, &[round(400, &[])], &[]).is_as_claimed);
        assert!(check(&oversells, 1, &[round(400, &[Flaw::Oversold])], &[]).is_as_claimed);
    }

    #[test]
    fn giving_up_is_allowed_to_those_who_say_so_and_tell_the_user() {
        let mut gave_up = round(300, &[Flaw::Undersold]);
        assert!(!check(&Claim::exact_or_gives_up(), 1, &[gave_up.clone()], &[]).is_as_claimed);
        gave_up.answers.gave_up = 2;
        assert!(check(&Claim::exact_or_gives_up(), 1, &[gave_up.clone()], &[]).is_as_claimed);
        assert!(!check(&Claim::exact(), 1, &[gave_up], &[]).is_as_claimed);
    }

    #[test]
    fn one_process_and_several_have_claims_of_their_own() {
        let claim =
            Claim::exact_in_one_process(Promise::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always));
        assert!(check(&claim, 1, &[round(300, &[])], &[]).is_as_claimed);
        assert!(!check(&claim, 3, &[round(300, &[])], &[]).is_as_claimed, "must be seen to break");
        assert!(check(&claim, 3, &[round(300, &[Flaw::LostUpdates])], &[]).is_as_claimed);
    }
}
