//! What admitting people beyond the rate must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::line::{Known, LONG, batch_of, waits_at};
use super::{Home, each_for_itself, fresh};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{ADMITS_KEPT, LineAdmit, LineChange, LineState, MAX_ADMIT, MAX_CROWD, Token};

const fn noted(count: u32) -> LineAdmit {
    LineAdmit::Noted { count }
}

impl Home {
    async fn asks_to_admit(&self, known: &Known, count: u32) -> LineAdmit {
        self.store.line_admit(&known.line, count, &Token::random()).await.unwrap().unwrap()
    }

    /// How many the next tick admits.
    async fn admits(&self, known: &Known) -> u32 {
        self.ticks(known).await.done.admitted
    }
}

/// [`Store::line_admit`](crate::store::Store::line_admit)
pub async fn line_admit(home: &Home) {
    each_for_itself!(home:
        people_are_admitted_beyond_the_rate,
        also_while_it_is_paused,
        never_more_than_may_be_active,
        only_those_who_wait_now,
        more_than_one_call_may_admit,
        a_request_is_noted_once,
        where_nobody_is_admitted_it_says_so,
    );
}

async fn people_are_admitted_beyond_the_rate(home: &Home) {
    let known = home.line(batch_of(2)).await;
    home.fill(&known, 9).await;
    assert_eq!(home.asks_to_admit(&known, 3).await, noted(3));
    assert_eq!(home.look_at(&known).await.admitted, 0, "the next ticks do it");
    // The batch that is due, and those.
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head), (5, 5));
    assert_eq!(home.admits(&known).await, 0);
    assert_eq!(home.asks_to_admit(&known, 1).await, noted(1));
    assert_eq!((home.admits(&known).await, home.admits(&known).await), (1, 0));
    // They add up.
    home.asks_to_admit(&known, 1).await;
    home.asks_to_admit(&known, 1).await;
    assert_eq!(home.admits(&known).await, 2);
    assert_eq!(home.shows(&known, 8).await, waits_at(1));
}

async fn also_while_it_is_paused(home: &Home) {
    let known = home.line(batch_of(2)).await;
    home.fill(&known, 6).await;
    home.changes(&known, LineChange::Pause).await;
    assert_eq!(home.admits(&known).await, 0);
    assert_eq!(home.asks_to_admit(&known, 2).await, noted(2));
    assert_eq!((home.admits(&known).await, home.admits(&known).await), (2, 0));
    home.changes(&known, LineChange::Resume).await;
    assert_eq!(home.admits(&known).await, 2, "it was no part of the batch");
}

async fn never_more_than_may_be_active(home: &Home) {
    let known = home.line(batch_of(1).max_active(2).unwrap()).await;
    home.fill(&known, 6).await;
    assert_eq!(home.asks_to_admit(&known, 4).await, noted(4));
    assert_eq!(home.admits(&known).await, 2);
    assert_eq!(home.admits(&known).await, 0);
    // The others come as soon as there is room: one by the batch, and four beyond it.
    for number in 0..3 {
        home.finishes(&known, number).await;
        assert_eq!(home.admits(&known).await, 1, "{number}");
    }
    home.finishes(&known, 3).await;
    assert_eq!(home.admits(&known).await, 0);
    assert_eq!(home.look_at(&known).await.admitted, 5);
}

async fn only_those_who_wait_now(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 1).await;
    home.admits(&known).await;
    assert_eq!(home.asks_to_admit(&known, 5).await, noted(0));
    home.fill_more(&known, 1..3).await;
    assert_eq!(home.admits(&known).await, 0, "who came later was admitted");
    assert_eq!(home.asks_to_admit(&known, 5).await, noted(2));
    assert_eq!(home.asks_to_admit(&known, 5).await, noted(0), "the same people twice");
    home.leaves(&known, 1).await;
    home.fill_more(&known, 3..6).await;
    assert_eq!(home.admits(&known).await, 1, "who came later was admitted for one who left");
    assert_eq!(home.shows(&known, 3).await, waits_at(1));
    assert_eq!(home.admits(&known).await, 0);
}

async fn more_than_one_call_may_admit(home: &Home) {
    let known = home.line(batch_of(1)).await;
    let people = u64::from(MAX_ADMIT) + 200;
    home.fill(&known, people).await;
    assert_eq!(home.asks_to_admit(&known, MAX_CROWD).await, noted(MAX_ADMIT + 200));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.next_in), (MAX_ADMIT, Some(Duration::ZERO)));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head, tick.next_in), (200, people, None));
    home.fill_more(&known, people..people + 1).await;
    assert_eq!(home.admits(&known).await, 0, "more than were asked for");
}

async fn a_request_is_noted_once(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 100).await;
    home.admits(&known).await;
    let request = Token::random();
    let ask = async |count| home.store.line_admit(&known.line, count, &request).await.unwrap().unwrap();
    assert_eq!(ask(200).await, noted(99));
    home.changes(&known, LineChange::Pause).await;
    assert_eq!(ask(200).await, LineAdmit::Again { asked: 200 });
    assert_eq!(ask(1).await, LineAdmit::Again { asked: 200 });
    assert_eq!((home.admits(&known).await, home.admits(&known).await), (99, 0));
    for _ in 1..ADMITS_KEPT {
        home.asks_to_admit(&known, 1).await;
    }
    assert_eq!(ask(200).await, LineAdmit::Again { asked: 200 }, "it is among the last");
}

async fn where_nobody_is_admitted_it_says_so(home: &Home) {
    let ask = async |line: &Name, count| home.store.line_admit(line, count, &Token::random()).await;
    assert_eq!(ask(&fresh("line"), 1).await.unwrap(), None);
    let later = home.clock.wall() + LONG;
    let scheduled = home.line(batch_of(1).opens_at(later)).await;
    let early = home.line(batch_of(1).prequeue_until(later)).await;
    let drawing = home.line(batch_of(1).prequeue_until(home.clock.wall())).await;
    let closed = home.line(batch_of(1)).await;
    home.fill(&closed, 2).await;
    home.asks_to_admit(&closed, 1).await;
    home.changes(&closed, LineChange::Close).await;
    let states = [LineState::Scheduled, LineState::Early, LineState::Drawing, LineState::Closed];
    for (known, state) in [scheduled, early, drawing, closed.clone()].iter().zip(states) {
        assert_eq!(home.asks_to_admit(known, 1).await, LineAdmit::NotOpen(state));
    }
    assert_eq!(home.admits(&closed).await, 0, "what was noted before it was closed");
    for count in [0, MAX_CROWD + 1] {
        let refused = ask(&closed.line, count).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{count}: {refused:?}");
    }
}
