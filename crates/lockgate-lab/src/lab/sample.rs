//! A report as a run might make it, for tests: one strategy of each kind, with text that a page must not take for its own.

use super::audit::{Evidence, Flaw};
use super::claim::{Claim, Promise, When, check};
use super::report::{
    Answers, Conditions, Cost, Family, GrowthPoint, Latency, Machine, Report, Round, Service, Skipped, Tried,
};

pub(super) fn report() -> Report {
    Report {
        lockgate_version: "0.1.0".to_owned(),
        began_at_us: 1_767_225_600_000_000,
        took_ms: 61_500.0,
        machine: Machine {
            cores: 2,
            memory_bytes: Some(8_589_934_592),
            processor: Some("A Processor & Sons".to_owned()),
            os: "An OS".to_owned(),
        },
        redis: Some(Service { name: "Redis".to_owned(), version: "8.0.1".to_owned(), is_own: true }),
        database: Service {
            name: "PostgreSQL".to_owned(),
            version: "17 <script>alert(\"1\")</script>".to_owned(),
            is_own: false,
        },
        options: Conditions {
            users: 400,
            stock: 300,
            processes: 1,
            rounds: 2,
            growth: vec![100, 200],
            in_flight: 256,
            connections: 32,
            limit_ms: 10_000.0,
        },
        skipped: vec![Skipped { strategy: "absent".to_owned(), why: "there is no such server".to_owned() }],
        strategies: vec![
            tried("right", Family::Database, &Claim::exact(), 120.0, &[]),
            tried("patient", Family::Database, &Claim::exact_or_gives_up(), 900.0, &[Flaw::Undersold]),
            tried("local", Family::InProcess, &Claim::exact_in_one_process(breaks()), 60.0, &[]),
            tried("hasty", Family::Nothing, &loses(), 15.0, &[Flaw::LostUpdates, Flaw::Oversold]),
            tried("boaster", Family::RedisLock, &Claim::exact(), 4_000.0, &[Flaw::Stuck]),
        ],
    }
}

fn breaks() -> Promise {
    Promise::fails(Flaw::LostUpdates, &[], When::Always)
}

fn loses() -> Claim {
    Claim::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always)
}

fn tried(name: &str, family: Family, claim: &Claim, elapsed_ms: f64, flaws: &[Flaw]) -> Tried {
    let rounds = vec![round(name, elapsed_ms, flaws), round(name, elapsed_ms * 1.1, flaws)];
    let finding = check(claim, 1, &rounds, &[]);
    let point = |users: u64, share: f64| GrowthPoint {
        users,
        stock: users * 3 / 4,
        median_ms: elapsed_ms * share,
        rounds: 1,
    };
    Tried {
        name: name.to_owned(),
        title: format!("The {name} one"),
        family,
        claim: claim.clone(),
        rounds,
        growth: vec![point(100, 0.25), point(200, 0.5), point(400, 1.0)],
        finding,
    }
}

fn round(name: &str, elapsed_ms: f64, flaws: &[Flaw]) -> Round {
    Round {
        users: 400,
        stock: 300,
        processes: 1,
        elapsed_ms,
        write_back_ms: 7.0,
        answers: Answers {
            got: 298,
            sold_out: 98,
            gave_up: u64::from(name == "patient") * 2,
            failed: 1,
            no_answer: 1,
        },
        cost: Cost { redis_round_trips: 596, redis_commands: 1_192, sql_statements: 894, retries: 17 },
        latency: Some(Latency { p50_ms: 21.5, p90_ms: 42.25, p99_ms: 63.125, max_ms: 84.0 }),
        flaws: flaws.to_vec(),
        evidence: Evidence {
            oversold_by: u64::from(flaws.contains(&Flaw::Oversold)) * 5,
            stuck: u64::from(flaws.contains(&Flaw::Stuck)) * 9,
            ..Evidence::default()
        },
        notes: vec![format!("noted of <{name}>")],
    }
}
