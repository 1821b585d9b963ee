//! The ledger: every promise on every database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Timestamp;
use lockgate::key::Name;
use lockgate::ledger::{Action, Ledger, LedgerError, Light, Writer, WriterConfig, WriterStatus};
use lockgate::stock::{Issue, Reservation, Terms};
use lockgate::store::{Campaign, CampaignKind, JournalPosition, JournalReader, Token};
use lockgate::testing::breakable::BreakableStore;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis, Reply};

mod base;
mod faults;
mod recovery;
mod sinks;

use self::base::Base;

/// One test per promise and database.
macro_rules! on_every_database {
    ($($promise:ident)+) => {
        on_every_database! { mod postgres: $($promise)+ }
        on_every_database! { mod mariadb: $($promise)+ }
        on_every_database! { mod sqlite: $($promise)+ }
    };
    (mod $database:ident: $($promise:ident)+) => {
        mod $database {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    super::$promise(crate::ledger::base::Base::$database().await).await;
                }
            )+
        }
    };
}

use on_every_database;

on_every_database! {
    every_change_becomes_one_row
    any_name_can_be_written
    writers_share_the_work
    what_was_committed_and_not_acknowledged_is_not_written_twice
    what_was_taken_and_not_committed_is_taken_over
    two_writers_of_one_name_do_no_harm
    the_same_change_with_other_content_is_a_dead_letter_and_red
    an_entry_that_nobody_understands_is_a_dead_letter_and_yellow
    a_journal_that_was_cut_by_hand_is_red
    a_journal_that_was_deleted_by_hand_goes_on_and_is_red
    the_tables_may_be_made_by_many_at_once
    half_a_migration_is_finished_by_the_next
    tables_of_an_older_version_are_brought_to_this_one
    tables_of_a_newer_version_are_refused_and_left_alone
    an_action_is_there_once_and_the_latest_comes_first
    winners_are_those_who_have_something
    an_erased_user_is_nowhere_and_the_sums_stay
    what_is_old_enough_is_removed_and_the_sums_stay
}

/// As short as a test can afford.
fn quick() -> WriterConfig {
    let mut config = WriterConfig::default();
    config.idle_pause = Duration::from_millis(5);
    config.claim_after = Duration::from_millis(500);
    config
}

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn coupon(called: &str) -> Campaign {
    Campaign::new(CampaignKind::Coupon, name(called))
}

/// Redis, and a gate on it.
async fn on_redis() -> (Redis, Gate) {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    (redis, gate)
}

/// Who was told what: user by number.
type Told = BTreeMap<u64, String>;

async fn issue(gate: &Gate, coupon: &str, users: std::ops::Range<u64>) -> Told {
    let coupon = gate.coupon(coupon).unwrap();
    coupon.open(&Terms::new(1_000_000).unwrap()).await.unwrap();
    let mut told = Told::new();
    for user in users {
        let user = format!("user-{user}");
        if let Issue::Issued { seq, .. } = coupon.issue(&user).await.unwrap() {
            assert_eq!(told.insert(seq, user), None);
        }
    }
    told
}

async fn winners(ledger: &Ledger, campaign: &Campaign) -> Told {
    let mut export = ledger.winners(campaign).await.unwrap();
    let mut winners = Told::new();
    while let Some(page) = export.next_page().await.unwrap() {
        for winner in page {
            let user = winner.user.map_or("erased".into(), |user| user.to_string());
            assert_eq!(winners.insert(winner.seq, user), None, "twice");
        }
    }
    winners
}

/// Runs a writer until it has written everything.
async fn write_all(ledger: &Ledger, gate: &Gate) -> WriterStatus {
    let writer = ledger.start(gate.store(), quick()).unwrap();
    finish(writer).await
}

async fn finish(writer: Writer) -> WriterStatus {
    tokio::time::timeout(Duration::from_secs(60), writer.drained())
        .await
        .expect("not drained within a minute");
    let status = writer.status();
    writer.shutdown().await;
    status
}

async fn light(ledger: &Ledger, gate: &Gate) -> Light {
    ledger.audit(gate.store().as_ref()).await.unwrap().light()
}

async fn every_change_becomes_one_row(base: Base) {
    let ledger = base.ledger().await;
    let (_redis, gate) = on_redis().await;
    let deal = gate.deal("shoes").unwrap();
    deal.open(&Terms::new(100).unwrap().per_user(10).unwrap()).await.unwrap();
    deal.purchase("alice", 3).await.unwrap();
    deal.purchase("bob", 2).await.unwrap();
    let mut holds = Vec::new();
    for _ in 0..2 {
        let placed = deal.hold("carol", 1, Duration::from_secs(60)).await.unwrap();
        let Reservation::Held { hold, .. } = placed else { panic!("{placed:?}") };
        holds.push(hold);
    }
    holds[0].confirm().await.unwrap();
    holds[1].cancel().await.unwrap();
    deal.revoke("alice", 1).await.unwrap();
    deal.pause().await.unwrap();
    deal.resume().await.unwrap();
    deal.restock(5).await.unwrap();
    deal.close().await.unwrap();
    let journal = gate.store().journal_read(0, JournalPosition::START, 1_000).await.unwrap();
    assert_eq!(journal.len(), 12);

    let before = ledger.audit(gate.store().as_ref()).await.unwrap();
    assert_eq!((before.campaigns[0].in_flight, before.campaigns[0].persisted), (3, 0), "all on its way");
    assert!(before.is_green());
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.known, status.dead_letters), (12, 0, 0));

    let sql = base.sql().await;
    let words = "SELECT what FROM lockgate_ledger ORDER BY rev";
    let expected = [
        "opened",
        "bought",
        "bought",
        "held",
        "held",
        "confirmed",
        "cancelled",
        "revoked",
        "changed",
        "changed",
        "changed",
        "changed",
    ];
    assert_eq!(sql.texts(words).await, expected);
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_grants").await, 2, "bob's and carol's");
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    let found = &audit.campaigns[0];
    assert_eq!((found.granted, found.persisted, found.in_flight, found.rev), (3, 3, 0, 12));
    assert!(audit.is_green());
    // What is written is no longer kept.
    let is_trimmed =
        async || gate.store().journal_read(0, JournalPosition::START, 10).await.unwrap().is_empty();
    assert!(eventually_async(Duration::from_secs(5), is_trimmed).await);
}

async fn any_name_can_be_written(base: Base) {
    let ledger = base.ledger().await;
    let (_redis, gate) = on_redis().await;
    let long = "👑".repeat(4_096);
    let nasty = [
        "a\0b",
        "\\",
        "\\0",
        "a\tb\nc\rd",
        "\\N",
        "'; DROP TABLE lockgate_ledger; --",
        " ",
        "a",
        "a ",
        "A",
        &long,
    ];
    for campaign in nasty {
        let coupon = gate.coupon(campaign).unwrap();
        coupon.open(&Terms::new(100).unwrap()).await.unwrap();
        for user in nasty {
            coupon.issue(user).await.unwrap();
        }
    }
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), ((nasty.len() * (nasty.len() + 1)) as u64, 0));
    for campaign in nasty {
        let winners = winners(&ledger, &coupon(campaign)).await;
        assert_eq!(winners.into_values().collect::<Vec<_>>(), nasty);
    }
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn writers_share_the_work(base: Base) {
    let (_redis, gate) = on_redis().await;
    let told = issue(&gate, "shared", 0..300).await;
    let mut writers = Vec::new();
    for _ in 0..3 {
        let mut config = quick();
        config.batch_rows = 10;
        writers.push(base.ledger().await.start(gate.store(), config).unwrap());
    }
    let mut rows = 0;
    for writer in writers {
        rows += finish(writer).await.rows;
    }
    let ledger = base.ledger().await;
    assert_eq!(rows, 301);
    assert_eq!(winners(&ledger, &coupon("shared")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn what_was_committed_and_not_acknowledged_is_not_written_twice(base: Base) {
    let (_redis, gate) = on_redis().await;
    let told = issue(&gate, "twice", 0..50).await;
    let ledger = base.ledger().await;
    // A writer that commits, and dies before it can acknowledge.
    let breakable = Arc::new(BreakableStore::new(Arc::clone(gate.store())));
    let deaf: Arc<dyn lockgate::store::Store> = breakable.clone();
    let dying = ledger.start(&deaf, quick()).unwrap();
    breakable.refuse_acknowledgements();
    let committed = async || dying.status().rows + dying.status().known >= 51;
    assert!(eventually_async(Duration::from_secs(20), committed).await);
    dying.shutdown().await;
    let standing = gate.store().journal_standing(0, &name("ledger")).await.unwrap();
    assert!(standing.oldest_waiting.is_some(), "it was acknowledged after all");

    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), (0, 0), "{status:?}");
    assert!(status.known >= 51, "{status:?}");
    assert_eq!(winners(&ledger, &coupon("twice")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn what_was_taken_and_not_committed_is_taken_over(base: Base) {
    let (_redis, gate) = on_redis().await;
    let told = issue(&gate, "left", 0..50).await;
    let dead = JournalReader { group: name("ledger"), name: name("dead") };
    let taken = gate.store().journal_take(0, &dead, JournalPosition::START, 1_000).await.unwrap();
    assert_eq!(taken.len(), 51);
    let ledger = base.ledger().await;
    assert_eq!(light(&ledger, &gate).await, Light::Green, "with somebody is in flight");
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), (51, 0), "{status:?}");
    assert_eq!(winners(&ledger, &coupon("left")).await, told);
}

async fn two_writers_of_one_name_do_no_harm(base: Base) {
    let (_redis, gate) = on_redis().await;
    let mut config = quick();
    config.name = Some("the same".into());
    config.batch_rows = 5;
    let ledger = base.ledger().await;
    let writers = [(); 2].map(|()| ledger.start(gate.store(), config.clone()).unwrap());
    let told = issue(&gate, "named", 0..300).await;
    let mut rows = 0;
    for writer in writers {
        rows += finish(writer).await.rows;
    }
    assert_eq!(rows, 301, "each row counts once");
    assert_eq!(winners(&ledger, &coupon("named")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn the_same_change_with_other_content_is_a_dead_letter_and_red(base: Base) {
    let (redis, gate) = on_redis().await;
    let told = issue(&gate, "double", 0..5).await;
    let ledger = base.ledger().await;
    write_all(&ledger, &gate).await;
    // Change 3 once more, to somebody else: as after a failover that rolled back.
    let forged = [
        "XADD",
        "lg:{0}:journal",
        "*",
        "campaign",
        "coupon::double",
        "rev",
        "3",
        "change",
        "issued",
        "seq",
        "2",
    ];
    redis.command(&[&forged[..], &["users", "7:mallory"]].concat()).unwrap();
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), (0, 1));
    assert_eq!(winners(&ledger, &coupon("double")).await, told, "the first one stands");
    let letters = ledger.dead_letters(None, 10).await.unwrap();
    assert!(letters.len() == 1 && letters[0].is_conflict && letters[0].rev == 3, "{letters:?}");
    assert!(letters[0].content.contains("mallory") && letters[0].reason.contains("user-1"), "{letters:?}");
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    assert_eq!((audit.light(), audit.campaigns[0].conflicts), (Light::Red, 1));

    // It cannot be replayed, and stays; it can be discarded.
    assert!(matches!(ledger.replay(&letters[0]).await, Err(LedgerError::Refused(_))));
    assert_eq!(ledger.dead_letters(None, 10).await.unwrap().len(), 1);
    assert!(ledger.dead_letters(Some(&letters[0]), 10).await.unwrap().is_empty());
    assert_eq!(ledger.dead_letter(letters[0].id()).await.unwrap().unwrap().content, letters[0].content);
    for (of, count) in [(None, 1), (Some(coupon("double")), 1), (Some(coupon("other")), 0)] {
        assert_eq!(ledger.oldest_dead_letters(of.as_ref(), 10).await.unwrap().len(), count);
        assert_eq!(ledger.count_dead_letters(of.as_ref()).await.unwrap(), count as u64);
    }
    assert!(ledger.discard(&letters[0]).await.unwrap() && !ledger.discard(&letters[0]).await.unwrap());
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn an_entry_that_nobody_understands_is_a_dead_letter_and_yellow(base: Base) {
    let (redis, gate) = on_redis().await;
    let ledger = base.ledger().await;
    let mut told = issue(&gate, "poison", 0..5).await;
    let poison: [&[&str]; 5] = [
        &["hello", "world"],
        &["campaign", "coupon::poison", "rev", "x", "change", "issued", "seq", "1", "users", "1:a"],
        &["campaign", "coupon::poison", "rev", "0", "change", "issued", "seq", "1", "users", "1:a"],
        &["campaign", "coupon::poison", "rev", "9", "change", "issued", "seq", "1", "users", ""],
        &["campaign", "coupon::poison", "rev", "9", "change", "teleported"],
    ];
    for fields in poison {
        redis.command(&[&["XADD", "lg:{0}:journal", "*"], fields].concat()).unwrap();
    }
    told.extend(issue(&gate, "poison", 5..10).await);
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), (11, 5), "the others are written");
    assert_eq!(winners(&ledger, &coupon("poison")).await, told);
    let letters = ledger.dead_letters(None, 10).await.unwrap();
    assert!(letters[0].content == "hello world" && letters[0].campaign.is_none(), "{letters:?}");
    let oldest = ledger.oldest_dead_letters(None, 2).await.unwrap();
    assert_eq!(
        oldest.iter().map(|letter| letter.id()).collect::<Vec<_>>(),
        [letters[0].id(), letters[1].id()]
    );
    assert_eq!(light(&ledger, &gate).await, Light::Yellow);
    assert!(ledger.replay(&letters[0]).await.is_err());
    for letter in &letters {
        ledger.discard(letter).await.unwrap();
    }
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn a_journal_that_was_cut_by_hand_is_red(base: Base) {
    let (redis, gate) = on_redis().await;
    let ledger = base.ledger().await;
    issue(&gate, "cut", 0..20).await;
    // Some were given to a writer, which has not written them, when somebody removes them.
    let dead = JournalReader { group: name("ledger"), name: name("dead") };
    let taken = gate.store().journal_take(0, &dead, JournalPosition::START, 10).await.unwrap();
    redis.command(&["XDEL", "lg:{0}:journal", &taken[3].position().to_string()]).unwrap();
    redis.command(&["XTRIM", "lg:{0}:journal", "MAXLEN", "18"]).unwrap();
    let status = write_all(&ledger, &gate).await;
    assert_eq!((status.rows, status.dead_letters), (18, 0));
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    assert_eq!((audit.light(), audit.campaigns[0].missing), (Light::Red, 3), "{audit:?}");
}

async fn a_journal_that_was_deleted_by_hand_goes_on_and_is_red(base: Base) {
    let (redis, gate) = on_redis().await;
    let ledger = base.ledger().await;
    let mut told = issue(&gate, "deleted", 0..10).await;
    let writer = ledger.start(gate.store(), quick()).unwrap();
    writer.drained().await;
    redis.command(&["DEL", "lg:{0}:journal"]).unwrap();
    told.extend(issue(&gate, "deleted", 10..20).await);
    let is_written = async || writer.status().rows == 21;
    assert!(eventually_async(Duration::from_secs(20), is_written).await, "{:?}", writer.status());
    finish(writer).await;
    assert_eq!(winners(&ledger, &coupon("deleted")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green, "all of it had been written");

    issue(&gate, "deleted", 20..30).await;
    redis.command(&["DEL", "lg:{0}:journal"]).unwrap();
    issue(&gate, "deleted", 30..40).await;
    assert_eq!(write_all(&ledger, &gate).await.rows, 10);
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    assert_eq!((audit.light(), audit.campaigns[0].missing), (Light::Red, 10));
}

async fn the_tables_may_be_made_by_many_at_once(base: Base) {
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = base.url.clone();
        opening.spawn(async move { Ledger::open(&url).await.map(drop) });
    }
    for opened in opening.join_all().await {
        opened.unwrap();
    }
}

/// The first statements have happened, the version was not noted.
async fn half_a_migration_is_finished_by_the_next(base: Base) {
    base.ledger().await;
    let sql = base.sql().await;
    sql.run("DROP VIEW lockgate_grants").await;
    sql.run("DROP TABLE lockgate_dead_letters").await;
    sql.run("DELETE FROM lockgate_schema").await;
    let (_redis, gate) = on_redis().await;
    let ledger = base.ledger().await;
    issue(&gate, "again", 0..3).await;
    assert_eq!(write_all(&ledger, &gate).await.rows, 4);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_grants").await, 3);
}

/// As the version before left them.
async fn tables_of_an_older_version_are_brought_to_this_one(base: Base) {
    let (_redis, gate) = on_redis().await;
    let ledger = base.ledger().await;
    issue(&gate, "old", 0..3).await;
    write_all(&ledger, &gate).await;
    let sql = base.sql().await;
    sql.run("DROP TABLE lockgate_actions").await;
    sql.run("UPDATE lockgate_schema SET version = 1").await;
    let ledger = base.ledger().await;
    assert_eq!(sql.number("SELECT MAX(version) FROM lockgate_schema").await, 2);
    assert_eq!(ledger.actions(10).await.unwrap(), []);
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_grants").await, 3, "what was there stays");
}

async fn an_action_is_there_once_and_the_latest_comes_first(base: Base) {
    let ledger = base.ledger().await;
    let action = |at: u64, target: &str, address: Option<&str>| Action {
        id: Token::random(),
        at: Timestamp::from_micros(at),
        action: "pause-coupon".into(),
        target: target.into(),
        outcome: "done".into(),
        address: address.map(str::to_owned),
    };
    let all = [action(1, "/a\\0\0 ", None), action(3, "/ü", Some("::1")), action(2, "", Some("10.0.0.1"))];
    ledger.note_actions(all[..2].to_vec()).await.unwrap();
    ledger.note_actions(all.to_vec()).await.unwrap();
    let [first, third, second] = all;
    assert_eq!(base.ledger().await.actions(10).await.unwrap(), [third.clone(), second, first]);
    assert_eq!(ledger.actions(1).await.unwrap(), [third]);
}

async fn tables_of_a_newer_version_are_refused_and_left_alone(base: Base) {
    base.ledger().await;
    let sql = base.sql().await;
    sql.run("UPDATE lockgate_schema SET version = 99").await;
    let refused = Ledger::open(&base.url).await.unwrap_err().to_string();
    assert!(
        refused.contains("version 99") && refused.contains("use the version that wrote them"),
        "{refused}"
    );
    assert_eq!(sql.number("SELECT version FROM lockgate_schema").await, 99);
}

async fn winners_are_those_who_have_something(base: Base) {
    let (_redis, gate) = on_redis().await;
    let mut told = issue(&gate, "won", 0..10).await;
    gate.coupon("won").unwrap().revoke("user-3", 4).await.unwrap();
    told.remove(&4);
    let ledger = base.ledger().await;
    write_all(&ledger, &gate).await;
    assert_eq!(winners(&ledger, &coupon("won")).await, told);
    let unknown = ledger.winners(&coupon("never")).await.unwrap_err().to_string();
    assert!(unknown.contains("never heard of"), "{unknown}");
}

async fn an_erased_user_is_nowhere_and_the_sums_stay(base: Base) {
    let (redis, gate) = on_redis().await;
    let mut told = issue(&gate, "private", 0..5).await;
    let deal = gate.deal("private").unwrap();
    deal.open(&Terms::new(10).unwrap()).await.unwrap();
    deal.purchase_as("user-2's request", "user-2", 2).await.unwrap();
    let ledger = base.ledger().await;
    write_all(&ledger, &gate).await;
    let store = gate.store().as_ref();
    assert_eq!(ledger.erase(store, &name("user-2")).await.unwrap().rows, 2);
    assert_eq!(ledger.erase(store, &name("user-2")).await.unwrap().rows, 0);
    for key in ["lg:{0}:coupon-members:private", "lg:{0}:deal-members:private"] {
        let Reply::Array(fields) = redis.command(&["HKEYS", key]).unwrap() else { panic!("{key}") };
        assert!(!fields.contains(&Reply::Text("uuser-2".into())), "{fields:?}");
    }
    told.insert(3, "erased".into());
    assert_eq!(winners(&ledger, &coupon("private")).await, told);
    let sql = base.sql().await;
    for column in ["user_id", "detail"] {
        let found = format!("SELECT COUNT(*) FROM lockgate_ledger WHERE {column} LIKE '%user-2%'");
        assert_eq!(sql.number(&found).await, 0, "{column}");
    }
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

async fn what_is_old_enough_is_removed_and_the_sums_stay(base: Base) {
    let (_redis, gate) = on_redis().await;
    issue(&gate, "old", 0..5).await;
    issue(&gate, "running", 0..5).await;
    let ledger = base.ledger().await;
    gate.coupon("old").unwrap().close().await.unwrap();
    let store = gate.store().as_ref();
    let early = ledger.purge(store, &coupon("old"), Duration::ZERO).await.unwrap_err().to_string();
    assert!(early.contains("never heard of"), "{early}");
    write_all(&ledger, &gate).await;
    let running = ledger.purge(store, &coupon("running"), Duration::ZERO).await.unwrap_err().to_string();
    assert!(running.contains("close it first"), "{running}");
    let too_young =
        ledger.purge(store, &coupon("old"), Duration::from_secs(60)).await.unwrap_err().to_string();
    assert!(too_young.contains("changed less than"), "{too_young}");

    assert_eq!(ledger.purge(store, &coupon("old"), Duration::ZERO).await.unwrap(), 7);
    assert_eq!(ledger.purge(store, &coupon("old"), Duration::ZERO).await.unwrap(), 0);
    assert_eq!(base.sql().await.number("SELECT COUNT(*) FROM lockgate_ledger").await, 6);
    let audit = ledger.audit(store).await.unwrap();
    assert!(audit.is_green() && audit.campaigns.len() == 1, "{audit:?}");
    assert_eq!(gate.coupon("old").unwrap().status().await.unwrap(), None, "the store has forgotten it too");
    let removed = ledger.winners(&coupon("old")).await.unwrap_err().to_string();
    assert!(removed.contains("retention"), "{removed}");
}
