//! Writers that are killed: between reading and committing, between committing and acknowledging, anywhere.

use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::JournalPosition;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis};

use super::super::base::Base;
use super::super::{finish, on_redis, quick};
use super::process::{Manner, TICKETS, Tickets, WriterProcess};
use super::{Crowd, SOON, drain, judge, oldest_waiting};

/// Rows are written and not committed; entries are given and not acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_killed_before_it_commits_has_written_nothing_and_another_takes_over() {
    let base = Base::postgres().await;
    let sql = base.sql().await;
    sql.run(TICKETS).await;
    let (redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    crowd.goes_on(200).await;
    let manner = Manner { has_sink: true, hangs: true, ..Manner::default() };
    let dying = WriterProcess::start(&redis.url(), &base, manner);
    let hangs = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND state = 'idle in transaction' AND query LIKE 'INSERT INTO tickets%'";
    assert!(eventually_async(SOON, async || sql.number(hangs).await == 1).await, "it never got so far");
    crowd.goes_on(50).await;
    assert!(oldest_waiting(&gate).await.is_some(), "acknowledged before it was committed");
    let given = redis.command(&["XPENDING", "lg:{0}:journal", "ledger"]).unwrap();
    assert!(given.parts()[0].as_int() > Some(0), "{given:?}");
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_ledger").await, 0);
    dying.kill();

    let next = Tickets::ledger(&base.url, false).await.start(gate.store(), quick()).unwrap();
    let told = crowd.end().await;
    let status = finish(next).await;
    // Taking over, it may be given its own once more; that is found in the ledger, and counts as known.
    assert_eq!(status.rows, told["c"].len() as u64 + 1, "{status:?}");
    assert_tickets(&base, told["c"].len()).await;
    judge(&base, &gate, &told).await;
}

/// Rows are committed, and the journal still has them.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_writer_committed_before_it_was_killed_is_found_by_the_next_and_not_written_twice() {
    let base = Base::postgres().await;
    let sql = base.sql().await;
    sql.run(TICKETS).await;
    let (redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    crowd.goes_on(200).await;
    let first = gate.store().journal_read(0, JournalPosition::START, 1).await.unwrap()[0].position;
    let manner = Manner { has_sink: true, is_mute: true, ..Manner::default() };
    let dying = WriterProcess::start(&redis.url(), &base, manner);
    let committed = async || sql.number("SELECT COUNT(*) FROM lockgate_ledger").await;
    assert!(eventually_async(SOON, async || committed().await > 150).await, "it never committed");
    assert_eq!(oldest_waiting(&gate).await, Some(first), "it was acknowledged after all");
    dying.kill();
    let committed = u64::try_from(committed().await).unwrap();
    assert_eq!(oldest_waiting(&gate).await, Some(first), "it was acknowledged after all");

    let next = Tickets::ledger(&base.url, false).await.start(gate.store(), quick()).unwrap();
    let told = crowd.end().await;
    let status = finish(next).await;
    let all = told["c"].len() as u64 + 1;
    assert_eq!(status.rows + committed, all, "{status:?} after {committed}");
    assert!(status.known >= committed, "{status:?} after {committed}");
    assert_tickets(&base, told["c"].len()).await;
    judge(&base, &gate, &told).await;
}

/// The user's own table has everybody once.
async fn assert_tickets(base: &Base, told: usize) {
    let sql = base.sql().await;
    let told = i64::try_from(told).unwrap();
    assert_eq!(sql.number("SELECT COUNT(*) FROM tickets").await, told);
    assert_eq!(sql.number("SELECT COUNT(DISTINCT user_id) FROM tickets").await, told);
    let strangers = "SELECT COUNT(*) FROM tickets t WHERE NOT EXISTS (SELECT 1 FROM lockgate_ledger l \
         WHERE l.user_id = t.user_id AND l.seq = t.seq AND l.what = 'issued')";
    assert_eq!(sql.number(strangers).await, 0);
}

/// Repeats a run, as far as chance is ours.
const SEED: &str = "LOCKGATE_TEST_SEED";

/// Three writers; somebody is killed again and again, at any moment.
async fn writers_are_killed_at_random(base: &Base, manner: Manner) -> usize {
    const KILLS: u32 = 12;
    // The seed decides whom and when; what it meets there is the machine's.
    let seed = std::env::var(SEED).map_or(Clock::system().wall().as_micros(), |seed| seed.parse().unwrap());
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let crowd = Crowd::begin(&gate, &["a".into(), "b".into(), "c".into()]).await;
    let start = || WriterProcess::start(&redis.url(), base, manner);
    let mut writers: Vec<_> = (0..3).map(|_| start()).collect();
    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
        let place = usize::try_from(dice.below(3)).unwrap();
        writers.swap_remove(place).kill();
        writers.push(start());
    }
    // Long enough that some of it was taken over while others still bought.
    crowd.goes_on(200).await;
    writers.into_iter().for_each(WriterProcess::kill);
    let told = crowd.end().await;
    // Nobody is left but this one.
    if manner.has_sink {
        let last = Tickets::ledger(&base.url, false).await.start(gate.store(), quick()).unwrap();
        finish(last).await;
    } else {
        drain(base, &gate).await;
    }
    judge(base, &gate, &told).await;
    told.values().map(std::collections::BTreeMap::len).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_are_killed_again_and_again_write_everything_once_on_postgres() {
    let base = Base::postgres().await;
    base.sql().await.run(TICKETS).await;
    let told = writers_are_killed_at_random(&base, Manner { has_sink: true, ..Manner::default() }).await;
    let sql = base.sql().await;
    let rows = "SELECT COUNT(*) FROM tickets";
    let people = "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, seq FROM tickets) AS t";
    let told = i64::try_from(told).unwrap();
    assert_eq!((sql.number(rows).await, sql.number(people).await), (told, told));
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_are_killed_again_and_again_write_everything_once_on_mariadb() {
    let base = Base::mariadb().await;
    base.ledger().await;
    writers_are_killed_at_random(&base, Manner::default()).await;
}

/// Chance that can be repeated (splitmix).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
