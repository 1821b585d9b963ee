//! What letting a line go on must do: who is next, and who was not there.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::line::{GRACE, Known, LONG, PAST_GRACE, batch_of, over, ticket, waits_at};
use super::{Home, each_for_itself, fresh};
use crate::error::StoreError;
use crate::store::{
    Ending, LineChange, LineState, LineTerms, MAX_ADMIT, MAX_LOOKED_AT, MAX_SEEN, OVER_KEPT, Standing, Tick,
};

/// [`Store::line_tick`](crate::store::Store::line_tick)
pub async fn line_tick(home: &Home) {
    each_for_itself!(home:
        a_batch_is_admitted_at_once_and_the_next_one_when_it_is_due,
        a_batch_waits_for_somebody_to_admit,
        of_many_who_call_at_once_one_admits_the_batch,
        no_more_are_active_than_may_be,
        what_a_batch_has_no_room_for_is_forfeited,
        a_batch_that_waited_for_room_begins_when_there_is_some,
        the_head_passes_who_left_and_stops_where_the_batch_ends,
        who_was_not_seen_is_passed_over,
        who_was_seen_is_not_passed_over,
        without_a_grace_period_everybody_is_waited_for,
        a_place_that_was_left_stays_empty_whoever_is_seen_there,
        who_does_not_come_is_a_no_show_and_who_stays_too_long_expires,
        it_tells_what_became_of_the_places_that_were_passed,
        it_tells_who_has_left,
        it_tells_when_there_is_something_to_do,
        it_tells_how_long_those_waited_whom_it_admitted,
        a_large_batch_takes_several_calls,
        the_rest_of_a_large_batch_keeps_the_next_one_away,
        many_empty_places_take_several_calls,
        the_time_of_a_line_does_not_jump,
        signs_of_life_of_nobody_do_no_harm,
        a_line_of_another_edition_does_not_go_on,
        what_is_over_is_forgotten_in_the_end,
    );
}

fn every(people: u32, millis: u64) -> LineTerms {
    LineTerms::new(people, Duration::from_millis(millis)).unwrap().pass_ttl(LONG).unwrap()
}

async fn a_batch_is_admitted_at_once_and_the_next_one_when_it_is_due(home: &Home) {
    // One call lets half of the grace period pass at the most: three are less than an interval.
    let known = home.line(every(2, 500).grace(Some(Duration::from_millis(300))).unwrap()).await;
    home.fill(&known, 7).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head, tick.tail), (2, 2, 7));
    assert_eq!((tick.crowd.waiting, tick.crowd.active), (5, 2));
    assert!(tick.next_in.unwrap() <= Duration::from_millis(500) && tick.next_in.unwrap() > Duration::ZERO);
    for _ in 0..2 {
        assert_eq!(
            home.ticks_seeing(&known, 0..7).await.done.admitted,
            0,
            "a second batch within the interval"
        );
    }
    assert_eq!(home.shows(&known, 2).await, waits_at(1));
    home.goes_on_seeing(&known, Duration::from_millis(1_300), &[2, 3, 4, 5, 6].map(ticket)).await;
    // Two intervals have passed, and one of them nobody used.
    assert_eq!(home.ticks(&known).await.done.admitted, 2);
    assert_eq!(home.ticks_seeing(&known, 0..7).await.done.admitted, 0, "what was missed is made up for");
    let status = home.look_at(&known).await;
    assert_eq!((status.admitted, status.head, status.abandoned), (4, 4, 0));
}

/// It is no batch before somebody waits: who comes to an empty line need not wait for the next interval.
async fn a_batch_waits_for_somebody_to_admit(home: &Home) {
    let known = home.line(batch_of(2)).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head, tick.tail, tick.next_in), (0, 0, 0, None));
    home.fill(&known, 1).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    home.fill_more(&known, 1..2).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0, "the batch began with the first");
}

async fn of_many_who_call_at_once_one_admits_the_batch(home: &Home) {
    let known = home.line(batch_of(5)).await;
    home.fill(&known, 20).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (store, Known { line, edition }) = (home.store.clone(), known.clone());
        calls.spawn(async move { store.line_tick(&line, edition, &Tick::default()).await.unwrap().unwrap() });
    }
    let admitted: Vec<_> = calls.join_all().await.iter().map(|tick| tick.done.admitted).collect();
    assert_eq!(admitted.iter().filter(|admitted| **admitted > 0).collect::<Vec<_>>(), [&5]);
    assert_eq!(home.look_at(&known).await.head, 5);
}

async fn no_more_are_active_than_may_be(home: &Home) {
    let known = home.line(every(3, 10).grace(None).unwrap().max_active(2).unwrap()).await;
    home.fill(&known, 6).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 2);
    home.goes_on(&known, Duration::from_millis(20)).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.crowd.active, tick.crowd.waiting), (0, 2, 4));
    home.finishes(&known, 1).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    assert_eq!(home.leaves(&known, 0).await, over(Ending::Left));
    home.goes_on(&known, Duration::from_millis(20)).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    assert_eq!(home.look_at(&known).await.crowd.active, 2);
}

async fn what_a_batch_has_no_room_for_is_forfeited(home: &Home) {
    let known = home.line(batch_of(3).max_active(2).unwrap()).await;
    home.fill(&known, 6).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 2);
    home.finishes(&known, 0).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0, "the third of the batch came later");
    let status = home.look_at(&known).await;
    assert_eq!((status.admitted, status.crowd.active, status.crowd.waiting), (2, 1, 4));
}

/// And the next one an interval later.
async fn a_batch_that_waited_for_room_begins_when_there_is_some(home: &Home) {
    let interval = Duration::from_millis(600);
    let known = home.line(every(1, 600).grace(None).unwrap().max_active(1).unwrap()).await;
    home.fill(&known, 3).await;
    home.ticks(&known).await;
    home.goes_on(&known, interval).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0);
    home.goes_on(&known, interval / 2).await;
    home.finishes(&known, 0).await;
    let before = home.clock.wall();
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    home.finishes(&known, 1).await;
    let next = home.ticks(&known).await;
    let passed = home.clock.wall().since(before);
    if passed < interval {
        assert_eq!(next.done.admitted, 0);
        assert!(next.next_in.unwrap() + passed >= interval, "{:?} after {passed:?}", next.next_in);
    }
}

async fn the_head_passes_who_left_and_stops_where_the_batch_ends(home: &Home) {
    let known = home.line(every(2, 10).grace(None).unwrap()).await;
    home.fill(&known, 9).await;
    for number in [0, 2, 4, 5] {
        assert_eq!(home.leaves(&known, number).await, over(Ending::Left));
    }
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head, tick.crowd.waiting), (2, 4, 3));
    assert_eq!(home.shows(&known, 6).await, waits_at(1));
    assert_eq!(home.shows(&known, 8).await, waits_at(3));
    for number in [0, 2, 4, 5] {
        assert_eq!(home.shows(&known, number).await, over(Ending::Left), "{number}");
    }
    home.goes_on(&known, Duration::from_millis(20)).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head, tick.crowd.waiting), (2, 8, 1));
    // Also when there is nobody behind those who left.
    home.leaves(&known, 8).await;
    home.goes_on(&known, Duration::from_millis(20)).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0);
    home.fill_more(&known, 9..10).await;
    assert_eq!(home.shows(&known, 9).await, waits_at(1));
    home.goes_on(&known, Duration::from_millis(20)).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head, tick.crowd.waiting), (1, 10, 0));
    let status = home.look_at(&known).await;
    assert_eq!((status.admitted, status.left, status.abandoned), (5, 5, 0));
}

async fn who_was_not_seen_is_passed_over(home: &Home) {
    let known = home.line(every(2, 10).grace(Some(GRACE)).unwrap()).await;
    home.changes(&known, LineChange::Pause).await;
    home.fill(&known, 6).await;
    home.goes_on_seeing(&known, PAST_GRACE, &[ticket(1), ticket(5)]).await;
    assert_eq!(home.shows(&known, 1).await, waits_at(2), "nobody is absent before the head comes");
    home.changes(&known, LineChange::Resume).await;
    // The sign of life may come with the very call by which the head does.
    let tick = home.ticks_seeing(&known, [3]).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned, tick.head), (2, 2, 4));
    assert_eq!(home.shows(&known, 0).await, over(Ending::Abandoned));
    home.is_admitted(&known, 1).await;
    assert_eq!(home.shows(&known, 2).await, over(Ending::Abandoned));
    assert_eq!(home.shows(&known, 4).await, waits_at(1), "nobody behind the head was passed over");
    assert_eq!(home.enters(&known, "p0").await, super::line::entered(6, 3));
    let status = home.look_at(&known).await;
    assert_eq!((status.admitted, status.abandoned, status.left), (2, 2, 0));
}

/// Before the grace period is over.
async fn who_was_seen_is_not_passed_over(home: &Home) {
    let known = home.line(batch_of(3).grace(Some(2 * GRACE)).unwrap()).await;
    let before = home.clock.wall();
    home.fill(&known, 3).await;
    home.goes_on(&known, GRACE + Duration::from_millis(300)).await;
    let done = home.ticks(&known).await.done;
    // Unless it took so long that it is.
    if home.clock.wall().since(before) < 2 * GRACE {
        assert_eq!((done.admitted, done.abandoned), (3, 0));
    }
}

async fn without_a_grace_period_everybody_is_waited_for(home: &Home) {
    let known = home.line(batch_of(2).pass_ttl(Duration::from_millis(300)).unwrap()).await;
    home.fill(&known, 2).await;
    home.goes_on(&known, PAST_GRACE).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 2);
    // And admitted for as long as others, unseen.
    home.goes_on(&known, Duration::from_millis(310)).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.no_shows, tick.done.expired, tick.crowd.active), (2, 0, 0));
}

async fn a_place_that_was_left_stays_empty_whoever_is_seen_there(home: &Home) {
    let known = home.line(batch_of(3).grace(Some(GRACE)).unwrap()).await;
    home.fill(&known, 3).await;
    home.leaves(&known, 1).await;
    let tick = home.ticks_seeing(&known, 0..3).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned), (2, 0));
    assert_eq!(home.shows(&known, 1).await, over(Ending::Left));
    home.ticks_seeing(&known, 0..3).await;
    assert_eq!(home.shows(&known, 1).await, over(Ending::Left));
}

async fn who_does_not_come_is_a_no_show_and_who_stays_too_long_expires(home: &Home) {
    let short = Duration::from_millis(300);
    let known = home.line(batch_of(3).grace(Some(GRACE)).unwrap().pass_ttl(short).unwrap()).await;
    home.fill(&known, 3).await;
    home.ticks(&known).await;
    // Only the ticket counts, and not that somebody is seen at the place.
    home.is_admitted(&known, 0).await;
    home.ticks_seeing(&known, 0..3).await;
    home.finishes(&known, 2).await;
    home.goes_on(&known, PAST_GRACE).await;
    // It is over although no tick has noticed it, and nothing makes it undone.
    assert_eq!(home.shows(&known, 0).await, over(Ending::Expired));
    assert_eq!(home.renews(&known, 0).await, over(Ending::Expired));
    assert_eq!(home.shows(&known, 1).await, over(Ending::NoShow));
    assert_eq!(home.finishes(&known, 1).await, over(Ending::NoShow));
    assert_eq!(home.leaves(&known, 1).await, over(Ending::NoShow));
    let done = home.ticks_seeing(&known, 0..3).await.done;
    assert_eq!((done.no_shows, done.expired, done.admitted, done.abandoned), (1, 1, 0, 0));
    let again = home.ticks(&known).await;
    assert_eq!((again.done.no_shows, again.done.expired, again.crowd.active), (0, 0, 0), "counted twice");
    for (number, ending) in [(0, Ending::Expired), (1, Ending::NoShow), (2, Ending::Finished)] {
        assert_eq!(home.shows(&known, number).await, over(ending), "{number}");
    }
    let status = home.look_at(&known).await;
    assert_eq!((status.no_shows, status.expired, status.finished), (1, 1, 1));
}

async fn it_tells_what_became_of_the_places_that_were_passed(home: &Home) {
    let known = home.line(every(3, 10).grace(Some(GRACE)).unwrap()).await;
    home.changes(&known, LineChange::Pause).await;
    home.fill(&known, 6).await;
    home.leaves(&known, 1).await;
    home.goes_on_seeing(&known, PAST_GRACE, &[0, 3, 4, 5].map(ticket)).await;
    home.changes(&known, LineChange::Resume).await;
    let since = |known_head| Tick { known_head, ..Tick::default() };
    let tick = home.ticks_as(&known, since(Some(0))).await;
    let passed = [None, Some(Ending::Left), Some(Ending::Abandoned), None, None];
    assert_eq!((tick.head, tick.passed_from, &tick.passed[..]), (5, 0, &passed[..]));
    // Who was admitted was, whatever came after that.
    home.changes(&known, LineChange::Pause).await;
    home.leaves(&known, 0).await;
    home.finishes(&known, 3).await;
    home.is_admitted(&known, 4).await;
    let tick = home.ticks_as(&known, since(Some(0))).await;
    assert_eq!((tick.passed_from, &tick.passed[..5]), (0, &passed[..]));
    let tick = home.ticks_as(&known, since(Some(2))).await;
    assert_eq!((tick.passed_from, &tick.passed[..3]), (2, &passed[2..]));
    for nothing in [None, Some(tick.head)] {
        let tick = home.ticks_as(&known, since(nothing)).await;
        assert_eq!((tick.passed, tick.passed_from), (vec![], tick.head));
    }
}

/// Who has left, by what a tick tells.
fn gone_places(head: u64, gone: &[u8]) -> Vec<u64> {
    let first = head / 8 * 8;
    let bits = gone.iter().flat_map(|byte| (0..8).map(move |at| byte >> (7 - at) & 1 == 1));
    (first..)
        .zip(bits)
        .filter(|(place, is_gone)| *is_gone && *place >= head)
        .map(|(place, _)| place)
        .collect()
}

async fn it_tells_who_has_left(home: &Home) {
    let known = home.line(batch_of(11)).await;
    home.fill(&known, 40).await;
    let since = |known_leaves| Tick { known_leaves, ..Tick::default() };
    let first = home.ticks_as(&known, since(None)).await;
    assert_eq!((first.head, first.gone), (11, None));
    for number in [11, 13, 30, 39] {
        home.leaves(&known, number).await;
    }
    let tick = home.ticks_as(&known, since(Some(first.leaves))).await;
    assert_ne!(tick.leaves, first.leaves);
    assert_eq!(gone_places(tick.head, &tick.gone.unwrap()), [11, 13, 30, 39]);
    assert_eq!((tick.head, tick.crowd.waiting), (11, 25));
    assert_eq!(home.ticks_as(&known, since(Some(tick.leaves))).await.gone, None);
    assert_eq!(home.ticks(&known).await.gone, None);
    // Who has left already does not leave again, nor does who is admitted.
    home.leaves(&known, 30).await;
    home.leaves(&known, 3).await;
    assert_eq!(home.ticks_as(&known, since(Some(tick.leaves))).await.gone, None);
    let next = home.look_at(&known).await;
    assert_eq!((next.left, next.finished), (4, 1));
}

async fn it_tells_when_there_is_something_to_do(home: &Home) {
    let within = |next_in: Option<Duration>, most: Duration| {
        let next_in = next_in.unwrap();
        assert!(
            next_in <= most && next_in >= most.saturating_sub(Duration::from_secs(30)),
            "{next_in:?} of {most:?}"
        );
    };
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 3).await;
    within(home.ticks(&known).await.next_in, LONG);
    home.changes(&known, LineChange::Pause).await;
    assert_eq!(home.ticks(&known).await.next_in, None);
    home.changes(&known, LineChange::Resume).await;
    within(home.ticks(&known).await.next_in, LONG);
    home.leaves(&known, 1).await;
    home.leaves(&known, 2).await;
    assert_eq!(home.ticks(&known).await.next_in, None, "nobody waits");
    // A batch that is due begins when somebody's time is over.
    let ttl = Duration::from_secs(600);
    let known =
        home.line(every(2, 10).grace(None).unwrap().max_active(1).unwrap().pass_ttl(ttl).unwrap()).await;
    home.fill(&known, 3).await;
    home.ticks(&known).await;
    home.goes_on(&known, Duration::from_millis(20)).await;
    within(home.ticks(&known).await.next_in, ttl);
}

async fn it_tells_how_long_those_waited_whom_it_admitted(home: &Home) {
    let known = home.line(batch_of(4)).await;
    home.fill(&known, 2).await;
    home.goes_on(&known, Duration::from_millis(400)).await;
    home.fill_more(&known, 2..3).await;
    let done = home.ticks(&known).await.done;
    assert_eq!(done.waits.iter().map(|(_, people)| people).sum::<u32>(), 3);
    let long: u32 = done
        .waits
        .iter()
        .filter(|(wait, _)| *wait >= Duration::from_millis(300))
        .map(|(_, people)| people)
        .sum();
    assert_eq!(long, 2, "{:?}", done.waits);
    if home.time_can_be_moved {
        let exactly: Vec<_> =
            done.waits.iter().map(|(wait, people)| (wait.as_millis() / 100, *people)).collect();
        assert_eq!(exactly, [(4, 2), (0, 1)]);
    }
    assert_eq!(home.ticks(&known).await.done.waits, []);
}

async fn a_large_batch_takes_several_calls(home: &Home) {
    let (most, people) = (MAX_ADMIT, u64::from(MAX_ADMIT) + 700);
    let known = home.line(batch_of(most + 500)).await;
    home.fill(&known, people).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.next_in, tick.head), (most, Some(Duration::ZERO), u64::from(most)));
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.head), (500, u64::from(most) + 500));
    assert!(tick.next_in.unwrap() > Duration::from_secs(600), "{:?}", tick.next_in);
    assert_eq!(home.ticks(&known).await.done.admitted, 0);
    assert_eq!(home.shows(&known, people - 1).await, waits_at(200));
    // A pause in between: nobody is admitted, and nothing is made up for.
    let known = home.line(batch_of(most + 500)).await;
    home.fill(&known, people).await;
    home.ticks(&known).await;
    home.changes(&known, LineChange::Pause).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0);
    home.changes(&known, LineChange::Resume).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0);
}

/// However late the rest of a batch is asked for, the next one comes a whole interval after it.
async fn the_rest_of_a_large_batch_keeps_the_next_one_away(home: &Home) {
    let terms = LineTerms { every: Duration::from_millis(800), ..batch_of(MAX_ADMIT + 100) };
    let known = home.line(terms).await;
    home.fill(&known, u64::from(MAX_ADMIT) + 300).await;
    assert_eq!(home.ticks(&known).await.done.admitted, MAX_ADMIT);
    home.goes_on(&known, Duration::from_millis(500)).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 100);
    home.goes_on(&known, Duration::from_millis(500)).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 0, "two batches within one interval");
    home.goes_on(&known, Duration::from_millis(350)).await;
    assert_eq!(home.ticks(&known).await.done.admitted, 200);
}

async fn many_empty_places_take_several_calls(home: &Home) {
    let looked_at = u64::from(MAX_LOOKED_AT);
    let known = home.line(batch_of(1).grace(Some(GRACE)).unwrap()).await;
    home.changes(&known, LineChange::Pause).await;
    home.fill(&known, looked_at + 2).await;
    home.goes_on(&known, PAST_GRACE).await;
    home.shows(&known, looked_at + 1).await;
    home.changes(&known, LineChange::Resume).await;
    let tick = home
        .ticks_as(&known, Tick { seen: vec![looked_at + 1], known_head: Some(0), known_leaves: None })
        .await;
    assert_eq!((tick.done.admitted, tick.done.abandoned), (0, MAX_LOOKED_AT));
    assert_eq!((tick.head, tick.next_in), (looked_at, Some(Duration::ZERO)));
    assert!(tick.passed.iter().all(|ending| *ending == Some(Ending::Abandoned)));
    let tick = home.ticks_seeing(&known, [looked_at + 1]).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned, tick.head), (1, 1, looked_at + 2));
    assert_eq!(home.look_at(&known).await.abandoned, looked_at + 1);
}

/// A night in which nobody called takes nothing from anybody.
async fn the_time_of_a_line_does_not_jump(home: &Home) {
    let known = home.line(every(2, 10).grace(Some(GRACE)).unwrap()).await;
    home.changes(&known, LineChange::Pause).await;
    home.fill(&known, 2).await;
    home.let_pass(PAST_GRACE).await;
    home.changes(&known, LineChange::Resume).await;
    let done = home.ticks(&known).await.done;
    assert_eq!((done.admitted, done.abandoned), (2, 0), "they could not be seen");
    home.let_pass(PAST_GRACE).await;
    let done = home.ticks(&known).await.done;
    assert_eq!((done.no_shows, done.expired), (0, 0), "they could not come");
    // Without a grace period, a step is five seconds.
    if home.time_can_be_moved {
        let known = home.line(every(1, 6_000).grace(None).unwrap()).await;
        home.fill(&known, 2).await;
        home.ticks(&known).await;
        home.let_pass(LONG).await;
        let tick = home.ticks(&known).await;
        assert_eq!((tick.done.admitted, tick.next_in), (0, Some(Duration::from_secs(1))));
    }
}

async fn signs_of_life_of_nobody_do_no_harm(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 2).await;
    home.ticks(&known).await;
    let tick = home.ticks_seeing(&known, [0, 2, 3, 4_000_000_000, 1 << 33, u64::MAX]).await;
    assert_eq!((tick.tail, tick.head, tick.crowd.waiting), (2, 1, 1));
    home.fill_more(&known, 2..3).await;
    assert!(matches!(home.shows(&known, 0).await, Standing::Admitted { .. }));
    let many: Vec<u64> = (0..MAX_SEEN as u64).collect();
    home.ticks_seeing(&known, many.clone()).await;
    let too_many = Tick { seen: [many, vec![0]].concat(), ..Tick::default() };
    let refused = home.store.line_tick(&known.line, known.edition, &too_many).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
}

async fn a_line_of_another_edition_does_not_go_on(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 1).await;
    for edition in [0, known.edition - 1, known.edition + 1] {
        assert_eq!(home.store.line_tick(&known.line, edition, &Tick::default()).await.unwrap(), None);
    }
    assert_eq!(home.look_at(&known).await.crowd.waiting, 1);
    assert_eq!(home.store.line_tick(&fresh("line"), known.edition, &Tick::default()).await.unwrap(), None);
    assert_eq!(home.look_at(&known).await.crowd.state, LineState::Running);
}

/// Where an hour can be had for nothing. What is over stays known for an hour after it came to its end, not after the head came.
async fn what_is_over_is_forgotten_in_the_end(home: &Home) {
    if !home.time_can_be_moved {
        return;
    }
    let known = home.line(every(3, 10).grace(None).unwrap()).await;
    home.fill(&known, 4).await;
    home.ticks(&known).await;
    let day = LineTerms::new(3, Duration::from_millis(10)).unwrap().grace(None).unwrap();
    home.opens_as(&known.line, &day.pass_ttl(24 * LONG).unwrap()).await;
    let known = home.known(&known.line).await;
    home.is_admitted(&known, 0).await;
    home.finishes(&known, 1).await;
    home.finishes(&known, 2).await;
    let hours = async |hours: u32| {
        for _ in 0..hours * 720 {
            home.let_pass(Duration::from_secs(5)).await;
            home.ticks(&known).await;
        }
    };
    hours(4).await;
    home.finishes(&known, 0).await;
    home.let_pass(Duration::from_secs(5)).await;
    home.ticks(&known).await;
    assert_eq!(home.shows(&known, 0).await, over(Ending::Finished), "it is over since a moment");
    home.let_pass(OVER_KEPT).await;
    hours(3).await;
    for number in 0..3 {
        assert_eq!(home.shows(&known, number).await, Standing::Unknown, "{number}");
    }
    let new = home.enters(&known, "p1").await;
    assert!(matches!(new, crate::store::Enter::In { number: 4, is_new: true, .. }), "{new:?}");
    if let Standing::Unknown = home.shows(&known, 3).await {
        panic!("who was admitted last is forgotten")
    }
}
