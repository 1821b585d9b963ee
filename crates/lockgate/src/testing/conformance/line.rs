//! What the operations on lines as such must do. Entering is in `line_entering.rs`, how a line goes on in `line_going_on.rs` and
//! `line_admitting.rs`, tickets in `ticket.rs`, and those who come early in `line_drawing.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::{Home, each_for_itself, fresh, name, nasty_names};
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{
    Ending, Enter, EnterWish, LineChange, LineOpen, LineSecret, LineSecrets, LineState, LineStatus,
    LineTerms, LineTick, Standing, Tick, TicketAt,
};

/// A grace period after which somebody is absent, in a test that waits for it. A line's time goes on by half of it in one call,
/// so that a call which takes long makes nobody absent.
pub(super) const GRACE: Duration = Duration::from_millis(1_000);

/// More than that: a store may be a tenth of a second late to notice.
pub(super) const PAST_GRACE: Duration = Duration::from_millis(1_150);

/// Long enough that it does not come in a test.
pub(super) const LONG: Duration = Duration::from_secs(3_600);

/// What a process knows of a line.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) line: Name,
    pub(super) edition: u64,
}

/// So many people, and nobody after them for a long time. Nobody is absent.
pub(super) fn batch_of(people: u32) -> LineTerms {
    LineTerms::new(people, LONG).unwrap().grace(None).unwrap().pass_ttl(LONG).unwrap()
}

pub(super) fn secrets() -> LineSecrets {
    LineSecrets { tickets: LineSecret::random(), draw: LineSecret::random() }
}

/// A ticket that was not drawn.
pub(super) fn ticket(number: u64) -> TicketAt {
    TicketAt { number, place: number }
}

pub(super) fn waits_at(position: u64) -> Standing {
    Standing::Waiting { position }
}

/// How a store answers who has just entered.
pub(super) fn entered(number: u64, position: u64) -> Enter {
    Enter::In { number, is_new: true, standing: waits_at(position) }
}

/// The same for one who was in the line already.
pub(super) fn was_in(number: u64, standing: Standing) -> Enter {
    Enter::In { number, is_new: false, standing }
}

pub(super) fn over(ending: Ending) -> Standing {
    Standing::Over(ending)
}

impl Home {
    pub(super) async fn opens_as(&self, line: &Name, terms: &LineTerms) -> LineOpen {
        self.store.line_open(line, terms, &secrets()).await.unwrap()
    }

    /// A new line.
    pub(super) async fn line(&self, terms: LineTerms) -> Known {
        let line = fresh("line");
        assert_eq!(self.opens_as(&line, &terms).await, LineOpen::Created);
        self.known(&line).await
    }

    pub(super) async fn known(&self, line: &Name) -> Known {
        let edition = self.store.line_read(line).await.unwrap().unwrap().edition;
        Known { line: line.clone(), edition }
    }

    pub(super) async fn look_at(&self, known: &Known) -> LineStatus {
        self.store.line_read(&known.line).await.unwrap().unwrap()
    }

    pub(super) async fn changes(&self, known: &Known, change: LineChange) -> LineState {
        self.store.line_change(&known.line, change).await.unwrap().unwrap()
    }

    /// Lets these users in, of whom nothing is known; the answers.
    pub(super) async fn enter(&self, known: &Known, users: &[Name]) -> Vec<Enter> {
        let wishes: Vec<_> = users.iter().map(|user| EnterWish { user: user.clone(), known: None }).collect();
        self.store.line_enter(&known.line, known.edition, &wishes).await.unwrap().unwrap().each
    }

    pub(super) async fn enters(&self, known: &Known, user: &str) -> Enter {
        self.enter(known, &[name(user)]).await.remove(0)
    }

    /// So many people enter, whose names are `p0`, `p1` and so on after their numbers; the line was empty.
    pub(super) async fn fill(&self, known: &Known, people: u64) {
        for first in (0..people).step_by(512) {
            let users: Vec<_> =
                (first..people.min(first + 512)).map(|number| name(&format!("p{number}"))).collect();
            let answers = self.enter(known, &users).await;
            assert!(
                matches!(answers[0], Enter::In { number, is_new: true, .. } if number == first),
                "{answers:?}"
            );
        }
    }

    pub(super) async fn ticks_as(&self, known: &Known, tick: Tick) -> LineTick {
        self.store.line_tick(&known.line, known.edition, &tick).await.unwrap().unwrap()
    }

    pub(super) async fn ticks(&self, known: &Known) -> LineTick {
        self.ticks_as(known, Tick::default()).await
    }

    /// Ticks, and says that those are there.
    pub(super) async fn ticks_seeing(&self, known: &Known, seen: impl IntoIterator<Item = u64>) -> LineTick {
        self.ticks_as(known, Tick { seen: seen.into_iter().collect(), ..Tick::default() }).await
    }

    pub(super) async fn shows(&self, known: &Known, number: u64) -> Standing {
        self.shows_at(known, ticket(number)).await
    }

    pub(super) async fn shows_at(&self, known: &Known, ticket: TicketAt) -> Standing {
        self.store.ticket_show(&known.line, known.edition, &[ticket]).await.unwrap().unwrap().each.remove(0)
    }

    pub(super) async fn leaves(&self, known: &Known, number: u64) -> Standing {
        self.leaves_at(known, ticket(number)).await
    }

    pub(super) async fn leaves_at(&self, known: &Known, ticket: TicketAt) -> Standing {
        self.store.ticket_leave(&known.line, known.edition, ticket).await.unwrap().unwrap()
    }

    pub(super) async fn finishes(&self, known: &Known, number: u64) -> Standing {
        self.store.ticket_finish(&known.line, known.edition, ticket(number)).await.unwrap().unwrap()
    }

    pub(super) async fn renews(&self, known: &Known, number: u64) -> Standing {
        self.store.ticket_renew(&known.line, known.edition, ticket(number)).await.unwrap().unwrap()
    }

    /// Until when somebody is admitted who shows the ticket.
    pub(super) async fn is_admitted(&self, known: &Known, number: u64) -> Timestamp {
        match self.shows(known, number).await {
            Standing::Admitted { user, until, is_shown: true } => {
                assert_eq!(user, name(&format!("p{number}")));
                until
            }
            other => panic!("{number}: {other:?}"),
        }
    }

    /// Lets at least so much of the line's own time pass, and with a clock that can be moved exactly so much: by calls that are
    /// closer together than the line's longest step.
    pub(super) async fn goes_on(&self, known: &Known, time: Duration) {
        self.goes_on_seeing(known, time, &[]).await;
    }

    /// The same, where some are there all the time. Only for lines that admit nobody meanwhile.
    pub(super) async fn goes_on_seeing(&self, known: &Known, time: Duration, seen: &[TicketAt]) {
        let longest = self.look_at(known).await.terms.longest_step();
        let mut passed = Duration::ZERO;
        while passed < time {
            let before = self.clock.wall();
            self.let_pass((time - passed).min(longest / 4)).await;
            passed += self.clock.wall().since(before).min(longest);
            self.store.ticket_show(&known.line, known.edition, seen).await.unwrap();
        }
    }
}

/// [`Store::line_open`](crate::store::Store::line_open)
pub async fn line_open(home: &Home) {
    each_for_itself!(home:
        a_line_is_created_once_and_changed_later,
        the_opening_can_be_moved_until_it_has_come,
        a_prequeue_in_which_somebody_is_stays_one,
        opening_again_leaves_the_switch_as_it_is,
        a_new_rate_counts_from_the_next_batch_on,
        a_shorter_interval_begins_at_once,
        every_name_is_a_line_of_its_own,
    );
}

async fn a_line_is_created_once_and_changed_later(home: &Home) {
    let line = fresh("line");
    assert_eq!(home.store.line_read(&line).await.unwrap(), None);
    let (first, second) = (secrets(), secrets());
    let terms = LineTerms::new(7, Duration::from_millis(123_456)).unwrap().max_active(11).unwrap();
    let terms = terms.pass_ttl(Duration::from_millis(5_678)).unwrap().grace(Some(GRACE)).unwrap();
    assert_eq!(home.store.line_open(&line, &terms, &first).await.unwrap(), LineOpen::Created);
    let status = home.store.line_read(&line).await.unwrap().unwrap();
    assert_eq!((status.terms, status.secrets), (terms, first));
    assert_eq!(status.crowd.state, LineState::Running);
    assert_eq!((status.crowd.waiting, status.crowd.active, status.crowd.pace), (0, 0, None));
    assert_eq!((status.early, status.drawn, status.arrived, status.head), (None, None, 0, 0));
    assert_eq!((status.admitted, status.left, status.abandoned), (0, 0, 0));
    assert_eq!((status.no_shows, status.expired, status.finished), (0, 0, 0));
    assert_eq!(status.recent_waits, []);
    assert_eq!(status.eras.iter().map(|era| era.from).collect::<Vec<_>>(), [0]);

    assert_eq!(home.store.line_open(&line, &terms, &second).await.unwrap(), LineOpen::Changed);
    assert_eq!(
        home.store.line_read(&line).await.unwrap().unwrap(),
        status,
        "the same terms changed something"
    );
    assert_eq!(home.store.line_open(&line, &batch_of(3), &second).await.unwrap(), LineOpen::Changed);
    let changed = home.store.line_read(&line).await.unwrap().unwrap();
    assert_eq!((changed.terms, changed.secrets), (batch_of(3), first));
    assert_ne!(changed.edition, status.edition, "who serves the line goes by its terms");
}

async fn the_opening_can_be_moved_until_it_has_come(home: &Home) {
    let line = fresh("line");
    let later = home.clock.wall() + LONG;
    home.opens_as(&line, &batch_of(1).opens_at(later)).await;
    let known = home.known(&line).await;
    assert_eq!(home.look_at(&known).await.crowd.state, LineState::Scheduled);
    let even_later = batch_of(1).opens_at(later + LONG);
    assert_eq!(home.opens_as(&line, &even_later).await, LineOpen::Changed);
    let known = home.known(&line).await;
    assert_eq!(home.enters(&known, "alice").await, Enter::NotOpen { opens_at: later + LONG });
    // Nobody is there who would mind.
    assert_eq!(home.opens_as(&line, &batch_of(1).prequeue_until(later)).await, LineOpen::Changed);
    assert_eq!(home.look_at(&known).await.crowd.state, LineState::Early);
    assert_eq!(home.opens_as(&line, &even_later).await, LineOpen::Changed);

    let now = batch_of(1).opens_at(home.clock.wall());
    assert_eq!(home.opens_as(&line, &now).await, LineOpen::Changed);
    assert_eq!(home.look_at(&known).await.crowd.state, LineState::Running);
    assert_eq!(home.opens_as(&line, &now).await, LineOpen::Changed, "it is the same opening");
    for moved in [even_later, batch_of(1), batch_of(2).prequeue_until(later)] {
        assert_eq!(home.opens_as(&line, &moved).await, LineOpen::TooLate, "{moved:?}");
    }
    let status = home.look_at(&known).await;
    assert_eq!((status.terms, status.crowd.state), (now, LineState::Running));
    let other = home.line(batch_of(1)).await;
    assert_eq!(home.opens_as(&other.line, &even_later).await, LineOpen::TooLate);
}

async fn a_prequeue_in_which_somebody_is_stays_one(home: &Home) {
    let later = home.clock.wall() + LONG;
    let known = home.line(batch_of(1).prequeue_until(later)).await;
    let early = Enter::In { number: 0, is_new: true, standing: Standing::Early };
    assert_eq!(home.enters(&known, "alice").await, early);
    for other in [batch_of(1), batch_of(1).opens_at(later)] {
        assert_eq!(home.opens_as(&known.line, &other).await, LineOpen::TooLate, "{other:?}");
    }
    assert_eq!(home.look_at(&known).await.terms, batch_of(1).prequeue_until(later));
    let moved = batch_of(2).prequeue_until(later + LONG);
    assert_eq!(home.opens_as(&known.line, &moved).await, LineOpen::Changed);
    let known = home.known(&known.line).await;
    assert_eq!(home.look_at(&known).await.terms, moved);
    // Also to now, so that the draw can begin.
    let now = batch_of(2).prequeue_until(home.clock.wall());
    assert_eq!(home.opens_as(&known.line, &now).await, LineOpen::Changed);
    let known = home.known(&known.line).await;
    let status = home.look_at(&known).await;
    assert_eq!((status.crowd.state, status.early), (LineState::Drawing, Some(1)));
    assert_eq!(home.opens_as(&known.line, &moved).await, LineOpen::TooLate);
}

async fn opening_again_leaves_the_switch_as_it_is(home: &Home) {
    let known = home.line(batch_of(1)).await;
    for (change, state) in [(LineChange::Pause, LineState::Paused), (LineChange::Close, LineState::Closed)] {
        assert_eq!(home.changes(&known, change).await, state);
        assert_eq!(home.opens_as(&known.line, &batch_of(2)).await, LineOpen::Changed);
        let known = home.known(&known.line).await;
        assert_eq!(home.look_at(&known).await.crowd.state, state);
    }
}

async fn a_new_rate_counts_from_the_next_batch_on(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 5).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    // The next one is as far away as it was.
    home.opens_as(&known.line, &batch_of(3)).await;
    let known = home.known(&known.line).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0);
    let soon = LineTerms::new(3, Duration::from_millis(10)).unwrap().grace(None).unwrap();
    home.opens_as(&known.line, &soon).await;
    let known = home.known(&known.line).await;
    home.goes_on(&known, Duration::from_millis(10)).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 3);
}

/// Within one new interval of the change, not of the next tick.
async fn a_shorter_interval_begins_at_once(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 3).await;
    home.ticks(&known).await;
    let soon = LineTerms::new(1, Duration::from_millis(600)).unwrap();
    let soon = soon.grace(Some(GRACE / 2)).unwrap();
    home.opens_as(&known.line, &soon).await;
    let known = home.known(&known.line).await;
    home.goes_on_seeing(&known, Duration::from_millis(610), &[ticket(1), ticket(2)]).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    // A line's time goes on by half of the grace period at once: less than an interval.
    assert_eq!(home.ticks_seeing(&known, 0..3).await.done.admitted, 0, "twice within an interval");
    home.opens_as(&known.line, &soon).await;
    let known = home.known(&known.line).await;
    assert_eq!(home.ticks_seeing(&known, 0..3).await.done.admitted, 0, "at once, because the rate was set");
}

async fn every_name_is_a_line_of_its_own(home: &Home) {
    let lines = nasty_names(&fresh("line"));
    for (batch, line) in (1..).zip(&lines) {
        assert_eq!(home.opens_as(line, &batch_of(batch)).await, LineOpen::Created, "{line:?}");
    }
    for (batch, line) in (1..).zip(&lines) {
        let known = home.known(line).await;
        assert_eq!(home.look_at(&known).await.terms, batch_of(batch), "{line:?}");
        assert_eq!(home.enters(&known, "alice").await, entered(0, 1), "{line:?}");
    }
}

/// [`Store::line_change`](crate::store::Store::line_change)
pub async fn line_change(home: &Home) {
    assert_eq!(home.store.line_change(&fresh("line"), LineChange::Pause).await.unwrap(), None);
    each_for_itself!(home:
        a_pause_admits_nobody_until_it_is_over,
        what_is_closed_stays_closed,
        a_line_can_be_stopped_before_it_opens,
    );
}

async fn a_pause_admits_nobody_until_it_is_over(home: &Home) {
    let known = home.line(batch_of(1)).await;
    for _ in 0..2 {
        assert_eq!(home.changes(&known, LineChange::Pause).await, LineState::Paused);
    }
    assert_eq!(home.enters(&known, "p0").await, entered(0, 1));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.next_in, tick.crowd.state), (0, None, LineState::Paused));
    assert_eq!(home.shows(&known, 0).await, waits_at(1));
    for _ in 0..2 {
        assert_eq!(home.changes(&known, LineChange::Resume).await, LineState::Running);
    }
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
}

async fn what_is_closed_stays_closed(home: &Home) {
    let known = home.line(batch_of(2)).await;
    home.fill(&known, 2).await;
    home.ticks(&known).await;
    home.fill_more(&known, 2..4).await;
    assert_eq!(home.leaves(&known, 3).await, over(Ending::Left));
    for change in [LineChange::Close, LineChange::Resume, LineChange::Pause] {
        assert_eq!(home.changes(&known, change).await, LineState::Closed);
    }
    // Nobody enters; who waited, waited in vain; who was admitted stays.
    assert_eq!(home.enters(&known, "carol").await, Enter::Closed);
    assert_eq!(home.enters(&known, "p2").await, Enter::Closed);
    assert!(matches!(home.enters(&known, "p0").await, Enter::In { number: 0, is_new: false, .. }));
    assert_eq!(home.shows(&known, 2).await, over(Ending::Closed));
    assert_eq!(home.leaves(&known, 2).await, over(Ending::Closed));
    assert_eq!(home.shows(&known, 3).await, over(Ending::Left));
    home.is_admitted(&known, 0).await;
    let status = home.look_at(&known).await;
    assert_eq!((status.arrived, status.head, status.left, status.crowd.active), (4, 2, 1, 2));
    assert_eq!(home.finishes(&known, 0).await, over(Ending::Finished));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.next_in, tick.crowd.active), (0, None, 1));
}

async fn a_line_can_be_stopped_before_it_opens(home: &Home) {
    let later = home.clock.wall() + LONG;
    let scheduled = home.line(batch_of(1).opens_at(later)).await;
    // What is more important: nobody may enter.
    assert_eq!(home.changes(&scheduled, LineChange::Pause).await, LineState::Scheduled);
    assert_eq!(home.opens_as(&scheduled.line, &batch_of(1)).await, LineOpen::Changed);
    let scheduled = home.known(&scheduled.line).await;
    assert_eq!(home.look_at(&scheduled).await.crowd.state, LineState::Paused);
    let early = home.line(batch_of(1).prequeue_until(later)).await;
    home.enters(&early, "alice").await;
    assert_eq!(home.changes(&early, LineChange::Close).await, LineState::Closed);
    assert_eq!(home.shows(&early, 0).await, over(Ending::Closed));
    assert_eq!(home.enters(&early, "bob").await, Enter::Closed);
}

impl Home {
    /// More people, named by their numbers.
    pub(super) async fn fill_more(&self, known: &Known, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let answer = self.enters(known, &format!("p{number}")).await;
            assert!(
                matches!(answer, Enter::In { number: its, is_new: true, .. } if its == number),
                "{answer:?}"
            );
        }
    }
}

/// [`Store::line_read`](crate::store::Store::line_read)
pub async fn line_read(home: &Home) {
    assert_eq!(home.store.line_read(&fresh("line")).await.unwrap(), None);
    each_for_itself!(home:
        everybody_is_counted_where_they_belong,
        it_tells_how_long_people_waited,
        it_tells_how_fast_the_line_moves,
    );
}

async fn everybody_is_counted_where_they_belong(home: &Home) {
    let terms = batch_of(4).grace(Some(GRACE)).unwrap().pass_ttl(GRACE).unwrap();
    let known = home.line(terms).await;
    home.fill(&known, 8).await;
    home.leaves(&known, 1).await;
    home.goes_on_seeing(&known, PAST_GRACE, &[0, 3, 4, 5, 6].map(ticket)).await;
    // 1 has left, 2 is absent; 0, 3, 4 and 5 are admitted.
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned, tick.head), (4, 1, 6));
    assert_eq!(home.finishes(&known, 0).await, over(Ending::Finished));
    assert_eq!(home.leaves(&known, 3).await, over(Ending::Left));
    home.is_admitted(&known, 4).await;
    home.goes_on_seeing(&known, PAST_GRACE, &[ticket(6), ticket(7)]).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.no_shows, tick.done.expired, tick.done.admitted), (1, 1, 0));
    let status = home.look_at(&known).await;
    assert_eq!((status.arrived, status.head), (8, 6));
    assert_eq!((status.crowd.waiting, status.crowd.active), (2, 0));
    assert_eq!((status.admitted, status.left, status.abandoned), (4, 1, 1));
    assert_eq!((status.no_shows, status.expired, status.finished), (1, 1, 2));
}

async fn it_tells_how_long_people_waited(home: &Home) {
    let known = home.line(LineTerms::new(2, Duration::from_millis(50)).unwrap().grace(None).unwrap()).await;
    home.fill(&known, 2).await;
    home.goes_on(&known, Duration::from_millis(300)).await;
    home.fill_more(&known, 2..3).await;
    home.ticks(&known).await;
    let waits = home.look_at(&known).await.recent_waits;
    let [(wait, 2)] = waits[..] else { panic!("{waits:?}") };
    assert!(wait >= Duration::from_millis(200), "{wait:?}");
    home.goes_on(&known, Duration::from_millis(50)).await;
    home.ticks(&known).await;
    let waits = home.look_at(&known).await.recent_waits;
    let [(newest, 1), (oldest, 2)] = waits[..] else { panic!("{waits:?}") };
    assert_eq!(oldest, wait);
    assert!(newest < Duration::from_secs(5), "{newest:?}");
}

/// Ten in a batch, every fifth of a second: fifty in a second.
async fn it_tells_how_fast_the_line_moves(home: &Home) {
    let every = Duration::from_millis(200);
    let known = home.line(LineTerms::new(10, every).unwrap().grace(None).unwrap()).await;
    home.fill(&known, 200).await;
    for _ in 0..6 {
        assert_eq!(home.ticks(&known).await.done.admitted, 10);
        home.goes_on(&known, every).await;
    }
    let pace = home.look_at(&known).await.crowd.pace.unwrap();
    assert!((25_000_000..=55_000_000).contains(&pace), "{pace}");
    if home.time_can_be_moved {
        assert!((42_000_000..=52_000_000).contains(&pace), "{pace}");
    }
    // It does not fade while the line stands still on purpose.
    home.changes(&known, LineChange::Pause).await;
    home.goes_on(&known, Duration::from_millis(500)).await;
    let paused = home.ticks(&known).await.crowd.pace.unwrap();
    home.goes_on(&known, Duration::from_millis(500)).await;
    assert_eq!(home.look_at(&known).await.crowd.pace.unwrap(), paused);
    home.changes(&known, LineChange::Resume).await;
    home.goes_on(&known, Duration::from_millis(500)).await;
    assert!(home.look_at(&known).await.crowd.pace.unwrap() < paused);
}

/// [`Store::line_list`](crate::store::Store::line_list)
pub async fn line_list(home: &Home) {
    let mut lines = nasty_names(&fresh("line"));
    for line in &lines {
        home.opens_as(line, &batch_of(1)).await;
    }
    lines.sort_by(|one, two| one.as_str().cmp(two.as_str()));
    let mut found = 0;
    for partition in 0..home.store.partitions() {
        let all = home.store.line_list(partition, None, 1_000_000).await.unwrap();
        let ours: Vec<_> = all.iter().filter(|line| lines.contains(line)).collect();
        assert!(ours.is_sorted_by(|one, two| one.as_str() < two.as_str()), "in another order: {ours:?}");
        assert!(ours.iter().all(|line| home.store.partition_of(line) == partition), "{partition}: {ours:?}");
        found += ours.len();
        if let [first, .., last] = ours[..] {
            let after = home.store.line_list(partition, Some(first), 1_000_000).await.unwrap();
            assert!(!after.contains(first) && after.contains(last), "{after:?}");
            let next = home.store.line_list(partition, Some(first), 1).await.unwrap();
            assert_eq!(next, after[..1]);
        }
        assert_eq!(home.store.line_list(partition, None, 0).await.unwrap(), []);
    }
    assert_eq!(found, lines.len());
}

/// [`Store::line_forget`](crate::store::Store::line_forget)
pub async fn line_forget(home: &Home) {
    assert!(home.store.line_forget(&fresh("line")).await.unwrap());
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 3).await;
    home.ticks(&known).await;
    home.leaves(&known, 2).await;
    let is_listed = async || {
        let partition = home.store.partition_of(&known.line);
        home.store.line_list(partition, None, 1_000_000).await.unwrap().contains(&known.line)
    };
    for change in [LineChange::Resume, LineChange::Pause] {
        home.changes(&known, change).await;
        assert!(!home.store.line_forget(&known.line).await.unwrap(), "{change:?}: it is not closed");
        assert_eq!(home.look_at(&known).await.arrived, 3);
        assert!(is_listed().await);
    }
    home.changes(&known, LineChange::Close).await;
    for _ in 0..2 {
        assert!(home.store.line_forget(&known.line).await.unwrap());
        assert_eq!(home.store.line_read(&known.line).await.unwrap(), None);
        assert!(!is_listed().await);
    }
    // One that is made anew knows nothing of the old one, and the old tickets nothing of it.
    assert_eq!(home.opens_as(&known.line, &batch_of(1)).await, LineOpen::Created);
    let anew = home.known(&known.line).await;
    assert_ne!(anew.edition, known.edition);
    let old = home.store.ticket_show(&known.line, known.edition, &[ticket(0)]).await.unwrap();
    assert_eq!(old, None);
    let status = home.look_at(&anew).await;
    assert_eq!((status.arrived, status.head, status.admitted, status.left), (0, 0, 0, 0));
    assert_eq!((status.crowd.waiting, status.crowd.active, status.recent_waits.len()), (0, 0, 0));
    assert_eq!(home.enters(&anew, "p1").await, entered(0, 1));
}
