//! Passes from end to end: signed, verified, shown to a campaign that demands them, and used once.

mod elsewhere;

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::{Clock, Timestamp};
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::line::pass::{Pass, PassClaims, PassError, PassKeys};
use lockgate::stock::{HoldPlace, Issue, Purchase, Reservation, Revoke, Terms};
use lockgate::store::memory::MemoryStore;
use lockgate::store::redis::RedisStore;
use lockgate::store::{MAX_STAY, Token};
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Cluster, Persistence, Redis, Reply};
use tempfile::TempDir;
use tokio::task::JoinSet;

const TEN_MINUTES: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_secs(20);

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

/// The line `tour`, as somebody who admits and as somebody who checks.
struct Line {
    keys: PassKeys,
    clock: Clock,
}

impl Line {
    fn new(clock: Clock) -> Self {
        Self { keys: PassKeys::generate(), clock }
    }

    /// What somebody who is admitted for so long is given.
    fn admit(&self, user: &str, jti: Token, stay: Duration) -> String {
        let now = self.clock.wall();
        let (user, line) = (name(user), name("tour"));
        self.keys.sign(&PassClaims { user: &user, line: &line, jti, until: now + stay, now }).unwrap()
    }

    fn pass(&self, user: &str) -> Pass {
        self.verify(&self.admit(user, Token::random(), TEN_MINUTES)).unwrap()
    }

    fn verify(&self, token: &str) -> Result<Pass, PassError> {
        self.keys.verifier().verify(token, &name("tour"), self.clock.wall())
    }
}

fn demanding(quantity: u64) -> Terms {
    Terms::new(quantity).unwrap().demanding_pass_of(name("tour"))
}

/// One pass, a thousand times at once.
async fn a_thousand_replays_are_one_success(gate: Gate) {
    let line = Line::new(Clock::system());
    let (coupon, deal, held) =
        (gate.coupon("c").unwrap(), gate.deal("d").unwrap(), gate.deal("held").unwrap());
    coupon.open(&demanding(5_000)).await.unwrap();
    deal.open(&demanding(5_000)).await.unwrap();
    held.open(&demanding(5_000)).await.unwrap();
    let pass = line.pass("alice");
    let (mut issues, mut purchases, mut holds) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
    for _ in 0..1_000 {
        let (coupon, pass_shown) = (coupon.clone(), pass.clone());
        issues.spawn(async move { coupon.issue_with_pass("alice", &pass_shown).await.unwrap() });
        let deal = deal.with_pass(&pass);
        purchases.spawn(async move { deal.purchase("alice", 1).await.unwrap() });
        let held = held.with_pass(&pass);
        holds.spawn(async move { held.hold("alice", 1, TEN_MINUTES).await.unwrap() });
    }
    let issues = issues.join_all().await;
    let issued = issues.iter().filter(|answer| matches!(answer, Issue::Issued { seq: 1, .. })).count();
    let again = issues.iter().filter(|answer| **answer == Issue::AlreadyIssued { seq: 1 }).count();
    assert_eq!((issued, again), (1, 999));
    let purchases = purchases.join_all().await;
    let bought = purchases.iter().filter(|answer| matches!(answer, Purchase::Bought { .. })).count();
    let refused = purchases.iter().filter(|answer| **answer == Purchase::PassUsed).count();
    assert_eq!((bought, refused), (1, 999));
    let holds = holds.join_all().await;
    let placed = holds.iter().filter(|answer| matches!(answer, Reservation::Held { .. })).count();
    let refused = holds.iter().filter(|answer| matches!(answer, Reservation::Denied(HoldPlace::PassUsed)));
    assert_eq!((placed, refused.count()), (1, 999));
    let status = deal.status().await.unwrap().unwrap();
    assert_eq!((status.granted, status.rev, status.line), (1, 2, Some(name("tour"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_a_thousand_replays_are_one_success() {
    a_thousand_replays_are_one_success(Gate::open("memory").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_disk_a_thousand_replays_are_one_success() {
    let folder = TempDir::new().unwrap();
    let store = MemoryStore::open(folder.path().join("journal.db"), &Config::default()).unwrap();
    a_thousand_replays_are_one_success(Gate::on(Arc::new(store))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_a_thousand_replays_are_one_success() {
    let redis = Redis::start(Persistence::Off).unwrap();
    a_thousand_replays_are_one_success(Gate::open(&redis.url()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster_a_thousand_replays_are_one_success() {
    let cluster = Cluster::start().unwrap();
    a_thousand_replays_are_one_success(Gate::open(&cluster.url()).await.unwrap()).await;
}

/// Two users with the same wish for the last one: the pass of the one who came too late is good for the next.
async fn only_a_grant_uses_a_pass_up(gate: Gate) {
    let line = Line::new(Clock::system());
    let coupon = gate.coupon("c").unwrap();
    coupon.open(&demanding(1)).await.unwrap();
    let (alices, bobs) = (line.pass("alice"), line.pass("bob"));
    assert_eq!(coupon.issue("alice").await.unwrap(), Issue::PassRequired);
    assert_eq!(coupon.issue_with_pass("alice", &bobs).await.unwrap(), Issue::PassInvalid, "somebody else's");
    assert_eq!(
        coupon.issue_with_pass("alice", &alices).await.unwrap(),
        Issue::Issued { seq: 1, remaining: 0 }
    );
    assert_eq!(coupon.issue_with_pass("bob", &bobs).await.unwrap(), Issue::SoldOut);
    assert!(matches!(coupon.revoke("alice", 1).await.unwrap(), Revoke::Revoked { .. }));
    assert_eq!(
        coupon.issue_with_pass("alice", &alices).await.unwrap(),
        Issue::PassUsed,
        "it is not given back"
    );
    assert_eq!(coupon.issue_with_pass("bob", &bobs).await.unwrap(), Issue::Issued { seq: 2, remaining: 0 });

    let elsewhere = gate.coupon("of another line").unwrap();
    elsewhere.open(&Terms::new(1).unwrap().demanding_pass_of(name("other"))).await.unwrap();
    let carols = line.pass("carol");
    assert_eq!(elsewhere.issue_with_pass("carol", &carols).await.unwrap(), Issue::PassInvalid);
    let free = gate.deal("free").unwrap();
    free.open(&Terms::new(2).unwrap()).await.unwrap();
    for _ in 0..2 {
        let bought = free.with_pass(&carols).purchase("dave", 1).await.unwrap();
        assert!(matches!(bought, Purchase::Bought { .. }), "{bought:?}: nobody has asked for a pass");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_only_a_grant_uses_a_pass_up() {
    only_a_grant_uses_a_pass_up(Gate::open("memory").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_only_a_grant_uses_a_pass_up() {
    let redis = Redis::start(Persistence::Off).unwrap();
    only_a_grant_uses_a_pass_up(Gate::open(&redis.url()).await.unwrap()).await;
}

/// Whoever verified it in time may come too late: the store goes by its own clock, and forgives nothing.
#[tokio::test]
async fn a_pass_that_ended_on_the_way_is_over() {
    let mut config = Config::default();
    config.clock = Clock::fake();
    let gate = Gate::open_with("memory", &config).await.unwrap();
    let line = Line::new(config.clock.clone());
    let deal = gate.deal("d").unwrap();
    deal.open(&demanding(9)).await.unwrap();
    let token = line.admit("alice", Token::random(), TEN_MINUTES);
    let pass = line.verify(&token).unwrap();
    config.clock.advance(TEN_MINUTES);
    assert_eq!(line.verify(&token), Err(PassError::Expired));
    let patient = line.keys.verifier().with_leeway(Duration::from_secs(30)).unwrap();
    assert!(patient.verify(&token, &name("tour"), config.clock.wall()).is_ok());
    assert_eq!(deal.with_pass(&pass).purchase("alice", 1).await.unwrap(), Purchase::PassExpired);
    assert_eq!(deal.status().await.unwrap().unwrap().granted, 0);
}

/// Opens the journal; whoever had it before may take a moment to let go.
async fn reopened(folder: &TempDir) -> Gate {
    let mut store = None;
    let is_open = eventually_async(SOON, async || {
        store = MemoryStore::open(folder.path().join("journal.db"), &Config::default()).ok();
        store.is_some()
    });
    assert!(is_open.await);
    Gate::on(Arc::new(store.unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_pass_is_used_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let line = Line::new(Clock::system());
    let [alices, bobs, carols, daves] = ["alice", "bob", "carol", "dave"].map(|user| line.pass(user));
    {
        let gate = reopened(&folder).await;
        let (coupon, deal) = (gate.coupon("c").unwrap(), gate.deal("d").unwrap());
        coupon.open(&demanding(9)).await.unwrap();
        deal.open(&demanding(9)).await.unwrap();
        assert!(matches!(coupon.issue_with_pass("alice", &alices).await.unwrap(), Issue::Issued { .. }));
        assert!(matches!(coupon.revoke("alice", 1).await.unwrap(), Revoke::Revoked { .. }));
        let bought = deal.with_pass(&bobs).purchase("bob", 1).await.unwrap();
        assert!(matches!(bought, Purchase::Bought { .. }));
        let held = deal.with_pass(&carols).hold("carol", 1, TEN_MINUTES).await.unwrap();
        let Reservation::Held { hold, .. } = held else { panic!("{held:?}") };
        hold.cancel().await.unwrap();
        gate.shutdown().await;
    }
    let gate = reopened(&folder).await;
    let (coupon, deal) = (gate.coupon("c").unwrap(), gate.deal("d").unwrap());
    assert_eq!(coupon.status().await.unwrap().unwrap().line, Some(name("tour")));
    assert_eq!(coupon.issue("dave").await.unwrap(), Issue::PassRequired);
    assert_eq!(coupon.issue_with_pass("alice", &alices).await.unwrap(), Issue::PassUsed);
    for (user, pass) in [("bob", &bobs), ("carol", &carols)] {
        assert_eq!(deal.with_pass(pass).purchase(user, 1).await.unwrap(), Purchase::PassUsed, "{user}");
    }
    assert!(matches!(coupon.issue_with_pass("dave", &daves).await.unwrap(), Issue::Issued { .. }));
}

/// A server that comes back is looked at, trusted again, and still demands what it did.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_restarted_still_demands_and_still_knows() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let mut config = Config::default();
    config.recovery_grace = Duration::from_millis(500);
    let gate = Gate::on_with(Arc::new(RedisStore::connect(&redis.url(), &config).await.unwrap()), &config);
    let line = Line::new(Clock::system());
    let deal = gate.deal("d").unwrap();
    deal.open(&demanding(9)).await.unwrap();
    let pass = line.pass("alice");
    assert!(matches!(deal.with_pass(&pass).purchase("alice", 1).await.unwrap(), Purchase::Bought { .. }));
    redis.kill();
    redis.restart().unwrap();
    let mut answer = None;
    let is_back = eventually_async(SOON, async || {
        answer = deal.purchase("bob", 1).await.ok();
        !matches!(answer, None | Some(Purchase::Recovering))
    });
    assert!(is_back.await, "{answer:?}");
    assert_eq!(answer, Some(Purchase::PassRequired));
    assert_eq!(deal.status().await.unwrap().unwrap().line, Some(name("tour")));
    assert_eq!(deal.with_pass(&pass).purchase("alice", 1).await.unwrap(), Purchase::PassUsed);
}

/// When a member of what is due is, in microseconds.
fn due(redis: &Redis, key: &str, member: &str) -> Option<u64> {
    match redis.command(&["ZSCORE", key, member]).unwrap() {
        Reply::Text(score) => score.parse().ok(),
        _ => None,
    }
}

/// Neither at the end of the pass, when a renewed one could still be shown, nor never.
#[tokio::test(flavor = "multi_thread")]
async fn redis_forgets_a_used_pass_a_day_after_its_end() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let line = Line::new(Clock::system());
    let (coupon, deal) = (gate.coupon("c").unwrap(), gate.deal("d").unwrap());
    coupon.open(&demanding(9)).await.unwrap();
    deal.open(&demanding(9)).await.unwrap();
    let [one, two, three] = ["a", "b", "c"].map(|user| line.pass(user));
    coupon.issue_with_pass("a", &one).await.unwrap();
    deal.with_pass(&two).purchase("b", 1).await.unwrap();
    deal.with_pass(&three).hold("c", 1, TEN_MINUTES).await.unwrap();
    let forgotten_at = |pass: &Pass| Some((pass.expires_at() + MAX_STAY).as_micros());
    for (kind, campaign, pass) in [("coupon", "c", &one), ("deal", "d", &two), ("deal", "d", &three)] {
        let jti = pass.jti();
        let (members, key) =
            (format!("lg:{{0}}:{kind}-members:{campaign}"), format!("lg:{{0}}:{kind}-due:{campaign}"));
        assert_eq!(due(&redis, &key, &format!("fp{jti}")), forgotten_at(pass), "{kind} {campaign}");
        let kept = redis.command(&["HEXISTS", &members, &format!("p{jti}")]).unwrap();
        assert!(matches!(kept, Reply::Int(1)), "{kept:?}");
        // The ninth number of a campaign's state: when something is due. Without it nobody would look.
        let state = format!("lg:{{0}}:{kind}:{campaign}");
        let looked_at = redis.command(&["GETRANGE", &state, "64", "71"]).unwrap();
        assert!(!matches!(&looked_at, Reply::Text(number) if number == "\0\0\0\0\0\0\0\0"), "{kind}: never");
        // Its time has come. These bytes are the number 32.5.
        redis.command(&["ZADD", &key, "1", &format!("fp{jti}")]).unwrap();
        redis.command(&["SETRANGE", &state, "64", "@@@@@@@@"]).unwrap();
    }
    // Whoever comes next forgets it; what else there is to know of the campaign stays.
    assert_eq!(coupon.issue("d").await.unwrap(), Issue::PassRequired);
    assert_eq!(deal.purchase("d", 1).await.unwrap(), Purchase::PassRequired);
    for (members, pass) in [("coupon-members:c", &one), ("deal-members:d", &two), ("deal-members:d", &three)]
    {
        let kept = redis.command(&["HEXISTS", &format!("lg:{{0}}:{members}"), &format!("p{}", pass.jti())]);
        assert!(matches!(kept, Ok(Reply::Int(0))), "{members}: {kept:?}");
    }
}

#[tokio::test]
async fn a_pass_is_for_one_line_and_for_a_time() {
    let line = Line::new(Clock::fake());
    let token = line.admit("alice", Token::random(), Duration::from_millis(1_500));
    let pass = line.verify(&token).unwrap();
    assert!(pass.expires_at() > line.clock.wall());
    assert!(pass.expires_at() <= line.clock.wall() + Duration::from_millis(1_500));
    let elsewhere = line.keys.verifier().verify(&token, &name("other"), Timestamp::from_micros(0));
    assert_eq!(elsewhere, Err(PassError::OtherLine { line: name("tour") }));
}
