//! Restarts, dead processes and crowds of watchers.

use lockgate::key::Name;
use lockgate::line::LineChange;
use lockgate::store::memory::MemoryStore;
use lockgate::store::{EnterWish, LineSecret, LineSecrets, Store, Tick};
use lockgate::testing::breakable::{Break, BreakableStore};

use super::super::lock_metrics::{Sums, reaches};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_line_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("journal.db").display());
    let mut config = Config::default();
    config.line_tick = ms(10);
    let terms = terms(10, 50).max_active(10).unwrap();
    let (tickets, before) = {
        let gate = Gate::open_with(&url, &config).await.unwrap();
        let line = gate.line("concert").unwrap();
        line.open(&terms).await.unwrap();
        let tickets = enter_all(&line, 0..40).await;
        timeout(SOON, tickets[9].admitted()).await.unwrap().unwrap().unwrap();
        tickets[5].finish().await.unwrap();
        timeout(SOON, tickets[10].admitted()).await.unwrap().unwrap().unwrap();
        tickets[20].leave().await.unwrap();
        line.pause().await.unwrap();
        let before = status(&line).await;
        gate.shutdown().await;
        (tickets.iter().map(|ticket| *ticket.id()).collect::<Vec<_>>(), before)
    };
    let gate = Gate::open_with(&url, &config).await.unwrap();
    let line = gate.line("concert").unwrap();
    let mut after = status(&line).await;
    // How fast it moved is measured anew.
    (after.crowd.pace, after.recent_waits) = (before.crowd.pace, before.recent_waits.clone());
    assert_eq!(after, before);
    assert_eq!(position_of(&line.ticket(tickets[19])).await, Some(9));
    assert_eq!(position_of(&line.ticket(tickets[21])).await, Some(10));
    assert_eq!(line.ticket(tickets[20]).show().await.unwrap(), Whereabouts::Over(Ending::Left));
    assert_eq!(line.ticket(tickets[5]).show().await.unwrap(), Whereabouts::Over(Ending::Finished));
    assert!(matches!(line.ticket(tickets[10]).show().await.unwrap(), Whereabouts::Admitted(_)));
    assert_eq!(*enter(&line, "user-30").await.id(), tickets[30]);
    line.resume().await.unwrap();
    line.ticket(tickets[0]).finish().await.unwrap();
    timeout(SOON, line.ticket(tickets[11]).admitted()).await.unwrap().unwrap().unwrap();
}

/// Nobody could be seen while the process was away.
#[tokio::test]
async fn whoever_waits_counts_as_seen_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.clock = Clock::fake();
    let open = || MemoryStore::open(folder.path().join("journal.db"), &config).unwrap();
    let line = Name::new("line", "concert").unwrap();
    let terms = terms(1, 10).grace(Some(ms(1_000))).unwrap();
    let store = open();
    let secrets = LineSecrets { tickets: LineSecret([1; 32]), draw: LineSecret([2; 32]) };
    store.line_open(&line, &terms, &secrets).await.unwrap();
    store.line_change(&line, LineChange::Pause).await.unwrap();
    let edition = store.line_read(&line).await.unwrap().unwrap().edition;
    let wish = EnterWish { user: Name::new("user", "alice").unwrap(), known: None };
    store.line_enter(&line, edition, &[wish]).await.unwrap();
    for _ in 0..3 {
        config.clock.advance(ms(300));
        store.line_read(&line).await.unwrap();
    }
    // So that the journal knows how late it is.
    store.line_change(&line, LineChange::Resume).await.unwrap();
    drop(store);
    config.clock.advance(Duration::from_secs(3_600));
    let store = open();
    store.line_read(&line).await.unwrap();
    config.clock.advance(ms(300));
    let tick = store.line_tick(&line, edition, &Tick::default()).await.unwrap().unwrap();
    assert_eq!((tick.done.admitted, tick.done.abandoned), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_shortened_and_means_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let url = format!("sqlite:{}", path.display());
    let (first, last, before) = {
        let gate = Gate::open(&url).await.unwrap();
        let line = gate.line("concert").unwrap();
        line.open(&terms(1, 60_000)).await.unwrap();
        line.pause().await.unwrap();
        let first = enter(&line, "first").await;
        line.resume().await.unwrap();
        timeout(SOON, first.admitted()).await.unwrap().unwrap().unwrap();
        let mut busy = JoinSet::new();
        for user in 0..50 {
            let line = line.clone();
            let first = first.clone();
            busy.spawn(async move {
                let ticket = enter(&line, &format!("user-{user}")).await;
                for _ in 0..220 {
                    first.renew().await.unwrap();
                }
                ticket
            });
        }
        let tickets = busy.join_all().await;
        tickets[7].leave().await.unwrap();
        line.pause().await.unwrap();
        let last = enter(&line, "last").await;
        gate.shutdown().await;
        (*first.id(), *last.id(), status(&line).await)
    };
    let size = std::fs::metadata(&path).unwrap().len();
    for _ in 0..2 {
        let gate = Gate::open(&url).await.unwrap();
        let line = gate.line("concert").unwrap();
        let mut after = status(&line).await;
        (after.crowd.pace, after.recent_waits) = (before.crowd.pace, before.recent_waits.clone());
        assert_eq!(after, before);
        assert!(matches!(line.ticket(first).show().await.unwrap(), Whereabouts::Admitted(_)));
        assert_eq!(position_of(&line.ticket(last)).await, Some(50));
        gate.shutdown().await;
    }
    let _ = size;
}

/// A store whose calls are counted, with a gate on it.
fn counted() -> (Arc<BreakableStore>, Gate) {
    let mut config = Config::default();
    config.line_tick = ms(100);
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let store = Arc::new(BreakableStore::new(inner));
    let gate = Gate::on_with(Arc::clone(&store) as Arc<dyn Store>, &config);
    (store, gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_watchers_are_one_call_per_tick() {
    let (store, gate) = counted();
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 60_000)).await.unwrap();
    line.pause().await.unwrap();
    let tickets = enter_all(&line, 0..10_000).await;
    let mut watches: Vec<_> = tickets.iter().map(Ticket::watch).collect();
    for watch in &mut watches {
        watch.next().await.unwrap();
    }
    let mut watching = JoinSet::new();
    for (number, mut watch) in watches.into_iter().enumerate().skip(1) {
        watching.spawn(async move {
            // The first one leaves: everybody moves up.
            let moved = timeout(SOON, async {
                while position(&watch.next().await.unwrap().unwrap()) != Some(number as u64) {}
            });
            moved.await.unwrap();
            timeout(ms(2_000), watch.next()).await.unwrap_err();
        });
    }
    let (before, clock) = (store.calls(), Clock::system());
    let begun = clock.monotonic();
    tickets[0].leave().await.unwrap();
    watching.join_all().await;
    let ticks = clock.monotonic().since(begun).as_millis() / 100;
    let calls = store.calls() - before;
    // The leave and the look after it are calls too.
    assert!(u128::from(calls) <= ticks + 4, "{calls} calls in {ticks} ticks");
    assert!(calls >= 5, "{calls} calls in {ticks} ticks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_holds_the_line_up_and_loses_nobody() {
    let (store, gate) = counted();
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 20).grace(Some(ms(300))).unwrap()).await.unwrap();
    let tickets = enter_all(&line, 0..10).await;
    let waits = |ticket: &Ticket| {
        let ticket = ticket.clone();
        tokio::spawn(async move { ticket.admitted().await })
    };
    let waiting: Vec<_> = tickets.iter().map(waits).collect();
    sleep(ms(50)).await;
    store.break_all(Break::Refuse);
    // Longer than the grace period: nobody could be seen, so nobody is absent.
    sleep(ms(900)).await;
    store.heal();
    for (number, waiting) in waiting.into_iter().enumerate() {
        match timeout(SOON, waiting).await.unwrap().unwrap() {
            Ok(Ok(_)) => {}
            // Whoever was asking at that moment was told so, and asks again.
            Err(_) => {
                let again = timeout(SOON, tickets[number].admitted()).await.unwrap().unwrap();
                assert!(again.is_ok(), "{number}: {again:?}");
            }
            Ok(Err(elsewhere)) => panic!("{number}: {elsewhere:?}"),
        }
    }
    assert_eq!(status(&line).await.abandoned, 0);
}

/// Leaves that happened before anybody watched count from the first position on.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_knows_of_those_who_left_before_it_watched() {
    let (_, gate) = counted();
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 60_000)).await.unwrap();
    line.pause().await.unwrap();
    let tickets = enter_all(&line, 0..30).await;
    for ticket in &tickets[..10] {
        ticket.leave().await.unwrap();
    }
    // Some ticks without a watcher.
    sleep(ms(300)).await;
    let mut watch = tickets[29].watch();
    assert_eq!(position(&watch.next().await.unwrap().unwrap()), Some(20));
    line.admit(1).await.unwrap();
    let moved = timeout(SOON, watch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(position(&moved), Some(19));
}

/// Another process changes the terms: whoever watches here is still seen.
#[tokio::test(flavor = "multi_thread")]
async fn new_terms_reach_every_process() {
    let (store, gate) = counted();
    let other = Gate::on(Arc::clone(&store) as Arc<dyn Store>);
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 60_000).grace(None).unwrap()).await.unwrap();
    line.pause().await.unwrap();
    let tickets = enter_all(&line, 0..2).await;
    let watching =
        tickets.clone().into_iter().map(|ticket| tokio::spawn(async move { ticket.admitted().await }));
    let watching: Vec<_> = watching.collect();
    sleep(ms(200)).await;
    let sooner = terms(2, 10).grace(Some(ms(400))).unwrap();
    other.line("concert").unwrap().open(&sooner).await.unwrap();
    sleep(ms(1_500)).await;
    other.line("concert").unwrap().resume().await.unwrap();
    for watching in watching {
        assert!(timeout(SOON, watching).await.unwrap().unwrap().unwrap().is_ok());
    }
    assert_eq!(status(&line).await.abandoned, 0);
}

/// Whoever watches again and again is one watcher.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_comes_back_is_not_a_crowd() {
    let (store, gate) = counted();
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 60_000).grace(Some(ms(400))).unwrap()).await.unwrap();
    line.pause().await.unwrap();
    let ticket = enter(&line, "alice").await;
    for _ in 0..5_000 {
        let mut watch = ticket.watch();
        watch.next().await.unwrap();
    }
    let _watch = ticket.watch().next().await.unwrap();
    let mut watch = ticket.watch();
    watch.next().await.unwrap();
    let before = store.calls();
    let _ = timeout(ms(1_000), watch.next()).await;
    let _ = timeout(ms(1_000), watch.next()).await;
    let calls = store.calls() - before;
    assert!(calls < 60, "{calls} calls in two seconds");
}

/// Nobody waits for ever for a gate that is closed.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_hears_that_the_gate_was_shut_down() {
    let (_, gate) = counted();
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 60_000)).await.unwrap();
    line.pause().await.unwrap();
    let ticket = enter(&line, "alice").await;
    let waiting = tokio::spawn({
        let ticket = ticket.clone();
        async move { ticket.admitted().await }
    });
    sleep(ms(150)).await;
    gate.shutdown().await;
    assert!(timeout(SOON, waiting).await.unwrap().unwrap().is_err());
    assert!(timeout(SOON, ticket.admitted()).await.unwrap().is_err());
}

/// The first one in an empty line does not wait for the next look at those inside.
#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_waits_one_is_admitted_at_once() {
    let (_, gate) = counted();
    let line = gate.line("concert").unwrap();
    line.open(&terms(1, 10)).await.unwrap();
    let inside = enter(&line, "inside").await;
    timeout(SOON, inside.admitted()).await.unwrap().unwrap().unwrap();
    sleep(ms(300)).await;
    let clock = Clock::system();
    for user in 0..3 {
        let ticket = enter(&line, &format!("user-{user}")).await;
        let before = clock.monotonic();
        timeout(SOON, ticket.admitted()).await.unwrap().unwrap().unwrap();
        let took = clock.monotonic().since(before);
        assert!(took < ms(1_500), "{took:?}");
        sleep(ms(100)).await;
    }
}

/// Whoever comes back when it is their turn gets all of their time.
#[tokio::test(flavor = "multi_thread")]
async fn entering_again_when_admitted_is_showing_the_ticket() {
    let (_, gate) = counted();
    let line = gate.line("concert").unwrap();
    let terms = terms(1, 10).grace(Some(ms(500))).unwrap().pass_ttl(Duration::from_secs(60)).unwrap();
    line.open(&terms).await.unwrap();
    enter(&line, "alice").await;
    assert!(eventually_async(SOON, async || status(&line).await.admitted == 1).await);
    let Entry::In { whereabouts: Whereabouts::Admitted(admission), .. } = line.enter("alice").await.unwrap()
    else {
        panic!("not admitted")
    };
    assert!(admission.until > Clock::system().wall() + Duration::from_secs(50), "{admission:?}");
    sleep(ms(900)).await;
    assert_eq!(status(&line).await.no_shows, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_in_a_line_is_counted() {
    let sums = Sums::default();
    // The line is counted by the task that serves it, wherever that runs.
    metrics::set_global_recorder(sums.clone()).unwrap();
    let (_, gate) = counted();
    let line = gate.line("counted").unwrap();
    let terms = terms(2, 20).max_active(2).unwrap().grace(Some(ms(300))).unwrap().pass_ttl(ms(500)).unwrap();
    line.open(&terms).await.unwrap();
    line.pause().await.unwrap();
    let tickets = enter_all(&line, 0..5).await;
    reaches(&sums, "lockgate_line_waiting line=counted", 5.0).await;
    // The first comes and stays, the second does not come; by then the third is away, and so are the others.
    line.resume().await.unwrap();
    timeout(SOON, tickets[0].admitted()).await.unwrap().unwrap().unwrap();
    assert_eq!(sums.of("lockgate_line_admitted_total line=counted"), 2.0);
    reaches(&sums, "lockgate_line_no_shows_total line=counted", 1.0).await;
    reaches(&sums, "lockgate_line_expired_total line=counted", 1.0).await;
    reaches(&sums, "lockgate_line_abandoned_total line=counted", 3.0).await;
    assert!(eventually_async(SOON, async || sums.of("lockgate_line_waiting line=counted") == 0.0).await);
    assert!(eventually_async(SOON, async || sums.of("lockgate_line_active line=counted") == 0.0).await);
    assert_eq!(sums.of("lockgate_line_wait_seconds line=counted"), 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_shuts_down_leaves_the_line_to_the_others() {
    let (store, first) = counted();
    let second = Gate::on(Arc::clone(&store) as Arc<dyn Store>);
    let line = first.line("concert").unwrap();
    line.open(&terms(1, 50)).await.unwrap();
    let tickets = enter_all(&line, 0..10).await;
    timeout(SOON, tickets[2].admitted()).await.unwrap().unwrap().unwrap();
    first.shutdown().await;
    let elsewhere = second.line("concert").unwrap().ticket(*tickets[9].id());
    timeout(SOON, elsewhere.admitted()).await.unwrap().unwrap().unwrap();
    second.shutdown().await;
}
