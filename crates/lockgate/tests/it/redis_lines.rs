//! What lines leave in Redis, and what a server does that has been there for long, or not for long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::key::Name;
use lockgate::store::{
    Draw, Ending, Enter, EnterWish, LineChange, LineDraw, LineDrawn, LineSecret, LineSecrets, LineStatus,
    LineTerms, LineTick, MAX_EARLY, MAX_STAY, Standing, Store, Tick, TicketAt, Token, Told,
};
use lockgate::testing::services::{Persistence, Redis, Reply};

const HOUR: Duration = Duration::from_secs(3_600);

/// The places of numbers in a line's state, see `scripts/shared/line.lua`.
const TIME: u32 = 0;
const WALL: u32 = 1;
const STAMP: u32 = 3;
const TAIL: u32 = 17;

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

/// A line called `l`, on a server of its own.
struct Line {
    redis: Redis,
    store: Arc<dyn Store>,
    line: Name,
}

impl Line {
    async fn open(terms: &LineTerms) -> Self {
        let redis = Redis::start(Persistence::Off).unwrap();
        let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
        let line = Self { redis, store, line: name("l") };
        line.opens_as(terms).await;
        line
    }

    async fn opens_as(&self, terms: &LineTerms) {
        let secrets = LineSecrets { tickets: LineSecret([1; 32]), draw: LineSecret([2; 32]) };
        self.store.line_open(&self.line, terms, &secrets).await.unwrap();
    }

    async fn status(&self) -> LineStatus {
        self.store.line_read(&self.line).await.unwrap().unwrap()
    }

    async fn enter_if_known(&self, edition: u64, users: &[String]) -> Option<Told<Enter>> {
        let wishes: Vec<_> = users.iter().map(|user| EnterWish { user: name(user), known: None }).collect();
        self.store.line_enter(&self.line, edition, &wishes).await.unwrap()
    }

    async fn enters(&self, user: &str) -> Enter {
        let edition = self.status().await.edition;
        self.enter_if_known(edition, &[user.to_owned()]).await.unwrap().each.remove(0)
    }

    async fn fill(&self, people: u64) {
        let edition = self.status().await.edition;
        for first in (0..people).step_by(512) {
            let users: Vec<_> =
                (first..people.min(first + 512)).map(|number| format!("user-{number:06}")).collect();
            self.enter_if_known(edition, &users).await.unwrap();
        }
    }

    async fn tick(&self) -> LineTick {
        let edition = self.status().await.edition;
        self.store.line_tick(&self.line, edition, &Tick::default()).await.unwrap().unwrap()
    }

    async fn ticks(&self, times: u64) {
        for _ in 0..times {
            self.tick().await;
        }
    }

    /// Ticks until the head is at least there.
    async fn passes(&self, head: u64) {
        while self.tick().await.head < head {
            tokio::time::sleep(Duration::from_millis(11)).await;
        }
    }

    async fn shows_at(&self, number: u64, place: u64) -> Standing {
        let edition = self.status().await.edition;
        let ticket = [TicketAt { number, place }];
        self.store.ticket_show(&self.line, edition, &ticket).await.unwrap().unwrap().each.remove(0)
    }

    async fn shows(&self, number: u64) -> Standing {
        self.shows_at(number, number).await
    }

    async fn finishes(&self, number: u64) {
        let edition = self.status().await.edition;
        let ticket = TicketAt { number, place: number };
        self.store.ticket_finish(&self.line, edition, ticket).await.unwrap().unwrap();
    }

    async fn leaves(&self, number: u64) {
        let edition = self.status().await.edition;
        let ticket = TicketAt { number, place: number };
        self.store.ticket_leave(&self.line, edition, ticket).await.unwrap().unwrap();
    }

    /// Adds to one of the numbers of the line's state, behind its back.
    fn shift(&self, number: u32, by: i64) {
        const ADD: &str = "local at, by = ARGV[1] * 8, ARGV[2] + 0
            local now = struct.unpack('>d', redis.call('GETRANGE', KEYS[1], at, at + 7))
            return redis.call('SETRANGE', KEYS[1], at, struct.pack('>d', now + by))";
        let (number, by) = (number.to_string(), by.to_string());
        self.redis.command(&["EVAL", ADD, "1", "lg:{0}:line:l", &number, &by]).unwrap();
    }

    /// Lets so much of the line's own time pass at once, which no calls can do.
    fn let_pass(&self, time: Duration) {
        self.shift(TIME, i64::try_from(time.as_micros()).unwrap());
    }

    fn count(&self, command: &[&str]) -> i64 {
        match self.redis.command(command).unwrap() {
            Reply::Int(count) => count,
            other => panic!("{command:?}: {other:?}"),
        }
    }
}

fn every_ten_millis(people: u32) -> LineTerms {
    LineTerms::new(people, Duration::from_millis(10)).unwrap().grace(None).unwrap()
}

fn is_new(answer: &Enter, number: u64) -> bool {
    matches!(answer, Enter::In { number: its, is_new: true, .. } if *its == number)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_ten_keys_in_one_slot_that_stay_until_it_is_forgotten() {
    let line = Line::open(&every_ten_millis(2)).await;
    line.fill(5).await;
    line.leaves(3).await;
    line.store.line_admit(&line.line, 1, &Token::random()).await.unwrap();
    line.tick().await;
    let keys = |pattern: &str| match line.redis.command(&["KEYS", pattern]).unwrap() {
        Reply::Array(keys) => {
            keys.iter().filter_map(Reply::as_str).map(str::to_owned).collect::<BTreeSet<_>>()
        }
        other => panic!("{other:?}"),
    };
    let parts = ["", "-active", "-gaps", "-gone", "-marks", "-people", "-requests", "-users", "-waits"];
    let mut expected: BTreeSet<_> = parts.iter().map(|part| format!("lg:{{0}}:line{part}:l")).collect();
    assert_eq!(keys("*:l"), expected);
    expected.insert("lg:{0}:lines".into());
    assert_eq!(keys("*line*"), expected);
    for key in &expected {
        assert_eq!(line.count(&["PTTL", key]), -1, "{key} ends by itself");
    }
    line.store.line_change(&line.line, LineChange::Close).await.unwrap();
    assert!(line.store.line_forget(&line.line).await.unwrap());
    assert_eq!(keys("*line*"), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_waits_takes_less_than_two_hundred_bytes() {
    let line = Line::open(&every_ten_millis(1)).await;
    let people = 20_000;
    line.fill(people).await;
    let of = |part: &str| line.count(&["MEMORY", "USAGE", &format!("lg:{{0}}:line{part}:l"), "SAMPLES", "0"]);
    let bytes: i64 = ["", "-marks", "-people", "-users"].into_iter().map(of).sum();
    let per_person = bytes / i64::try_from(people).unwrap();
    println!("{per_person} bytes per person");
    assert!((20..=200).contains(&per_person), "{per_person}");
}

/// An hour after it was over, and as many at once as are worth it.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_over_for_an_hour_is_forgotten() {
    let short = Duration::from_millis(300);
    let terms = every_ten_millis(1_000).grace(Some(short)).unwrap().pass_ttl(24 * HOUR).unwrap();
    let line = Line::open(&terms).await;
    line.store.line_change(&line.line, LineChange::Pause).await.unwrap();
    line.fill(70_000).await;
    line.leaves(69_990).await;
    line.store.line_change(&line.line, LineChange::Resume).await.unwrap();
    let tick = Tick { seen: (0..1_000).collect(), ..Tick::default() };
    let edition = line.status().await.edition;
    assert_eq!(line.store.line_tick(&line.line, edition, &tick).await.unwrap().unwrap().done.admitted, 1_000);
    // One stays, all others do not come.
    assert!(matches!(line.shows(5).await, Standing::Admitted { .. }));
    line.let_pass(Duration::from_secs(2));
    line.passes(70_000).await;
    line.ticks(3).await;
    // Some wait, and one of them has left, when those before them are forgotten.
    line.store.line_change(&line.line, LineChange::Pause).await.unwrap();
    for late in 0..10 {
        line.enters(&format!("late-{late}")).await;
    }
    line.leaves(70_003).await;
    for _ in 0..3 {
        line.let_pass(HOUR);
        line.tick().await;
    }
    assert_eq!(
        line.shows(0).await,
        Standing::Over(Ending::NoShow),
        "a block in which somebody is was forgotten"
    );
    assert!(matches!(line.shows(5).await, Standing::Admitted { .. }));
    line.finishes(5).await;
    line.let_pass(HOUR);
    line.tick().await;
    assert_eq!(line.shows(5).await, Standing::Over(Ending::Finished), "it is over since a moment");
    line.let_pass(HOUR);
    line.tick().await;
    for number in [0, 5, 65_535] {
        assert_eq!(line.shows(number).await, Standing::Unknown, "{number}");
    }
    assert_eq!(line.shows(65_536).await, Standing::Over(Ending::Abandoned));
    assert_eq!(line.shows(69_990).await, Standing::Over(Ending::Left));

    for (number, position) in [(70_000, 1), (70_002, 3), (70_004, 4), (70_009, 9)] {
        assert_eq!(line.shows(number).await, Standing::Waiting { position }, "{number}");
    }
    assert_eq!(line.shows(70_003).await, Standing::Over(Ending::Left));
    // Who is forgotten enters anew, also while the names are still being forgotten.
    assert!(is_new(&line.enters("user-000007").await, 70_010));
    assert!(is_new(&line.enters("user-060000").await, 70_011));
    line.ticks(40).await;
    assert_eq!(line.count(&["LLEN", "lg:{0}:line-people:l"]), 70_012 - 65_536);
    // One field says what the hash is; those two have new numbers.
    assert_eq!(line.count(&["HLEN", "lg:{0}:line-users:l"]), 1 + 70_012 - 65_536);
    assert_eq!(line.count(&["STRLEN", "lg:{0}:line-marks:l"]), 8 * (70_012 - 65_536));
    assert!(is_new(&line.enters("user-000008").await, 70_012));
    assert!(matches!(line.enters("user-000007").await, Enter::In { number: 70_010, is_new: false, .. }));

    // All goes on as before.
    line.leaves(70_011).await;
    for (number, position) in [(70_009, 9), (70_010, 10), (70_012, 11)] {
        assert_eq!(line.shows(number).await, Standing::Waiting { position }, "{number}");
    }
    line.store.line_change(&line.line, LineChange::Resume).await.unwrap();
    assert_eq!(line.tick().await.head, 70_013);
    assert_eq!(line.shows(70_011).await, Standing::Over(Ending::Left));
    let Standing::Admitted { user, .. } = line.shows(70_012).await else { panic!("not admitted") };
    assert_eq!(user, name("user-000008"));
}

/// Their numbers are not their places.
#[tokio::test(flavor = "multi_thread")]
async fn those_who_were_drawn_are_forgotten_together() {
    let early = 70_000;
    let terms = every_ten_millis(1_000).pass_ttl(Duration::from_millis(100)).unwrap();
    let line =
        Line::open(&terms.prequeue_until(lockgate::clock::Timestamp::from_micros(u64::MAX >> 12))).await;
    line.fill(early).await;
    line.opens_as(&terms.prequeue_until(lockgate::clock::Timestamp::from_micros(1))).await;
    let drawn = LineDrawn { early, arrivals_hash: [1; 32], seed: [2; 32] };
    let draw = Draw { drawn, gone: vec![0; 8_750] };
    assert_eq!(line.store.line_draw(&line.line, &draw).await.unwrap(), Some(LineDraw::Drawn));
    line.passes(69_000).await;
    line.store.line_change(&line.line, LineChange::Pause).await.unwrap();
    let two_hours = async || {
        line.let_pass(HOUR);
        // All that are over have to be noticed before it is noted that they are.
        line.ticks(75).await;
        line.let_pass(HOUR);
        line.ticks(2).await;
        line.let_pass(HOUR);
        line.ticks(2).await;
    };
    two_hours().await;
    assert_eq!(
        line.shows_at(69_999, 0).await,
        Standing::Over(Ending::NoShow),
        "some are forgotten, others not"
    );
    assert_eq!(line.store.line_arrivals(&line.line, 0, 5).await.unwrap().unwrap().people.len(), 5);
    line.store.line_change(&line.line, LineChange::Resume).await.unwrap();
    line.passes(early).await;
    // There is no whole block of places behind the last of them yet.
    two_hours().await;
    assert_eq!(line.shows_at(69_999, 0).await, Standing::Over(Ending::NoShow));
    let edition = line.status().await.edition;
    for first in (early..100_000).step_by(512) {
        let users: Vec<_> = (first..first + 512).map(|number| format!("user-{number:06}")).collect();
        line.enter_if_known(edition, &users).await.unwrap();
    }
    line.passes(100_000).await;
    two_hours().await;
    assert_eq!(line.shows_at(69_999, 0).await, Standing::Unknown);
    assert_eq!(line.store.line_arrivals(&line.line, 0, 5).await.unwrap(), None);
    let next = line.status().await.arrived;
    assert!(is_new(&line.enters("user-000000").await, next));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_stays_admitted_for_longer_than_a_day() {
    let line = Line::open(&every_ten_millis(1).pass_ttl(HOUR).unwrap()).await;
    line.fill(1).await;
    line.tick().await;
    assert!(matches!(line.shows(0).await, Standing::Admitted { .. }));
    let renews = async || {
        let (ticket, edition) = (TicketAt { number: 0, place: 0 }, line.status().await.edition);
        line.store.ticket_renew(&line.line, edition, ticket).await.unwrap().unwrap()
    };
    let left = |standing: &Standing| match standing {
        Standing::Admitted { until, is_shown: true, .. } => {
            until.since(lockgate::clock::Clock::system().wall())
        }
        other => panic!("{other:?}"),
    };
    for _ in 0..25 {
        line.let_pass(HOUR - Duration::from_secs(200));
        let left = left(&renews().await);
        assert!(left <= HOUR, "{left:?}");
    }
    let (stayed, last) = (25 * (HOUR - Duration::from_secs(200)), left(&renews().await));
    let until_the_end = MAX_STAY - stayed;
    assert!(last <= until_the_end + Duration::from_secs(1), "{last:?} of {until_the_end:?}");
    assert!(last + Duration::from_secs(60) >= until_the_end, "{last:?} of {until_the_end:?}");
    line.let_pass(until_the_end + Duration::from_secs(1));
    assert_eq!(renews().await, Standing::Over(Ending::Expired));
}

/// Its time neither goes back nor stands still when the server's clock is set back.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_takes_nothing_from_a_line() {
    let line = Line::open(&LineTerms::new(1, Duration::from_secs(60)).unwrap()).await;
    line.fill(3).await;
    let before = line.tick().await.next_in.unwrap();
    // The last call was an hour from now.
    line.shift(WALL, 3_600_000_000);
    let at_once = line.tick().await.next_in.unwrap();
    assert!(at_once <= before && at_once + Duration::from_secs(1) > before, "{before:?} {at_once:?}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let later = line.tick().await.next_in.unwrap();
    assert!(later + Duration::from_millis(50) <= at_once, "it stands still: {at_once:?} {later:?}");
    // And by a jump into the future it goes on by one step.
    line.shift(WALL, -3_600_000_000);
    let jumped = line.tick().await.next_in.unwrap();
    let step = later - jumped;
    assert!(step >= Duration::from_secs(5) && step < Duration::from_secs(6), "{later:?} {jumped:?}");
}

/// A server that may have forgotten numbers which it gave does not give them again under the old era.
#[tokio::test(flavor = "multi_thread")]
async fn another_run_of_the_server_begins_an_era_with_the_next_number() {
    let line = Line::open(&every_ten_millis(1)).await;
    line.store.line_change(&line.line, LineChange::Pause).await.unwrap();
    line.fill(3).await;
    let before = line.status().await;
    line.shift(STAMP, 1);
    // Whoever is in the line is, and needs no number.
    let answers = line.enter_if_known(before.edition, &["user-000001".to_owned()]).await.unwrap().each;
    assert!(matches!(answers[0], Enter::In { number: 1, is_new: false, .. }));
    assert_eq!(line.status().await.edition, before.edition);
    let both = ["user-000001", "user-000003"].map(str::to_owned);
    assert_eq!(line.enter_if_known(before.edition, &both).await, None);
    let after = line.status().await;
    assert_eq!((after.arrived, after.eras.len()), (3, 2));
    assert!(after.edition > before.edition);
    assert!(after.eras[1].era > after.eras[0].era && after.eras[1].from == 3, "{:?}", after.eras);
    assert_eq!(line.enter_if_known(before.edition, &both).await, None);
    let answers = line.enter_if_known(after.edition, &both).await.unwrap().each;
    assert!(is_new(&answers[1], 3), "{answers:?}");
    let status = line.status().await;
    assert_eq!((status.arrived, status.edition, &status.eras), (4, after.edition, &after.eras));

    // One alone, and one of whom it was known that nobody is: all ways to a number.
    for users in [vec!["new-1".to_owned()], vec!["new-2".to_owned(), "new-3".to_owned()]] {
        line.shift(STAMP, 1);
        let edition = line.status().await.edition;
        assert_eq!(line.enter_if_known(edition, &users).await, None, "{users:?}");
        assert!(line.enter_if_known(line.status().await.edition, &users).await.is_some());
    }
    // The last ones are kept.
    for _ in 0..40 {
        line.shift(STAMP, 1);
        let edition = line.status().await.edition;
        assert_eq!(line.enter_if_known(edition, &["nobody".to_owned()]).await, None);
    }
    let eras = line.status().await.eras;
    assert_eq!((eras.len(), eras[31].from), (32, 7));
    assert!(eras.is_sorted_by(|one, two| one.era < two.era), "{eras:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_knows_its_people_after_a_restart_and_begins_an_era() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let line = Line { redis, store, line: name("l") };
    line.opens_as(&LineTerms::new(1, HOUR).unwrap()).await;
    line.fill(3).await;
    let before = line.status().await;
    line.redis.kill();
    line.redis.restart().unwrap();
    let status = line.status().await;
    assert_eq!((status.arrived, status.edition, &status.secrets), (3, before.edition, &before.secrets));
    assert_eq!(line.shows(2).await, Standing::Waiting { position: 3 });
    let somebody = ["somebody".to_owned()];
    assert_eq!(line.enter_if_known(before.edition, &somebody).await, None);
    let after = line.status().await;
    assert_eq!(after.eras.len(), 2);
    assert!(is_new(&line.enter_if_known(after.edition, &somebody).await.unwrap().each[0], 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_come_early_as_may() {
    let later = lockgate::clock::Clock::system().wall() + HOUR;
    let line = Line::open(&every_ten_millis(1).prequeue_until(later)).await;
    line.fill(2).await;
    line.shift(TAIL, i64::try_from(MAX_EARLY).unwrap() - 2);
    assert_eq!(line.enters("alice").await, Enter::Full);
    let edition = line.status().await.edition;
    let some = ["alice", "user-000001", "bob"].map(str::to_owned);
    let answers = line.enter_if_known(edition, &some).await.unwrap().each;
    assert_eq!((&answers[0], &answers[2]), (&Enter::Full, &Enter::Full));
    assert!(matches!(answers[1], Enter::In { number: 1, is_new: false, standing: Standing::Early }));
}
