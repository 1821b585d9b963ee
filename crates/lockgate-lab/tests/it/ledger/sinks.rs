//! The user's own tables, in the same transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate::ledger::{Ledger, Light, Record, Sink, SinkError, SinkFuture, What};
use lockgate::testing::breakable::BreakableStore;
use lockgate::testing::eventually_async;
use sqlx::{PgConnection, PgPool, Postgres};

use super::base::Base;
use super::{coupon, finish, issue, light, on_redis, quick, winners, write_all};

/// Somebody's table, as it was before there was a ledger: a number too large is not allowed, and nobody twice.
const USER_COUPON: &str = "CREATE TABLE user_coupon (
    id BIGSERIAL PRIMARY KEY, coupon TEXT NOT NULL, user_id TEXT NOT NULL, seq BIGINT NOT NULL CHECK (seq <> 7),
    UNIQUE (coupon, user_id))";

#[derive(Default)]
struct UserCoupons {
    /// Refuses a certain user for as long as this is set.
    refuses: Arc<AtomicBool>,
}

impl Sink<Postgres> for UserCoupons {
    fn write<'a>(&'a self, transaction: &'a mut PgConnection, records: &'a [Record]) -> SinkFuture<'a> {
        Box::pin(async move {
            for record in records.iter().filter(|record| record.what == What::Issued) {
                let user = record.user.as_ref().map(ToString::to_string).unwrap_or_default();
                if self.refuses.load(Ordering::SeqCst) && user == "user-3" {
                    return Err(SinkError::Refused("user-3 is not welcome".into()));
                }
                sqlx::query("INSERT INTO user_coupon (coupon, user_id, seq) VALUES ($1, $2, $3)")
                    .bind(record.campaign.name.as_str())
                    .bind(user)
                    .bind(record.seq.and_then(|seq| i64::try_from(seq).ok()))
                    .execute(&mut *transaction)
                    .await?;
            }
            Ok(())
        })
    }
}

async fn with_table() -> (Base, PgPool) {
    let base = Base::postgres().await;
    base.sql().await.run(USER_COUPON).await;
    let pool = PgPool::connect(&base.url).await.unwrap();
    (base, pool)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_table_has_what_the_ledger_has_also_when_it_is_given_twice() {
    let (base, pool) = with_table().await;
    let (_redis, gate) = on_redis().await;
    let ledger = Ledger::with_sink(pool, UserCoupons::default()).await.unwrap();
    issue(&gate, "c", 0..5).await;
    let breakable = Arc::new(BreakableStore::new(Arc::clone(gate.store())));
    let store: Arc<dyn lockgate::store::Store> = breakable.clone();
    breakable.refuse_acknowledgements();
    let dying = ledger.start(&store, quick()).unwrap();
    assert!(eventually_async(Duration::from_secs(20), async || dying.status().known > 0).await);
    dying.shutdown().await;
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), (0, 0), "{status:?}");
    let sql = base.sql().await;
    assert_eq!(sql.number("SELECT COUNT(*) FROM user_coupon").await, 5);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sink_refuses_is_a_dead_letter_and_can_be_replayed() {
    let (base, pool) = with_table().await;
    let (_redis, gate) = on_redis().await;
    let refuses = Arc::new(AtomicBool::new(true));
    let ledger = Ledger::with_sink(pool, UserCoupons { refuses: Arc::clone(&refuses) }).await.unwrap();
    let told = issue(&gate, "c", 0..20).await;
    let status = write_all(&ledger, &gate).await;
    assert_eq!(
        (status.rows, status.dead_letters),
        (19, 2),
        "user 3, and the number 7 that the table does not take"
    );
    let sql = base.sql().await;
    assert_eq!(sql.number("SELECT COUNT(*) FROM user_coupon").await, 18);
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_grants").await, 18, "neither here nor there");
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    let found = &audit.campaigns[0];
    assert_eq!(
        (audit.light(), found.dead_lettered, found.persisted, found.missing),
        (Light::Yellow, 2, 18, 0)
    );
    let letters = ledger.dead_letters(None, 10).await.unwrap();
    assert!(letters[0].reason.contains("not welcome"), "{letters:?}");
    assert!(letters[1].reason.contains("user_coupon_seq_check"), "{letters:?}");

    assert!(ledger.replay(&letters[0]).await.is_err(), "it is refused again, and stays");
    refuses.store(false, Ordering::SeqCst);
    sql.run("ALTER TABLE user_coupon DROP CONSTRAINT user_coupon_seq_check").await;
    for letter in &letters {
        assert!(ledger.replay(letter).await.unwrap());
        assert!(!ledger.replay(letter).await.unwrap(), "it is written already");
    }
    assert_eq!(sql.number("SELECT COUNT(*) FROM user_coupon").await, 20);
    assert_eq!(winners(&ledger, &coupon("c")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_missing_is_waited_for_and_buries_nobody() {
    let (base, pool) = with_table().await;
    let (_redis, gate) = on_redis().await;
    let sql = base.sql().await;
    sql.run("ALTER TABLE user_coupon RENAME TO elsewhere").await;
    let ledger = Ledger::with_sink(pool, UserCoupons::default()).await.unwrap();
    issue(&gate, "c", 0..20).await;
    let writer = ledger.start(gate.store(), quick()).unwrap();
    let is_failing = async || writer.status().failing.is_some_and(|why| why.contains("user_coupon"));
    assert!(eventually_async(Duration::from_secs(20), is_failing).await);
    sql.run("ALTER TABLE elsewhere RENAME TO user_coupon").await;
    sql.run("ALTER TABLE user_coupon DROP CONSTRAINT user_coupon_seq_check").await;
    let status = finish(writer).await;
    assert_eq!((status.rows, status.dead_letters, status.failing), (21, 0, None));
    assert_eq!(sql.number("SELECT COUNT(*) FROM user_coupon").await, 20);
}

/// Not only a database can fail a sink.
struct Panics;

impl Sink<Postgres> for Panics {
    fn write<'a>(&'a self, _: &'a mut PgConnection, _: &'a [Record]) -> SinkFuture<'a> {
        panic!("a mistake in a sink")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_panics_is_said_and_nothing_is_lost() {
    let (_base, pool) = with_table().await;
    let (_redis, gate) = on_redis().await;
    let told = issue(&gate, "c", 0..5).await;
    let panicking = Ledger::with_sink(pool.clone(), Panics).await.unwrap();
    let writer = panicking.start(gate.store(), quick()).unwrap();
    let is_said = async || writer.status().failing.is_some_and(|why| why.contains("start another"));
    assert!(eventually_async(Duration::from_secs(20), is_said).await, "{:?}", writer.status());
    writer.shutdown().await;
    let ledger = Ledger::on(pool).await.unwrap();
    write_all(&ledger, &gate).await;
    assert_eq!(winners(&ledger, &coupon("c")).await, told);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_whose_grant_is_a_dead_letter_can_be_erased_too() {
    let (_base, pool) = with_table().await;
    let (redis, gate) = on_redis().await;
    let refuses = Arc::new(AtomicBool::new(true));
    let ledger = Ledger::with_sink(pool, UserCoupons { refuses }).await.unwrap();
    issue(&gate, "c", 0..5).await;
    assert_eq!(write_all(&ledger, &gate).await.dead_letters, 1);
    let user = lockgate::key::Name::new("user", "user-3").unwrap();
    ledger.erase(gate.store().as_ref(), &user).await.unwrap();
    let letters = ledger.dead_letters(None, 10).await.unwrap();
    assert!(letters.len() == 1 && !letters[0].content.contains("user-3"), "{letters:?}");
    let members = redis.command(&["HKEYS", "lg:{0}:coupon-members:c"]).unwrap();
    assert!(!format!("{members:?}").contains("user-3"), "{members:?}");
    assert_eq!(light(&ledger, &gate).await, Light::Yellow, "it is still one of the five");
}
