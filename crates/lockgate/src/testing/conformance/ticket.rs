//! What the operations on tickets must do.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::line::{GRACE, Known, LONG, PAST_GRACE, batch_of, over, ticket, waits_at};
use super::{Home, each_for_itself, fresh, name};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::{Ending, Enter, LineChange, LineState, LineTerms, MAX_LINE_CALL, MAX_STAY, Standing};

/// More than a store that counts its places in blocks counts together.
const LONG_LINE: u64 = 66_000;

const SHORT: Duration = Duration::from_millis(300);

impl Home {
    /// A line with so many people in it of whom the first two are admitted, for so long when they show their tickets.
    async fn admitted(&self, people: u64, pass_ttl: Duration) -> Known {
        let known = self.line(batch_of(2).pass_ttl(pass_ttl).unwrap()).await;
        self.fill(&known, people).await;
        assert_eq!(self.ticks(&known).await.done.admitted, 2.min(u32::try_from(people).unwrap()));
        known
    }

    /// `until` is so far from now, more or less: tests may have to wait for their turn, and a line's time for its next call.
    fn is_after(&self, until: Timestamp, time: Duration) -> bool {
        let now = self.clock.wall();
        let slack = if self.time_can_be_moved { Duration::from_millis(1) } else { Duration::from_secs(5) };
        until <= now + time + slack && until + slack >= now + time
    }
}

/// [`Store::ticket_show`](crate::store::Store::ticket_show)
pub async fn ticket_show(home: &Home) {
    each_for_itself!(home:
        everybody_is_told_where_they_stand,
        whoever_shows_a_ticket_is_seen,
        the_time_begins_when_the_ticket_is_shown,
        as_many_tickets_as_one_call_may_carry,
        a_ticket_that_does_not_exist_is_unknown,
        positions_in_a_long_line_do_not_count_those_who_left,
    );
}

async fn everybody_is_told_where_they_stand(home: &Home) {
    let known = home.admitted(6, LONG).await;
    home.leaves(&known, 3).await;
    home.finishes(&known, 0).await;
    let tickets = [5, 3, 0, 1, 2, 2, 4, 6].map(ticket);
    let told = home.store.ticket_show(&known.line, known.edition, &tickets).await.unwrap().unwrap();
    assert_eq!((told.crowd.state, told.crowd.waiting, told.crowd.active), (LineState::Running, 3, 1));
    let [five, three, zero, one, two, two_again, four, six] = &told.each[..] else { panic!("{told:?}") };
    assert_eq!((five, three, zero), (&waits_at(3), &over(Ending::Left), &over(Ending::Finished)));
    assert!(matches!(one, Standing::Admitted { user, is_shown: true, .. } if *user == name("p1")), "{one:?}");
    assert_eq!((two, two_again, four, six), (&waits_at(1), &waits_at(1), &waits_at(2), &Standing::Unknown));
    let nothing = home.store.ticket_show(&known.line, known.edition, &[]).await.unwrap().unwrap();
    assert_eq!((nothing.each, nothing.crowd), (vec![], told.crowd));
}

async fn whoever_shows_a_ticket_is_seen(home: &Home) {
    let known = home.line(batch_of(3).grace(Some(GRACE)).unwrap()).await;
    home.fill(&known, 3).await;
    home.goes_on(&known, PAST_GRACE).await;
    assert_eq!(home.shows(&known, 1).await, waits_at(2));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned), (1, 2));
    home.is_admitted(&known, 1).await;
}

async fn the_time_begins_when_the_ticket_is_shown(home: &Home) {
    let terms = batch_of(1).grace(Some(Duration::from_secs(60))).unwrap();
    let known = home.line(terms.pass_ttl(Duration::from_secs(600)).unwrap()).await;
    home.fill(&known, 1).await;
    home.ticks(&known).await;
    let Enter::In { standing: Standing::Admitted { until, is_shown: false, .. }, .. } =
        home.enters(&known, "p0").await
    else {
        panic!("not admitted")
    };
    assert!(home.is_after(until, Duration::from_secs(60)), "{until:?}: for the grace period");
    let until = home.is_admitted(&known, 0).await;
    assert!(home.is_after(until, Duration::from_secs(600)), "{until:?}: for the time of a pass");
    home.goes_on(&known, Duration::from_millis(200)).await;
    let again = home.is_admitted(&known, 0).await;
    // Showing it again is no way to stay.
    assert!(
        again <= until + Duration::from_millis(20) && again + Duration::from_secs(1) > until,
        "{again:?} {until:?}"
    );
}

async fn as_many_tickets_as_one_call_may_carry(home: &Home) {
    let known = home.line(batch_of(500)).await;
    home.fill(&known, MAX_LINE_CALL as u64).await;
    home.ticks(&known).await;
    let tickets: Vec<_> = (0..MAX_LINE_CALL as u64).rev().map(ticket).collect();
    for _ in 0..2 {
        let told = home.store.ticket_show(&known.line, known.edition, &tickets).await.unwrap().unwrap();
        for (ticket, standing) in tickets.iter().zip(&told.each) {
            match standing {
                Standing::Waiting { position } => assert_eq!(*position, ticket.number - 499),
                Standing::Admitted { user, is_shown: true, .. } => {
                    assert!(ticket.number < 500 && *user == name(&format!("p{}", ticket.number)), "{user}");
                }
                other => panic!("{ticket:?}: {other:?}"),
            }
        }
    }
    let too_many = vec![ticket(0); MAX_LINE_CALL + 1];
    let refused = home.store.ticket_show(&known.line, known.edition, &too_many).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
}

async fn a_ticket_that_does_not_exist_is_unknown(home: &Home) {
    let known = home.admitted(1, LONG).await;
    for number in [1, 2, 1 << 32, 1 << 53, u64::MAX] {
        assert_eq!(home.shows(&known, number).await, Standing::Unknown, "{number}");
        assert_eq!(home.leaves(&known, number).await, Standing::Unknown, "{number}");
        assert_eq!(home.finishes(&known, number).await, Standing::Unknown, "{number}");
        assert_eq!(home.renews(&known, number).await, Standing::Unknown, "{number}");
    }
    let (line, other) = (&known.line, known.edition + 1);
    assert_eq!(home.store.ticket_show(line, other, &[ticket(0)]).await.unwrap(), None);
    assert_eq!(home.store.ticket_show(&fresh("line"), known.edition, &[ticket(0)]).await.unwrap(), None);
    assert_eq!(home.store.ticket_leave(line, other, ticket(0)).await.unwrap(), None);
    assert_eq!(home.store.ticket_finish(line, other, ticket(0)).await.unwrap(), None);
    assert_eq!(home.store.ticket_renew(line, other, ticket(0)).await.unwrap(), None);
    assert_eq!(home.look_at(&known).await.crowd.active, 1);
}

/// Whatever a store counts together: the first and the last of many, those around its borders, and where the head is.
async fn positions_in_a_long_line_do_not_count_those_who_left(home: &Home) {
    let known =
        home.line(LineTerms::new(1_000, Duration::from_millis(10)).unwrap().grace(None).unwrap()).await;
    home.fill(&known, LONG_LINE).await;
    let mut gone: Vec<u64> =
        vec![3, 8, 1_001, 1_005, 1_006, 1_030, 32_767, 32_768, 32_769, 40_000, 65_535, 65_536];
    for place in &gone {
        assert_eq!(home.leaves(&known, *place).await, over(Ending::Left));
    }
    home.are_where_they_should_be(&known, 0, &gone).await;
    // The head has passed some of them, and stands behind one in the middle of a byte.
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head), (1_000, 1_003));
    home.are_where_they_should_be(&known, 1_003, &gone).await;
    for place in [1_003, 1_004, 65_999, 32_766] {
        home.leaves(&known, place).await;
        gone.push(place);
    }
    gone.sort_unstable();
    home.are_where_they_should_be(&known, 1_003, &gone).await;
    for _ in 0..33 {
        home.goes_on(&known, Duration::from_millis(10)).await;
        home.ticks(&known).await;
    }
    let head = home.look_at(&known).await.head;
    assert!(head > 32_770, "{head}");
    home.are_where_they_should_be(&known, head, &gone).await;
    assert_eq!(
        home.enters(&known, "somebody").await,
        super::line::entered(LONG_LINE, expected(LONG_LINE, head, &gone))
    );
}

/// The position of a place.
fn expected(place: u64, head: u64, gone: &[u64]) -> u64 {
    place - head + 1 - gone.iter().filter(|gone| **gone >= head && **gone < place).count() as u64
}

impl Home {
    async fn are_where_they_should_be(&self, known: &Known, head: u64, gone: &[u64]) {
        let around = gone
            .iter()
            .copied()
            .chain([head, 32_768, 65_536])
            .flat_map(|place| place.saturating_sub(9)..place + 9);
        let places: Vec<_> = around.filter(|place| *place >= head && *place < LONG_LINE).collect();
        let tickets: Vec<_> = places.iter().copied().map(ticket).collect();
        let told = self.store.ticket_show(&known.line, known.edition, &tickets).await.unwrap().unwrap();
        assert_eq!(told.crowd.waiting, expected(LONG_LINE, head, gone) - 1);
        for (place, standing) in places.iter().zip(&told.each) {
            let is_gone = gone.contains(place);
            let right = if is_gone { over(Ending::Left) } else { waits_at(expected(*place, head, gone)) };
            assert_eq!(*standing, right, "{place} from {head}");
        }
    }
}

/// [`Store::ticket_leave`](crate::store::Store::ticket_leave)
pub async fn ticket_leave(home: &Home) {
    each_for_itself!(home:
        who_waits_leaves_a_place_and_those_behind_move_up,
        who_is_admitted_makes_room,
        nothing_else_can_be_left,
    );
}

async fn who_waits_leaves_a_place_and_those_behind_move_up(home: &Home) {
    let known = home.admitted(6, LONG).await;
    for _ in 0..2 {
        assert_eq!(home.leaves(&known, 3).await, over(Ending::Left));
        assert_eq!(home.shows(&known, 3).await, over(Ending::Left));
    }
    assert_eq!(home.shows(&known, 2).await, waits_at(1));
    assert_eq!(home.shows(&known, 4).await, waits_at(2));
    assert_eq!(home.shows(&known, 5).await, waits_at(3));
    let status = home.look_at(&known).await;
    assert_eq!((status.left, status.finished, status.crowd.waiting, status.crowd.active), (1, 0, 3, 2));
    assert_eq!((status.head, status.arrived), (2, 6), "a place is a place");
}

async fn who_is_admitted_makes_room(home: &Home) {
    let known = home.admitted(3, LONG).await;
    home.is_admitted(&known, 0).await;
    for _ in 0..2 {
        // One has shown the ticket and the other has not.
        assert_eq!(home.leaves(&known, 0).await, over(Ending::Left));
        assert_eq!(home.leaves(&known, 1).await, over(Ending::Left));
    }
    let status = home.look_at(&known).await;
    assert_eq!((status.left, status.finished, status.crowd.active, status.admitted), (0, 2, 0, 2));
    assert_eq!(home.shows(&known, 2).await, waits_at(1));
}

async fn nothing_else_can_be_left(home: &Home) {
    let known = home.admitted(3, LONG).await;
    home.finishes(&known, 0).await;
    assert_eq!(home.leaves(&known, 0).await, over(Ending::Finished));
    home.changes(&known, LineChange::Close).await;
    assert_eq!(home.leaves(&known, 2).await, over(Ending::Closed));
    assert_eq!(home.leaves(&known, 1).await, over(Ending::Left), "who is admitted may");
    let status = home.look_at(&known).await;
    assert_eq!((status.left, status.finished), (0, 2));
}

/// [`Store::ticket_finish`](crate::store::Store::ticket_finish)
pub async fn ticket_finish(home: &Home) {
    let known = home.admitted(4, LONG).await;
    home.is_admitted(&known, 0).await;
    for _ in 0..2 {
        assert_eq!(home.finishes(&known, 0).await, over(Ending::Finished));
        assert_eq!(home.finishes(&known, 1).await, over(Ending::Finished), "although it was not shown");
        assert_eq!(home.shows(&known, 0).await, over(Ending::Finished));
    }
    // Who waits is not finished.
    assert_eq!(home.finishes(&known, 2).await, waits_at(1));
    home.leaves(&known, 2).await;
    assert_eq!(home.finishes(&known, 2).await, over(Ending::Left));
    let status = home.look_at(&known).await;
    assert_eq!((status.finished, status.left, status.crowd.active, status.crowd.waiting), (2, 1, 0, 1));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.expired, tick.done.no_shows), (0, 0));
    let early = home.line(batch_of(1).prequeue_until(home.clock.wall() + LONG)).await;
    home.enters(&early, "alice").await;
    assert_eq!(home.finishes(&early, 0).await, Standing::Early);
    assert_eq!(home.renews(&early, 0).await, Standing::Early);
}

/// [`Store::ticket_renew`](crate::store::Store::ticket_renew)
pub async fn ticket_renew(home: &Home) {
    each_for_itself!(home:
        who_renews_stays,
        renewing_counts_as_showing,
        only_who_is_admitted_can_renew,
        nobody_stays_for_ever,
    );
}

async fn who_renews_stays(home: &Home) {
    let second = Duration::from_secs(1);
    let known = home.line(batch_of(2).grace(Some(GRACE)).unwrap().pass_ttl(second).unwrap()).await;
    home.fill(&known, 2).await;
    home.ticks(&known).await;
    home.is_admitted(&known, 0).await;
    home.is_admitted(&known, 1).await;
    for _ in 0..3 {
        home.goes_on(&known, Duration::from_millis(400)).await;
        match home.renews(&known, 0).await {
            Standing::Admitted { user, until, is_shown: true } => {
                assert!(user == name("p0") && home.is_after(until, second), "{user} {until:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.expired, tick.done.no_shows, tick.crowd.active), (1, 0, 1));
    assert_eq!(home.renews(&known, 1).await, over(Ending::Expired));
    home.goes_on(&known, second).await;
    assert_eq!(home.ticks(&known).await.done.expired, 1);
}

async fn renewing_counts_as_showing(home: &Home) {
    let known = home.line(batch_of(1).grace(Some(GRACE)).unwrap().pass_ttl(SHORT).unwrap()).await;
    home.fill(&known, 1).await;
    home.ticks(&known).await;
    assert!(matches!(home.renews(&known, 0).await, Standing::Admitted { is_shown: true, .. }));
    home.goes_on(&known, PAST_GRACE).await;
    let done = home.ticks(&known).await.done;
    assert_eq!((done.expired, done.no_shows), (1, 0));
}

async fn only_who_is_admitted_can_renew(home: &Home) {
    let known = home.admitted(4, LONG).await;
    home.finishes(&known, 0).await;
    home.leaves(&known, 3).await;
    assert_eq!(home.renews(&known, 0).await, over(Ending::Finished));
    assert_eq!(home.renews(&known, 2).await, waits_at(1));
    assert_eq!(home.renews(&known, 3).await, over(Ending::Left));
    let status = home.look_at(&known).await;
    assert_eq!((status.crowd.active, status.crowd.waiting, status.finished), (1, 1, 1));
}

/// Where a day can be had for nothing.
async fn nobody_stays_for_ever(home: &Home) {
    if !home.time_can_be_moved {
        return;
    }
    let known = home.admitted(1, LONG).await;
    home.is_admitted(&known, 0).await;
    let (step, mut stayed) = (Duration::from_secs(5), Duration::ZERO);
    while let Standing::Admitted { until, .. } = home.renews(&known, 0).await {
        let left = MAX_STAY - stayed;
        assert!(home.is_after(until, left.min(LONG)), "{until:?} after {stayed:?}");
        home.let_pass(step).await;
        stayed += step;
    }
    assert_eq!(stayed, MAX_STAY);
    assert_eq!(home.renews(&known, 0).await, over(Ending::Expired));
}
