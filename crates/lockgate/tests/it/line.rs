//! What users of a line rely on, on both stores.

mod early;
mod faults;
mod glances;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::line::{
    Ending, Entry, Line, LineAdmit, LineOpen, LineState, LineTerms, Ticket, TicketId, Whereabouts,
};
use lockgate::store::{LineStatus, Token};
use lockgate::testing::eventually_async;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::lock::{Place, embedded, on_redis};

const SOON: Duration = Duration::from_secs(10);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The lines of that name, one for each gate, of gates that look often.
fn lines(place: &Place) -> Vec<Line> {
    let mut config = Config::default();
    config.line_tick = ms(20);
    let gates = place.gates.iter().map(|gate| Gate::on_with(Arc::clone(gate.store()), &config));
    gates.map(|gate| gate.line("concert {1}").unwrap()).collect()
}

fn terms(batch: u32, every_ms: u64) -> LineTerms {
    LineTerms::new(batch, ms(every_ms)).unwrap()
}

async fn opened(place: &Place, terms: &LineTerms) -> Vec<Line> {
    let lines = lines(place);
    assert_eq!(lines[0].open(terms).await.unwrap(), LineOpen::Created);
    lines
}

async fn enter(line: &Line, user: &str) -> Ticket {
    match line.enter(user).await.unwrap() {
        Entry::In { ticket, .. } => ticket,
        denied => panic!("{user}: {denied:?}"),
    }
}

async fn enter_all(line: &Line, users: impl IntoIterator<Item = u32>) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for user in users {
        tickets.push(enter(line, &format!("user-{user}")).await);
    }
    tickets
}

fn position(whereabouts: &Whereabouts) -> Option<u64> {
    match whereabouts {
        Whereabouts::Waiting { position, .. } => Some(*position),
        _ => None,
    }
}

async fn position_of(ticket: &Ticket) -> Option<u64> {
    position(&ticket.show().await.unwrap())
}

async fn status(line: &Line) -> LineStatus {
    line.status().await.unwrap().unwrap()
}

/// The same test on both stores.
macro_rules! on_both_stores {
    ($(async fn $name:ident($place:ident: $gates:literal) $body:block)+) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name(&super::embedded($gates).await).await;
            })+
        }
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name(&super::on_redis($gates).await).await;
            })+
        }
        $(async fn $name($place: &Place) $body)+
    };
}
use on_both_stores;

on_both_stores! {
    async fn people_are_admitted_in_their_order_by_whichever_process(place: 3) {
        let terms = terms(5, 40).grace(None).unwrap();
        let lines = opened(place, &terms).await;
        lines[0].pause().await.unwrap();
        let mut waiting = JoinSet::new();
        for user in 0..60_u64 {
            let line = lines[usize::try_from(user).unwrap() % 3].clone();
            let ticket = enter(&line, &format!("user-{user}")).await;
            assert_eq!(ticket.id().number(), user);
            waiting.spawn(async move {
                let admission = ticket.admitted().await.unwrap().unwrap();
                assert_eq!(admission.user.as_str(), format!("user-{user}"));
                (user, admission.until)
            });
        }
        lines[1].resume().await.unwrap();
        let clock = Clock::system();
        let begun = clock.monotonic();
        let admitted: BTreeMap<_, _> = timeout(SOON, waiting.join_all()).await.unwrap().into_iter().collect();
        // Twelve batches are eleven pauses, whoever asked however often.
        let took = clock.monotonic().since(begun);
        assert!(took >= ms(40 * 11), "{took:?}");
        assert_eq!(admitted.len(), 60);
        let status = status(&lines[0]).await;
        assert_eq!((status.admitted, status.crowd.waiting, status.crowd.active), (60, 0, 60));
    }

    async fn entering_again_keeps_the_place_and_the_ticket(place: 2) {
        let lines = opened(place, &terms(1, 60_000)).await;
        lines[0].pause().await.unwrap();
        let tickets = enter_all(&lines[0], 0..3).await;
        let Entry::In { ticket, is_new, whereabouts } = lines[1].enter("user-1").await.unwrap() else { panic!() };
        assert_eq!((ticket.id(), is_new, position(&whereabouts)), (tickets[1].id(), false, Some(2)));

        assert_eq!(tickets[1].leave().await.unwrap(), Whereabouts::Over(Ending::Left));
        assert_eq!(tickets[1].leave().await.unwrap(), Whereabouts::Over(Ending::Left));
        assert_eq!(position_of(&tickets[2]).await, Some(2));
        let again = enter(&lines[1], "user-1").await;
        assert_ne!(again.id(), tickets[1].id());
        assert_eq!(position_of(&again).await, Some(3));
        assert_eq!(status(&lines[0]).await.left, 1);
    }

    async fn a_watcher_hears_every_position_and_then_its_turn(place: 2) {
        let lines = opened(place, &terms(1, 60_000)).await;
        lines[0].pause().await.unwrap();
        let tickets = enter_all(&lines[0], 0..4).await;
        let mut watch = lines[1].ticket(*tickets[3].id()).watch();
        assert_eq!(position(&watch.next().await.unwrap().unwrap()), Some(4));
        tickets[1].leave().await.unwrap();
        assert_eq!(position(&timeout(SOON, watch.next()).await.unwrap().unwrap().unwrap()), Some(3));
        // Beyond the rate, although it is paused.
        assert_eq!(lines[0].admit(2).await.unwrap(), Some(LineAdmit::Noted { count: 2 }));
        assert_eq!(position(&timeout(SOON, watch.next()).await.unwrap().unwrap().unwrap()), Some(1));
        lines[0].admit(1).await.unwrap();
        let turn = timeout(SOON, watch.next()).await.unwrap().unwrap().unwrap();
        assert!(matches!(&turn, Whereabouts::Admitted(admission) if admission.user.as_str() == "user-3"), "{turn:?}");
        assert_eq!(watch.next().await.unwrap(), None);
    }

    async fn one_finishes_and_the_next_comes(place: 2) {
        let lines = opened(place, &terms(10, 10).max_active(2).unwrap()).await;
        let tickets = enter_all(&lines[0], 0..4).await;
        for ticket in &tickets[..2] {
            timeout(SOON, ticket.admitted()).await.unwrap().unwrap().unwrap();
        }
        sleep(ms(100)).await;
        assert_eq!(status(&lines[1]).await.crowd.active, 2);
        assert_eq!(position_of(&tickets[2]).await, Some(1));
        // Whoever is not admitted cannot finish.
        assert_eq!(position(&tickets[2].finish().await.unwrap()), Some(1));

        assert_eq!(tickets[0].finish().await.unwrap(), Whereabouts::Over(Ending::Finished));
        timeout(SOON, tickets[2].admitted()).await.unwrap().unwrap().unwrap();
        assert_eq!(position_of(&tickets[3]).await, Some(1));
        assert_eq!(tickets[1].leave().await.unwrap(), Whereabouts::Over(Ending::Left));
        timeout(SOON, tickets[3].admitted()).await.unwrap().unwrap().unwrap();
        assert_eq!(status(&lines[0]).await.finished, 2);
    }

    async fn who_does_not_come_makes_room_and_who_is_away_is_passed_over(place: 1) {
        let terms = terms(1, 10).max_active(1).unwrap().grace(Some(ms(500))).unwrap().pass_ttl(ms(1_200)).unwrap();
        let lines = opened(place, &terms).await;
        // The first comes, and overstays. The second is away meanwhile.
        let mut tickets = enter_all(&lines[0], 0..2).await;
        timeout(SOON, tickets[0].admitted()).await.unwrap().unwrap().unwrap();
        sleep(ms(1_000)).await;
        // The third is there when it is admitted, and does not come. The fourth watches.
        tickets.extend(enter_all(&lines[0], 2..4).await);
        timeout(SOON, tickets[3].admitted()).await.unwrap().unwrap().unwrap();
        let mut endings = Vec::new();
        for ticket in &tickets[..3] {
            endings.push(ticket.show().await.unwrap());
        }
        let expected = [Ending::Expired, Ending::Abandoned, Ending::NoShow].map(Whereabouts::Over);
        assert_eq!(endings, expected);
        let status = status(&lines[0]).await;
        assert_eq!((status.no_shows, status.abandoned, status.expired, status.admitted), (1, 1, 1, 3));
    }

    async fn renewing_keeps_the_place_inside(place: 1) {
        let terms = terms(1, 10).max_active(1).unwrap().pass_ttl(ms(500)).unwrap();
        let lines = opened(place, &terms).await;
        let tickets = enter_all(&lines[0], 0..2).await;
        let first = timeout(SOON, tickets[0].admitted()).await.unwrap().unwrap().unwrap();
        let mut last = first.clone();
        for _ in 0..8 {
            sleep(ms(150)).await;
            let Whereabouts::Admitted(renewed) = tickets[0].renew().await.unwrap() else { panic!("lost its place") };
            assert!(renewed.until > last.until);
            assert_eq!(renewed.pass_id, first.pass_id);
            last = renewed;
        }
        assert_eq!(position_of(&tickets[1]).await, Some(1));
        assert_eq!(position(&tickets[1].renew().await.unwrap()), Some(1));
        // Now it is not renewed any more.
        timeout(SOON, tickets[1].admitted()).await.unwrap().unwrap().unwrap();
    }

    async fn an_operator_pauses_resumes_changes_the_rate_and_closes(place: 2) {
        let lines = opened(place, &terms(1, 60_000)).await;
        assert_eq!(lines[1].open(&terms(1, 60_000)).await.unwrap(), LineOpen::Changed);
        let tickets = enter_all(&lines[0], 0..400).await;
        timeout(SOON, tickets[0].admitted()).await.unwrap().unwrap().unwrap();
        // One a minute is slow. A hundred times as many every tenth of a second.
        lines[1].open(&terms(3, 50)).await.unwrap();
        timeout(SOON, tickets[9].admitted()).await.unwrap().unwrap().unwrap();
        assert_eq!(lines[0].pause().await.unwrap(), Some(LineState::Paused));
        let before = status(&lines[0]).await;
        sleep(ms(200)).await;
        assert_eq!(status(&lines[1]).await.admitted, before.admitted);
        assert_eq!(lines[1].resume().await.unwrap(), Some(LineState::Running));
        let last = usize::try_from(before.admitted).unwrap();
        timeout(SOON, tickets[last].admitted()).await.unwrap().unwrap().unwrap();

        assert!(!lines[0].forget().await.unwrap());
        assert_eq!(lines[0].close().await.unwrap(), Some(LineState::Closed));
        assert_eq!(lines[0].resume().await.unwrap(), Some(LineState::Closed));
        assert_eq!(tickets[399].show().await.unwrap(), Whereabouts::Over(Ending::Closed));
        assert!(matches!(tickets[last].show().await.unwrap(), Whereabouts::Admitted(_)));
        assert!(matches!(lines[1].enter("late").await.unwrap(), Entry::Closed));
        assert!(matches!(lines[1].enter("user-399").await.unwrap(), Entry::Closed));
        assert_eq!(lines[0].admit(1).await.unwrap(), Some(LineAdmit::NotOpen(LineState::Closed)));
        assert!(lines[0].forget().await.unwrap());
        assert_eq!(tickets[0].show().await.unwrap(), Whereabouts::Unknown);
        assert!(matches!(lines[1].enter("late").await.unwrap(), Entry::Unknown));
        assert!(lines[1].status().await.unwrap().is_none());
    }

    async fn the_wait_is_estimated_by_how_fast_the_line_moves(place: 1) {
        let terms = terms(1, 50).grace(None).unwrap();
        let lines = opened(place, &terms).await;
        let tickets = enter_all(&lines[0], 0..300).await;
        timeout(SOON, tickets[30].admitted()).await.unwrap().unwrap().unwrap();
        let Whereabouts::Waiting { position, wait: Some(wait), waiting } = tickets[299].show().await.unwrap() else {
            panic!("not estimated")
        };
        let moving = wait.as_secs_f64() / f64::from(u32::try_from(position).unwrap());
        assert!((0.045..0.150).contains(&moving), "{wait:?} for {position}: one every {moving} s");
        assert_eq!(waiting, position);
        lines[0].pause().await.unwrap();
        assert!(matches!(tickets[299].show().await.unwrap(), Whereabouts::Waiting { wait: None, .. }));
    }

    async fn only_tickets_of_this_line_are_tickets(place: 2) {
        let lines = opened(place, &terms(1, 60_000)).await;
        lines[0].pause().await.unwrap();
        let other = place.gates[0].line("other").unwrap();
        other.open(&terms(1, 60_000)).await.unwrap();
        let (ours, theirs) = (enter(&lines[0], "alice").await, enter(&other, "alice").await);
        assert_eq!(ours.id().number(), theirs.id().number());
        assert_eq!(lines[1].ticket(*theirs.id()).show().await.unwrap(), Whereabouts::Unknown);
        let text = ours.id().to_string();
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'1' { b'2' } else { b'1' };
            if let Some(id) = TicketId::parse(&String::from_utf8(forged).unwrap()) {
                let forged = lines[1].ticket(id);
                assert_eq!(forged.show().await.unwrap(), Whereabouts::Unknown);
                assert_eq!(forged.leave().await.unwrap(), Whereabouts::Unknown);
                assert_eq!(forged.finish().await.unwrap(), Whereabouts::Unknown);
                assert_eq!(forged.renew().await.unwrap(), Whereabouts::Unknown);
            }
        }
        assert_eq!(position_of(&ours).await, Some(1));
        // A line that was made anew under the same name has other tickets.
        lines[0].close().await.unwrap();
        assert!(lines[0].forget().await.unwrap());
        lines[1].open(&terms(1, 60_000)).await.unwrap();
        lines[1].pause().await.unwrap();
        enter(&lines[1], "mallory").await;
        assert_eq!(lines[0].ticket(*ours.id()).show().await.unwrap(), Whereabouts::Unknown);
    }

    async fn a_request_to_admit_that_is_sent_again_admits_nobody_else(place: 2) {
        let lines = opened(place, &terms(1, 60_000)).await;
        lines[0].pause().await.unwrap();
        enter_all(&lines[0], 0..10).await;
        let request = Token::random();
        assert_eq!(lines[0].admit_as(3, request).await.unwrap(), Some(LineAdmit::Noted { count: 3 }));
        assert_eq!(lines[1].admit_as(3, request).await.unwrap(), Some(LineAdmit::Again { asked: 3 }));
        let are_in = eventually_async(SOON, async || status(&lines[0]).await.admitted == 3).await;
        assert!(are_in);
        sleep(ms(100)).await;
        assert_eq!(status(&lines[0]).await.admitted, 3);
        // Those who are not there yet are not meant.
        assert_eq!(lines[0].admit(100).await.unwrap(), Some(LineAdmit::Noted { count: 7 }));
        let are_in = eventually_async(SOON, async || status(&lines[0]).await.admitted == 10).await;
        assert!(are_in);
        enter(&lines[0], "later").await;
        sleep(ms(100)).await;
        assert_eq!(status(&lines[0]).await.admitted, 10);
    }

    async fn users_of_every_nasty_kind_stand_in_line(place: 1) {
        let lines = opened(place, &terms(100, 10).grace(None).unwrap()).await;
        let long = "x".repeat(16 * 1_024);
        let nasty = ["{", "}", "{}", ":", "%", "\0", "\n", "\r\n", " ", "🎟", "é", "e\u{301}", "'", "\"", "\\", "-1", "0", "nil", &long];
        let mut tickets = Vec::new();
        for user in nasty {
            tickets.push((user, enter(&lines[0], user).await));
        }
        for (user, ticket) in tickets {
            let admission = timeout(SOON, ticket.admitted()).await.unwrap().unwrap().unwrap();
            assert_eq!(admission.user.as_str(), user);
            assert!(matches!(lines[0].enter(user).await.unwrap(), Entry::In { is_new: false, .. }));
        }
        assert!(lines[0].enter("").await.is_err());
        assert!(lines[0].enter(format!("{long}x")).await.is_err());
    }

    async fn several_lines_do_not_disturb_each_other(place: 1) {
        let fast = place.gates[0].line("fast").unwrap();
        let slow = place.gates[0].line("slow").unwrap();
        fast.open(&terms(10, 10).grace(None).unwrap()).await.unwrap();
        slow.open(&terms(1, 60_000)).await.unwrap();
        let (of_slow, of_fast) = (enter_all(&slow, 0..5).await, enter_all(&fast, 0..50).await);
        timeout(SOON, of_fast[49].admitted()).await.unwrap().unwrap().unwrap();
        assert_eq!(status(&slow).await.admitted, 1);
        assert_eq!(position_of(&of_slow[4]).await, Some(4));
    }
}

#[tokio::test]
async fn a_line_that_opens_later_lets_nobody_in_before() {
    let mut config = Config::default();
    (config.clock, config.line_tick) = (Clock::fake(), ms(1));
    let gate = Gate::open_with("memory", &config).await.unwrap();
    let line = gate.line("later").unwrap();
    let opens_at = config.clock.wall() + ms(1_000);
    assert!(matches!(line.enter("alice").await.unwrap(), Entry::Unknown));
    line.open(&terms(1, 10).opens_at(opens_at)).await.unwrap();
    assert!(
        matches!(line.enter("alice").await.unwrap(), Entry::NotOpen { opens_at: when } if when == opens_at)
    );
    // Earlier, and then it cannot be moved any more.
    let sooner = config.clock.wall() + ms(500);
    assert_eq!(line.open(&terms(1, 10).opens_at(sooner)).await.unwrap(), LineOpen::Changed);
    config.clock.advance(ms(501));
    enter(&line, "alice").await;
    assert_eq!(line.open(&terms(1, 10).opens_at(opens_at)).await.unwrap(), LineOpen::TooLate);
}
