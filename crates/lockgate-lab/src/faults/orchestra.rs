//! Run after run until the time is over.

use std::time::Duration;

use lockgate::clock::Clock;

use super::report::Report;
use super::{Failure, Policy, Run, Scenario, Site, run};

/// What to do and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// At least one round of all scenarios is done, however short this is.
    pub time: Duration,
    /// The first run has this seed, every other one the next.
    pub seed: u64,
    /// Only this scenario.
    pub only: Option<Scenario>,
    /// Only this way of waiting, where it makes sense; otherwise the seed decides.
    pub policy: Option<Policy>,
    /// JSON lines instead of a table.
    pub json: bool,
}

/// Does run after run. Says whether all promises were kept.
///
/// # Errors
///
/// When a run cannot be done.
pub async fn perform(site: &Site, plan: &Plan) -> Result<bool, Failure> {
    let scenarios = plan.only.map_or(Scenario::ALL.to_vec(), |only| vec![only]);
    let clock = Clock::system();
    let began = clock.monotonic();
    let mut report = Report::new(plan.json);
    let mut seed = plan.seed;
    loop {
        for scenario in &scenarios {
            let policy = plan.policy.filter(|policy| scenario.policies().contains(policy));
            let one = Run { scenario: *scenario, seed, policy };
            let outcome =
                run(site, &one).await.map_err(|why| format!("{} --seed {seed}: {why}", scenario.name()))?;
            report.add(&outcome)?;
            seed = seed.wrapping_add(1);
        }
        if clock.monotonic().since(began) >= plan.time {
            return Ok(report.finish());
        }
    }
}
