//! Those who look in now and then.

use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::breakable::{Break, BreakableStore};

use super::*;

/// Gates on one store whose calls are counted.
fn counted(tick: Duration, gates: usize) -> (Arc<BreakableStore>, Vec<Line>) {
    let mut config = Config::default();
    config.line_tick = tick;
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let store = Arc::new(BreakableStore::new(inner));
    let on_store = || Gate::on_with(Arc::clone(&store) as Arc<dyn Store>, &config);
    let lines = (0..gates).map(|_| on_store().line("concert").unwrap()).collect();
    (store, lines)
}

async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    assert!(eventually_async(SOON, condition).await, "{what}: never");
}

/// Glances until it costs the store nothing.
async fn settle(store: &BreakableStore, ticket: &Ticket) {
    until("a glance is free", async || {
        let before = store.calls();
        ticket.glance().await.unwrap();
        store.calls() == before
    })
    .await;
}

on_both_stores! {
    async fn a_glance_tells_what_a_ticket_tells_that_is_shown(place: 2) {
        let lines = opened(place, &terms(1, 60_000)).await;
        lines[0].pause().await.unwrap();
        let tickets = enter_all(&lines[0], 0..5).await;
        let far = lines[1].ticket(*tickets[4].id());
        let becomes = async |position_then: u64| {
            until("the glance follows", async || {
                position(&far.glance().await.unwrap()) == Some(position_then)
            })
            .await;
        };
        becomes(5).await;
        tickets[1].leave().await.unwrap();
        becomes(4).await;
        lines[0].admit(1).await.unwrap();
        becomes(3).await;
        for ticket in &tickets {
            until("both tell the same", async || {
                ticket.glance().await.unwrap() == ticket.show().await.unwrap()
            })
            .await;
        }
        // What is done here is seen here at once.
        assert_eq!(position(&tickets[3].glance().await.unwrap()), Some(2));
        tickets[2].leave().await.unwrap();
        assert_eq!(tickets[2].glance().await.unwrap(), Whereabouts::Over(Ending::Left));
        assert_eq!(position(&tickets[3].glance().await.unwrap()), Some(1));
        // Nobody else's ticket is told of, although somebody stands there.
        let forged = format!("{}-1-{:032x}", tickets[4].id().number(), 1);
        let forged = lines[0].ticket(TicketId::parse(&forged).unwrap());
        for _ in 0..20 {
            sleep(ms(5)).await;
            assert_eq!(forged.glance().await.unwrap(), Whereabouts::Unknown);
            assert_eq!(position(&tickets[4].glance().await.unwrap()), Some(2));
        }
        lines[0].close().await.unwrap();
        assert_eq!(tickets[3].glance().await.unwrap(), Whereabouts::Over(Ending::Closed));
    }

    async fn whoever_glances_is_not_passed_over(place: 1) {
        let terms = terms(1, 10).grace(Some(ms(800))).unwrap();
        let lines = opened(place, &terms).await;
        lines[0].pause().await.unwrap();
        let tickets = enter_all(&lines[0], 0..2).await;
        for _ in 0..20 {
            sleep(ms(100)).await;
            assert_eq!(position(&tickets[1].glance().await.unwrap()), Some(2));
        }
        lines[0].resume().await.unwrap();
        // Nobody looks in before it is decided.
        until("both have passed", async || status(&lines[0]).await.crowd.waiting == 0).await;
        assert!(matches!(tickets[1].glance().await.unwrap(), Whereabouts::Admitted(_)));
        assert_eq!(tickets[0].glance().await.unwrap(), Whereabouts::Over(Ending::Abandoned));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_glances_are_one_call_per_tick() {
    let (store, lines) = counted(ms(1_000), 1);
    lines[0].open(&terms(1, 60_000)).await.unwrap();
    lines[0].pause().await.unwrap();
    let tickets = enter_all(&lines[0], 0..1_000).await;
    settle(&store, &tickets[0]).await;
    let (before, clock) = (store.calls(), Clock::system());
    let begun = clock.monotonic();
    for _ in 0..10 {
        for (number, ticket) in tickets.iter().enumerate() {
            assert_eq!(position(&ticket.glance().await.unwrap()), Some(number as u64 + 1));
        }
    }
    let ticks = clock.monotonic().since(begun).as_millis() / 1_000;
    let calls = store.calls() - before;
    assert!(u128::from(calls) <= ticks + 1, "{calls} calls in {ticks} ticks");
}

/// More than one call carries.
#[tokio::test(flavor = "multi_thread")]
async fn everybody_of_a_crowd_that_glances_is_seen() {
    let (store, lines) = counted(ms(50), 1);
    let terms = terms(1_000, 10).grace(Some(ms(1_500))).unwrap();
    lines[0].open(&terms).await.unwrap();
    lines[0].pause().await.unwrap();
    let tickets = enter_all(&lines[0], 0..5_000).await;
    settle(&store, &tickets[0]).await;
    let clock = Clock::system();
    let begun = clock.monotonic();
    while clock.monotonic().since(begun) < ms(3_000) {
        for ticket in &tickets[1..] {
            ticket.glance().await.unwrap();
        }
        sleep(ms(100)).await;
    }
    lines[0].resume().await.unwrap();
    until("all have passed", async || status(&lines[0]).await.crowd.waiting == 0).await;
    let status = status(&lines[0]).await;
    assert_eq!((status.admitted, status.abandoned), (4_999, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_is_not_older_than_two_ticks() {
    let (store, lines) = counted(ms(300), 2);
    lines[0].open(&terms(1, 60_000)).await.unwrap();
    lines[0].pause().await.unwrap();
    let tickets = enter_all(&lines[0], 0..3).await;
    let elsewhere = lines[1].ticket(*tickets[2].id());
    settle(&store, &elsewhere).await;
    tickets[1].leave().await.unwrap();
    sleep(ms(700)).await;
    assert_eq!(position(&elsewhere.glance().await.unwrap()), Some(2));
    // Rather nothing than what was so long ago.
    store.break_all(Break::Refuse);
    sleep(ms(700)).await;
    elsewhere.glance().await.unwrap_err();
    store.heal();
    assert_eq!(position(&elsewhere.glance().await.unwrap()), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_nobody_glances_any_more_nobody_looks_for_them() {
    let (store, lines) = counted(ms(20), 1);
    lines[0].open(&terms(1, 60_000).grace(None).unwrap()).await.unwrap();
    lines[0].pause().await.unwrap();
    let ticket = enter(&lines[0], "alice").await;
    settle(&store, &ticket).await;
    sleep(ms(1_000)).await;
    let before = store.calls();
    sleep(ms(1_000)).await;
    let calls = store.calls() - before;
    assert!(calls <= 2, "{calls} calls");
}
