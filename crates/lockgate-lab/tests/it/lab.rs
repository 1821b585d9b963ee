//! The lab as a library, on real servers. What needs processes of its own is tested with the binary, in `lockgate-cli`.

use std::cell::RefCell;
use std::time::Duration;

use lockgate::testing::services::{MariaDb, Persistence, Postgres, Redis};
use lockgate_lab::lab::audit::Flaw;
use lockgate_lab::lab::report::{Report, Tried};
use lockgate_lab::lab::{Event, LabOptions, run, strategy_names, table};
use sqlx::Connection as _;

fn options(strategies: &[&str], database: &str) -> LabOptions {
    LabOptions {
        users: 60,
        stock: 40,
        processes: 1,
        strategies: strategies.iter().map(ToString::to_string).collect(),
        redis: None,
        database: Some(database.to_owned()),
        rounds: 2,
        growth: vec![15, 30],
        limit: Duration::from_secs(20),
        in_flight: 256,
        program: "no-process-is-started".into(),
    }
}

fn of<'a>(report: &'a Report, name: &str) -> &'a Tried {
    report.strategies.iter().find(|tried| tried.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_says_everything_and_survives_being_written() {
    let notes = RefCell::new(Vec::new());
    let watch = |event: Event<'_>| {
        if let Event::Strategy { name, .. } = event {
            notes.borrow_mut().push(name.to_owned());
        }
    };
    let strategies = ["none", "pessimistic", "conditional-update", "script-set", "lockgate"];
    let report = run(&options(&strategies, "sqlite"), &watch).await.unwrap();
    assert_eq!(report.contradictions().count(), 0, "{}", table(&report));
    assert_eq!(*notes.borrow(), ["conditional-update", "script-set", "lockgate"]);

    let skipped: Vec<_> = report.skipped.iter().map(|skipped| skipped.strategy.as_str()).collect();
    assert_eq!(skipped, ["none", "pessimistic"]);
    assert!(report.skipped[1].why.contains("SELECT … FOR UPDATE") && report.skipped[1].why.contains("--db"));
    assert_eq!((report.database.name.as_str(), report.database.is_own), ("SQLite", true));

    let script = of(&report, "script-set");
    let points: Vec<_> = script.growth.iter().map(|point| (point.users, point.stock)).collect();
    assert_eq!(points, [(15, 10), (30, 20), (60, 40)]);
    let round = &script.rounds[0];
    assert_eq!((round.answers.got, round.answers.sold_out), (40, 20));
    assert_eq!((round.evidence.rows, round.evidence.final_stock), (40, 0));
    assert_eq!(round.cost.redis_round_trips, 60, "one for each user");
    assert!(round.cost.redis_commands > 60 && round.cost.sql_statements == 160, "{:?}", round.cost);
    // Those of the ledger's writer are among them, so it is not fewer than one each in a crowd as small as this.
    assert!(of(&report, "lockgate").redis_round_trips_per_success().unwrap() > 0.0);

    let written = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&written).unwrap(), report);
    let shown = table(&report);
    assert!(shown.contains("Left out") && shown.contains("All 3 strategies are what they claim"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebodys_own_servers_are_left_as_they_were() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let postgres = Postgres::start().unwrap();
    redis.command(&["SET", "mine", "1"]).unwrap();
    let strategies = ["pipeline", "redis-handoff", "queue-stream", "lockgate"];
    let options = LabOptions { redis: Some(redis.url()), ..options(&strategies, &postgres.url()) };
    let report = run(&options, &|_| ()).await.unwrap();
    assert_eq!(report.contradictions().count(), 0, "{}", table(&report));
    assert_eq!(of(&report, "pipeline").finding.seen, [Flaw::Oversold]);
    assert!(!report.database.is_own && !report.redis.unwrap().is_own);

    assert_eq!(redis.command(&["DBSIZE"]).unwrap().to_string(), "1");
    let mut connection = sqlx::PgConnection::connect(&postgres.url()).await.unwrap();
    let left = "SELECT COUNT(*) FROM pg_catalog.pg_namespace WHERE nspname LIKE 'lockgate%'";
    assert_eq!(sqlx::query_scalar::<_, i64>(left).fetch_one(&mut connection).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebodys_own_mariadb_is_left_as_it_was() {
    let mariadb = MariaDb::start().unwrap();
    let report = run(&options(&["conditional-update"], &mariadb.url()), &|_| ()).await.unwrap();
    assert_eq!((report.contradictions().count(), report.database.name.as_str()), (0, "MariaDB"));
    let mut connection = sqlx::MySqlConnection::connect(&mariadb.url()).await.unwrap();
    let left = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'lockgate_lab%'";
    assert_eq!(sqlx::query_scalar::<_, i64>(left).fetch_one(&mut connection).await.unwrap(), 0);
}

#[tokio::test]
async fn servers_that_are_not_there_are_told_in_one_sentence() {
    let redis =
        LabOptions { redis: Some("redis://127.0.0.1:1".into()), ..options(&["script-set"], "sqlite") };
    let said = run(&redis, &|_| ()).await.unwrap_err().to_string();
    assert!(said.contains("cannot connect to redis://127.0.0.1:1") && said.contains("--redis"), "{said}");
    let said = run(&options(&["none"], "postgres://u:secret@127.0.0.1:1/db"), &|_| ())
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("--db") && !said.contains("secret"), "{said}");
    let said = run(&options(&["none"], "mongodb://x"), &|_| ()).await.unwrap_err().to_string();
    assert!(said.contains("postgres://"), "{said}");
}

#[test]
fn the_names_are_those_of_the_field() {
    let names = strategy_names();
    assert!(names.len() >= 26 && names[0] == "none" && names.contains(&"lockgate"), "{names:?}");
}
