//! A bounded run of every scenario of the fault suite: `cargo xtask faults` goes on for longer.
//!
//! The bounds are those of the scenarios, extended by [`ALLOWANCE`], because tests share two cores with other tests. A seed
//! in `LOCKGATE_FAULTS_SEED` replaces the fixed ones.

use std::time::Duration;

use lockgate_lab::faults::{
    LineScenario, Mode, Policy, Run, Scenario, Series, Site, Topology, fail_over, run, run_line,
};

/// For a machine that compiles or benchmarks meanwhile. Still far below what the bounds are there to tell from: a lease of
/// 20 s, or the 5 s after which everybody asks anyway.
const ALLOWANCE: Duration = Duration::from_millis(1_500);

/// The orchestrator does 100,000.
const CANCELLATIONS: u64 = 10_000;

/// The seeds of a test, unless another one is asked for. The second has, for example, a holder that was handed the lock and
/// whose lease is shorter than its claim.
const SEEDS: [u64; 2] = [1, 6];

/// Each way of waiting with each seed, one after the other, because the suite measures time.
async fn each_way(scenario: Scenario) {
    for seed in seeds() {
        for policy in scenario.policies() {
            once(scenario, seed, Some(*policy)).await;
        }
    }
}

/// As chance will have it.
async fn some_way(scenario: Scenario) {
    once(scenario, seeds()[0], None).await;
}

fn seeds() -> Vec<u64> {
    std::env::var("LOCKGATE_FAULTS_SEED").map_or(SEEDS.to_vec(), |seed| vec![seed.parse().unwrap()])
}

async fn once(scenario: Scenario, seed: u64, policy: Option<Policy>) {
    let site = Site {
        program: env!("CARGO_BIN_EXE_lockgate-faults").into(),
        allowance: ALLOWANCE,
        cancellations: CANCELLATIONS,
    };
    println!("{} --seed {seed} {policy:?}", scenario.name());
    let outcome = run(&site, &Run { scenario, seed, policy }).await.unwrap();
    assert!(outcome.violations.is_empty(), "{}", outcome.violations.join("\n"));
    assert!(outcome.faults > 0 && outcome.operations > 0, "{outcome:?}");
}

macro_rules! scenarios {
    ($($name:ident: $runs:ident($scenario:expr);)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            $runs($scenario).await;
        })+
    };
}

scenarios! {
    a_holder_that_is_killed_delays_others_by_its_lease: each_way(Scenario::HolderKilled);
    a_holder_that_was_stopped_is_shut_out_and_told: each_way(Scenario::HolderPaused);
    a_waiter_that_is_killed_is_passed_over: each_way(Scenario::WaiterKilled);
    an_heir_that_is_killed_delays_others_by_the_claim: each_way(Scenario::HeirKilled);
    an_heir_that_was_stopped_does_not_believe_to_have_the_lock: each_way(Scenario::HeirPaused);
    a_holder_and_its_heir_delay_others_by_lease_and_claim: each_way(Scenario::HolderAndHeirGone);
    a_lost_message_costs_a_bounded_time: each_way(Scenario::MessageLost);
    a_subscription_that_is_cut_misses_nothing: each_way(Scenario::SubscriptionCut);
    what_becomes_free_while_somebody_begins_to_wait_is_not_missed: each_way(Scenario::WakeUpRace);
    a_connection_that_is_cut_neither_loses_nor_doubles_anything: each_way(Scenario::ConnectionCut);
    a_lost_reply_to_handing_over_is_made_good: each_way(Scenario::YieldReplyLost);
    a_message_that_comes_late_is_counted_from_the_grant: each_way(Scenario::PushDelayed);
    a_redis_that_comes_back_has_one_holder_at_a_time: some_way(Scenario::ServerRestarted);
    a_redis_that_forgets_still_gives_rising_fences: some_way(Scenario::ServerForgets);
    a_redis_that_forgets_its_scripts_goes_on: some_way(Scenario::ScriptsFlushed);
    a_redis_that_was_silent_for_long_goes_on: some_way(Scenario::ServerPaused);
    a_storm_leaves_one_holder_at_a_time: some_way(Scenario::Storm);
    a_reader_that_is_gone_delays_writers_by_its_lease_and_no_other_reader: each_way(Scenario::DeadReader);
    the_permits_of_one_that_is_gone_come_back_with_its_lease: each_way(Scenario::DeadPermitHolder);
    who_became_a_reader_does_not_write_although_the_answer_is_late: each_way(Scenario::LateAnswer);
    locks_of_several_names_that_cross_never_wait_for_ever: some_way(Scenario::Crossing);
    a_storm_leaves_no_writer_beside_others: some_way(Scenario::RwStorm);
    a_storm_gives_no_permit_that_is_not_there: some_way(Scenario::PermitStorm);
    waits_that_are_dropped_leave_nothing: some_way(Scenario::Cancellation);
}

/// A few failovers of each kind; `lockgate-faults failovers` counts hundreds.
async fn fails_over(topology: Topology, mode: Mode) {
    let site = Site {
        program: env!("CARGO_BIN_EXE_lockgate-faults").into(),
        allowance: ALLOWANCE,
        cancellations: CANCELLATIONS,
    };
    let series = Series { topology, mode, failovers: 4, seed: seeds()[0] };
    let outcome = fail_over(&site, &series).await.unwrap();
    assert!(outcome.violations.is_empty(), "{}", outcome.violations.join("\n"));
    assert!(outcome.operations > 100, "{outcome:?}");
    if mode == Mode::Both {
        assert_eq!(outcome.overlaps(), 0, "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fences_rise_over_failovers_by_sentinel() {
    fails_over(Topology::Sentinel, Mode::Async).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fences_rise_over_failovers_of_a_cluster() {
    fails_over(Topology::Cluster, Mode::Async).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_replicas_and_a_quarantine_nobody_overlaps_over_failovers_by_sentinel() {
    fails_over(Topology::Sentinel, Mode::Both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_replicas_and_a_quarantine_nobody_overlaps_over_failovers_of_a_cluster() {
    fails_over(Topology::Cluster, Mode::Both).await;
}

async fn in_line(scenario: LineScenario) {
    let site = Site {
        program: env!("CARGO_BIN_EXE_lockgate-faults").into(),
        allowance: ALLOWANCE,
        cancellations: CANCELLATIONS,
    };
    println!("line --only {} --seed {}", scenario.name(), seeds()[0]);
    let outcome = run_line(&site, scenario, seeds()[0]).await.unwrap();
    assert!(outcome.violations.is_empty(), "{}", outcome.violations.join("\n"));
    assert!(outcome.faults > 0 && outcome.places > 20 && outcome.admissions > 20, "{outcome:?}");
}

macro_rules! line_scenarios {
    ($($name:ident: $scenario:ident;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            in_line(LineScenario::$scenario).await;
        })+
    };
}

line_scenarios! {
    a_line_goes_on_alike_whether_two_or_five_let_it: ManyTick;
    a_line_whose_processes_are_killed_loses_and_doubles_nobody: TickerKilled;
    a_line_on_a_redis_that_comes_back_goes_on_where_it_was: ServerRestarted;
    lost_replies_neither_lose_nor_double_anybody_in_a_line: RepliesLost;
    a_process_that_was_stopped_costs_nobody_else_their_place: ProcessPaused;
    when_nobody_could_be_seen_nobody_in_a_line_is_passed_over: EverybodyPaused;
    a_clock_that_is_set_neither_floods_nor_stalls_a_line: ClockSet;
    the_clock_of_the_embedded_store_neither_floods_nor_stalls_a_line: EmbeddedClockSet;
    a_storm_leaves_a_line_in_order: Storm;
}
