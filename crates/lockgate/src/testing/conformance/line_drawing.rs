//! What the operations on those who came early must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::line::{GRACE, Known, LONG, PAST_GRACE, batch_of, over, ticket, waits_at, was_in};
use super::{Home, each_for_itself, fresh, name, nasty_names};
use crate::error::StoreError;
use crate::store::{
    Arrivals, Draw, Ending, Enter, EnterWish, LineChange, LineDraw, LineDrawn, LineState, LineTerms,
    Standing, Tick, TicketAt,
};

/// The last is the first: an order that anybody can compute.
fn reversed(number: u64, early: u64) -> TicketAt {
    TicketAt { number, place: early - 1 - number }
}

impl Home {
    /// A line with so many early people in it whose time has come; it is to be drawn.
    async fn drawing(&self, terms: LineTerms, early: u64) -> Known {
        self.drawing_without(terms, early, &[]).await
    }

    /// The same, after these have left.
    async fn drawing_without(&self, terms: LineTerms, early: u64, left: &[u64]) -> Known {
        let later = self.clock.wall() + LONG;
        let known = self.line(terms.prequeue_until(later)).await;
        self.fill(&known, early).await;
        for number in left {
            assert_eq!(self.leaves(&known, *number).await, over(Ending::Left));
        }
        self.time_comes(&known, terms).await
    }

    /// Opens a line with a pre-queue now.
    async fn time_comes(&self, known: &Known, terms: LineTerms) -> Known {
        self.opens_as(&known.line, &terms.prequeue_until(self.clock.wall())).await;
        assert_eq!(self.look_at(known).await.crowd.state, LineState::Drawing);
        self.known(&known.line).await
    }

    async fn arrivals(&self, known: &Known) -> Arrivals {
        self.store.line_arrivals(&known.line, 0, usize::MAX).await.unwrap().unwrap()
    }

    /// The draw of the [`reversed`] order, with whoever is gone by what the arrivals say.
    async fn reversing(&self, known: &Known) -> Draw {
        let Arrivals { people } = self.arrivals(known).await;
        let early = people.len() as u64;
        let mut gone = vec![0; people.len().div_ceil(8)];
        for (number, arrival) in (0..).zip(&people) {
            if arrival.is_gone {
                let place = usize::try_from(reversed(number, early).place).unwrap();
                gone[place / 8] |= 0x80 >> (place % 8);
            }
        }
        let drawn = LineDrawn { early, arrivals_hash: [7; 32], seed: [9; 32] };
        Draw { drawn, gone }
    }

    async fn draws(&self, known: &Known, draw: &Draw) -> LineDraw {
        self.store.line_draw(&known.line, draw).await.unwrap().unwrap()
    }

    /// Draws the [`reversed`] order; what is known of the line then.
    async fn draws_reversed(&self, known: &Known) -> Known {
        let draw = self.reversing(known).await;
        assert_eq!(self.draws(known, &draw).await, LineDraw::Drawn);
        self.known(&known.line).await
    }
}

/// [`Store::line_arrivals`](crate::store::Store::line_arrivals)
pub async fn line_arrivals(home: &Home) {
    each_for_itself!(home:
        those_who_came_early_are_listed_in_their_order,
        who_has_left_or_was_not_seen_is_gone,
        nobody_is_listed_where_nobody_can_be_early,
    );
}

async fn those_who_came_early_are_listed_in_their_order(home: &Home) {
    let known = home.line(batch_of(1).prequeue_until(home.clock.wall() + LONG)).await;
    let users = nasty_names(&name("u"));
    home.enter(&known, &users).await;
    assert_eq!(home.store.line_arrivals(&known.line, 0, 10).await.unwrap(), None, "it is not open");
    let known = home.time_comes(&known, batch_of(1)).await;
    // Who comes now is not early.
    assert!(matches!(home.enters(&known, "late").await, Enter::In { is_new: true, .. }));
    let all = home.arrivals(&known).await;
    assert_eq!(all.people.iter().map(|arrival| arrival.user.clone()).collect::<Vec<_>>(), users);
    assert!(all.people.iter().all(|arrival| !arrival.is_gone));
    let part = home.store.line_arrivals(&known.line, 3, 5).await.unwrap().unwrap();
    assert_eq!(part.people, all.people[3..8]);
    let (last, early) = (users.len() as u64 - 1, users.len() as u64);
    let part = home.store.line_arrivals(&known.line, last, 5).await.unwrap().unwrap();
    assert_eq!(part.people, all.people[users.len() - 1..]);
    for (from, limit) in [(early, 5), (early + 100, 5), (0, 0)] {
        let nobody = home.store.line_arrivals(&known.line, from, limit).await.unwrap().unwrap();
        assert_eq!(nobody.people, []);
    }
    let drawn = home.draws_reversed(&known).await;
    let after: Vec<_> = home.arrivals(&drawn).await.people.into_iter().map(|arrival| arrival.user).collect();
    assert_eq!(after, users, "the draw has changed who came");
}

async fn who_has_left_or_was_not_seen_is_gone(home: &Home) {
    let terms = batch_of(1).grace(Some(GRACE)).unwrap();
    let known = home.line(terms.prequeue_until(home.clock.wall() + LONG)).await;
    home.fill(&known, 20).await;
    assert_eq!(home.leaves(&known, 1).await, over(Ending::Left));
    let seen: Vec<_> = (0..20).filter(|number| ![1, 12].contains(number)).map(ticket).collect();
    home.goes_on_seeing(&known, PAST_GRACE, &seen).await;
    let known = home.time_comes(&known, terms).await;
    home.goes_on_seeing(&known, Duration::from_millis(50), &seen).await;
    let arrivals = home.arrivals(&known).await;
    let gone = |arrivals: &Arrivals| -> Vec<u64> {
        (0..).zip(&arrivals.people).filter(|(_, arrival)| arrival.is_gone).map(|(number, _)| number).collect()
    };
    assert_eq!(gone(&arrivals), [1, 12]);
    let part = home.store.line_arrivals(&known.line, 9, 4).await.unwrap().unwrap();
    assert_eq!(gone(&part), [3]);
}

async fn nobody_is_listed_where_nobody_can_be_early(home: &Home) {
    let arrivals = async |known: &Known| home.store.line_arrivals(&known.line, 0, 10).await.unwrap();
    assert_eq!(home.store.line_arrivals(&fresh("line"), 0, 10).await.unwrap(), None);
    let open = home.line(batch_of(1)).await;
    home.fill(&open, 2).await;
    let scheduled = home.line(batch_of(1).opens_at(home.clock.wall() + LONG)).await;
    for known in [&open, &scheduled] {
        assert_eq!(arrivals(known).await, None);
        assert_eq!(home.look_at(known).await.early, None);
    }
    let nobody = home.drawing(batch_of(1), 0).await;
    assert_eq!(arrivals(&nobody).await.unwrap().people, []);
    assert_eq!(home.look_at(&nobody).await.early, Some(0));
}

/// [`Store::line_draw`](crate::store::Store::line_draw)
pub async fn line_draw(home: &Home) {
    each_for_itself!(home:
        the_early_ones_are_admitted_in_the_drawn_order,
        who_comes_during_the_draw_stands_behind_the_early_ones,
        who_left_before_the_draw_is_not_admitted,
        nobody_who_came_early_leaves_while_the_places_are_drawn,
        a_draw_of_others_is_made_again,
        a_draw_is_made_once_and_only_where_one_is_to_be_made,
        a_drawn_place_is_asked_for,
        the_grace_of_the_early_ones_begins_with_the_draw,
        a_draw_of_many,
        a_draw_of_nobody,
    );
}

async fn the_early_ones_are_admitted_in_the_drawn_order(home: &Home) {
    let known = home.drawing(batch_of(2), 5).await;
    let status = home.look_at(&known).await;
    assert_eq!((status.early, status.drawn, status.edition), (Some(5), None, known.edition));
    assert_eq!((status.crowd.waiting, home.shows(&known, 0).await), (5, Standing::Early));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.next_in, tick.crowd.state), (0, None, LineState::Drawing));
    let drawn = home.draws_reversed(&known).await;
    assert_ne!(drawn.edition, known.edition);
    let status = home.look_at(&drawn).await;
    let expected = LineDrawn { early: 5, arrivals_hash: [7; 32], seed: [9; 32] };
    assert_eq!(
        (status.early, status.drawn, status.crowd.state),
        (Some(5), Some(expected), LineState::Running)
    );
    // What was known before is of another edition.
    assert_eq!(home.store.ticket_show(&known.line, known.edition, &[ticket(0)]).await.unwrap(), None);
    assert_eq!(home.store.line_tick(&known.line, known.edition, &Tick::default()).await.unwrap(), None);
    for number in 0..5 {
        assert_eq!(home.shows_at(&drawn, reversed(number, 5)).await, waits_at(5 - number), "{number}");
    }
    let tick = home.ticks(&drawn).await;
    assert_eq!((tick.done.admitted, tick.head), (2, 2));
    for number in [4, 3] {
        let standing = home.shows_at(&drawn, reversed(number, 5)).await;
        let its = name(&format!("p{number}"));
        assert!(matches!(&standing, Standing::Admitted { user, .. } if *user == its), "{standing:?}");
    }
    assert_eq!(home.shows_at(&drawn, reversed(2, 5)).await, waits_at(1));
    let finished = home.store.ticket_finish(&drawn.line, drawn.edition, reversed(4, 5)).await.unwrap();
    assert_eq!(finished, Some(over(Ending::Finished)));
    assert_eq!(home.leaves_at(&drawn, reversed(2, 5)).await, over(Ending::Left));
    assert_eq!(home.shows_at(&drawn, reversed(1, 5)).await, waits_at(1));
    assert!(matches!(home.shows_at(&drawn, reversed(3, 5)).await, Standing::Admitted { .. }));
}

async fn who_comes_during_the_draw_stands_behind_the_early_ones(home: &Home) {
    let known = home.drawing(batch_of(20).grace(Some(GRACE)).unwrap(), 11).await;
    assert_eq!(home.enters(&known, "p11").await, super::line::entered(11, 12));
    assert_eq!(home.enter(&known, &["p12", "p13", "p14"].map(name)).await[2], super::line::entered(14, 15));
    assert_eq!(home.shows(&known, 3).await, Standing::Early);
    assert_eq!(home.leaves(&known, 12).await, over(Ending::Left));
    assert_eq!(home.look_at(&known).await.early, Some(11));
    // Somebody of those is not there any more when they are admitted, and one left before the draw.
    let seen: Vec<_> = [11, 14].map(ticket).into();
    home.goes_on_seeing(&known, PAST_GRACE, &seen).await;
    let draw = Draw { gone: vec![0, 0], ..home.reversing(&known).await };
    assert_eq!(home.draws(&known, &draw).await, LineDraw::Drawn);
    let drawn = home.known(&known.line).await;
    assert_eq!(home.shows(&drawn, 12).await, over(Ending::Left));
    assert_eq!(home.shows(&drawn, 11).await, waits_at(12));
    assert_eq!(home.look_at(&drawn).await.crowd.waiting, 14);
    let tick = home.ticks_as(&drawn, Tick { seen: vec![14], known_head: Some(0), known_leaves: None }).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned, tick.head), (13, 1, 15));
    let left = [(12, Some(Ending::Left)), (13, Some(Ending::Abandoned)), (14, None), (0, None)];
    for (place, ending) in left {
        assert_eq!(tick.passed[place], ending, "{place}");
    }
    // Those who came early have waited since the opening.
    assert_eq!(tick.done.waits.iter().map(|(_, people)| people).sum::<u32>(), 13);
    assert!(
        tick.done.waits.iter().all(|(wait, _)| *wait >= Duration::from_millis(400)),
        "{:?}",
        tick.done.waits
    );
}

async fn who_left_before_the_draw_is_not_admitted(home: &Home) {
    let known = home.drawing_without(batch_of(20), 13, &[0, 5, 12]).await;
    for number in [0, 5, 12] {
        assert_eq!(home.shows(&known, number).await, over(Ending::Left));
    }
    assert_eq!(home.enters(&known, "p5").await, super::line::entered(13, 11));
    home.fill_more(&known, 14..18).await;
    home.leaves(&known, 15).await;
    // One more was merely not seen.
    let mut draw = home.reversing(&known).await;
    let place = usize::try_from(reversed(7, 13).place).unwrap();
    draw.gone[place / 8] |= 0x80 >> (place % 8);
    // What stands behind the last of them is nobody's.
    *draw.gone.last_mut().unwrap() |= 0x07;
    let before = home.ticks(&known).await.leaves;
    assert_eq!(home.draws(&known, &draw).await, LineDraw::Drawn);
    let drawn = home.known(&known.line).await;
    for (number, standing) in [(0, over(Ending::Left)), (5, over(Ending::Left)), (7, over(Ending::Left))] {
        assert_eq!(home.shows_at(&drawn, reversed(number, 13)).await, standing, "{number}");
    }
    assert_eq!(home.shows_at(&drawn, reversed(11, 13)).await, waits_at(1));
    assert_eq!(home.shows_at(&drawn, reversed(6, 13)).await, waits_at(5));
    assert_eq!(home.shows_at(&drawn, reversed(1, 13)).await, waits_at(9));
    assert_eq!(home.shows(&drawn, 13).await, waits_at(10));
    assert_eq!(home.shows(&drawn, 14).await, waits_at(11));
    assert_eq!(home.shows(&drawn, 15).await, over(Ending::Left));
    assert_eq!(home.shows(&drawn, 17).await, waits_at(13));
    let status = home.look_at(&drawn).await;
    assert_eq!((status.crowd.waiting, status.left, status.abandoned), (13, 4, 1));
    let tick = home.ticks_as(&drawn, Tick { known_leaves: Some(before), ..Tick::default() }).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned, tick.head), (13, 0, 18));
    assert_ne!(tick.leaves, before);
    assert!(tick.gone.is_some(), "who was known to be gone is another one now");
    let status = home.look_at(&drawn).await;
    assert_eq!((status.admitted, status.left, status.abandoned, status.crowd.waiting), (13, 4, 1, 0));
}

async fn nobody_who_came_early_leaves_while_the_places_are_drawn(home: &Home) {
    let known = home.drawing(batch_of(10), 4).await;
    let draw = home.reversing(&known).await;
    let before = home.look_at(&known).await;
    assert_eq!(home.leaves(&known, 2).await, Standing::Early);
    let after = home.look_at(&known).await;
    assert_eq!((after.left, after.crowd.waiting), (before.left, 4));
    assert_eq!(home.draws(&known, &draw).await, LineDraw::Drawn);
    let drawn = home.known(&known.line).await;
    assert_eq!(home.leaves_at(&drawn, reversed(2, 4)).await, over(Ending::Left));
    assert_eq!(home.ticks(&drawn).await.done.admitted, 3);
}

async fn a_draw_of_others_is_made_again(home: &Home) {
    let known = home.drawing(batch_of(1), 4).await;
    let draw = home.reversing(&known).await;
    let of_others = Draw { drawn: LineDrawn { early: 3, ..draw.drawn }, ..draw };
    assert_eq!(home.draws(&known, &of_others).await, LineDraw::Again);
    let status = home.look_at(&known).await;
    assert_eq!((status.crowd.state, status.drawn, status.edition), (LineState::Drawing, None, known.edition));
    home.draws_reversed(&known).await;
}

async fn a_draw_is_made_once_and_only_where_one_is_to_be_made(home: &Home) {
    let known = home.drawing(batch_of(1), 3).await;
    let draw = home.reversing(&known).await;
    assert_eq!(home.draws(&known, &draw).await, LineDraw::Drawn);
    let drawn = home.known(&known.line).await;
    for _ in 0..2 {
        assert_eq!(home.draws(&known, &draw).await, LineDraw::Already);
    }
    assert_eq!(home.look_at(&drawn).await.edition, drawn.edition);
    assert_eq!(home.store.line_draw(&fresh("line"), &draw).await.unwrap(), None);
    let later = home.clock.wall() + LONG;
    let early = home.line(batch_of(1).prequeue_until(later)).await;
    home.fill(&early, 3).await;
    let open = home.line(batch_of(1)).await;
    let closed = home.drawing(batch_of(1), 3).await;
    home.changes(&closed, LineChange::Close).await;
    for known in [early, open, closed] {
        assert_eq!(home.draws(&known, &draw).await, LineDraw::NotDrawing);
        assert_eq!(home.look_at(&known).await.drawn, None);
    }
    // A pause is no reason not to draw.
    let paused = home.drawing(batch_of(1), 3).await;
    assert_eq!(home.changes(&paused, LineChange::Pause).await, LineState::Drawing);
    let drawn = home.draws_reversed(&paused).await;
    assert_eq!(home.look_at(&drawn).await.crowd.state, LineState::Paused);
    assert_eq!(home.ticks(&drawn).await.done.admitted, 0);
    let few_bits = Draw { gone: vec![], ..draw };
    let refused = home.store.line_draw(&known.line, &few_bits).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
}

/// Only the caller can compute it.
async fn a_drawn_place_is_asked_for(home: &Home) {
    let known = home.drawing(batch_of(1), 4).await;
    assert_eq!(home.enters(&known, "p1").await, was_in(1, Standing::Early));
    home.enters(&known, "p4").await;
    let drawn = home.draws_reversed(&known).await;
    assert_eq!(home.enters(&drawn, "p1").await, Enter::Drawn { number: 1 });
    assert_eq!(
        home.enters(&drawn, "p4").await,
        was_in(4, waits_at(5)),
        "who came later has the place of the number"
    );
    let enter = async |user: &str, known| {
        let wishes = [EnterWish { user: name(user), known }, EnterWish { user: name("p4"), known: None }];
        home.store.line_enter(&drawn.line, drawn.edition, &wishes).await.unwrap().unwrap().each.remove(0)
    };
    assert_eq!(enter("p1", Some(reversed(1, 4))).await, was_in(1, waits_at(3)));
    assert_eq!(enter("p1", Some(reversed(2, 4))).await, Enter::Drawn { number: 1 }, "it is another ticket");
    // Who is over gets a new number, and that is not drawn.
    home.leaves_at(&drawn, reversed(1, 4)).await;
    assert_eq!(enter("p1", None).await, Enter::Drawn { number: 1 });
    assert_eq!(enter("p1", Some(reversed(1, 4))).await, super::line::entered(5, 5));
    assert_eq!(home.enters(&drawn, "p1").await, was_in(5, waits_at(5)));
    assert_eq!(home.look_at(&drawn).await.arrived, 6);
}

async fn the_grace_of_the_early_ones_begins_with_the_draw(home: &Home) {
    let known = home.drawing(batch_of(3).grace(Some(GRACE)).unwrap(), 6).await;
    home.goes_on(&known, PAST_GRACE).await;
    let draw = Draw { gone: vec![0], ..home.reversing(&known).await };
    assert_eq!(home.draws(&known, &draw).await, LineDraw::Drawn);
    let drawn = home.known(&known.line).await;
    let tick = home.ticks(&drawn).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned), (3, 0));
    let waited = tick.done.waits.iter().map(|(wait, _)| *wait).min().unwrap();
    assert!(waited >= Duration::from_millis(400), "{waited:?}: from the opening, not from the draw");
    // And ends.
    home.opens_as(&known.line, &LineTerms { batch: 3, ..draw_terms(&home.look_at(&drawn).await.terms) })
        .await;
    let drawn = home.known(&known.line).await;
    home.goes_on_seeing(&drawn, PAST_GRACE, &[reversed(1, 6)]).await;
    let tick = home.ticks(&drawn).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned), (1, 2));
}

/// The same with batches that come soon.
fn draw_terms(terms: &LineTerms) -> LineTerms {
    LineTerms { every: Duration::from_millis(10), ..*terms }
}

/// Places that a store counts in several blocks.
async fn a_draw_of_many(home: &Home) {
    let early = 40_000;
    let known = home.drawing_without(batch_of(10), early, &[0, 7_231, 7_232, 39_999]).await;
    home.fill_more(&known, early..early + 3).await;
    home.leaves(&known, early + 1).await;
    let mut draw =
        Draw { drawn: LineDrawn { early, arrivals_hash: [1; 32], seed: [2; 32] }, gone: vec![0; 5_000] };
    for number in [0, 7_231, 7_232, 39_999] {
        let place = usize::try_from(reversed(number, early).place).unwrap();
        draw.gone[place / 8] |= 0x80 >> (place % 8);
    }
    assert_eq!(home.draws(&known, &draw).await, LineDraw::Drawn);
    let drawn = home.known(&known.line).await;
    for number in [0, 7_231, 7_232, 39_999] {
        assert_eq!(home.shows_at(&drawn, reversed(number, early)).await, over(Ending::Left), "{number}");
    }
    // The reversed place of 7,231 is the first of the second block of 32,768.
    for (number, position) in [(39_998, 1), (7_233, 32_766), (7_230, 32_767), (1, 39_996)] {
        assert_eq!(home.shows_at(&drawn, reversed(number, early)).await, waits_at(position), "{number}");
    }
    assert_eq!(home.shows(&drawn, early).await, waits_at(39_997));
    assert_eq!(home.shows(&drawn, early + 2).await, waits_at(39_998));
    let tick = home.ticks(&drawn).await;
    assert_eq!((tick.done.admitted, tick.head, tick.crowd.waiting), (10, 11, 39_988));
}

async fn a_draw_of_nobody(home: &Home) {
    let known = home.drawing(batch_of(1), 0).await;
    assert_eq!(home.enters(&known, "p0").await, super::line::entered(0, 1));
    let drawn = home.draws_reversed(&known).await;
    assert_eq!(home.shows(&drawn, 0).await, waits_at(1));
    assert_eq!(home.ticks(&drawn).await.done.admitted, 1);
    home.is_admitted(&drawn, 0).await;
}
