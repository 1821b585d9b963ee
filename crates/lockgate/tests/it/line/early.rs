//! Those who come before the line opens.

use std::sync::Mutex;

use lockgate::key::Name;
use lockgate::line::{Audit, Refuted};

use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::breakable::{Break, BreakableStore};

use super::*;

on_both_stores! {
    async fn those_who_come_early_are_drawn_and_anybody_can_verify_it(place: 3) {
        let lines = lines(place);
        let clock = Clock::system();
        let opens_at = clock.wall() + ms(1_500);
        let terms = terms(1, 10).max_active(1).unwrap().grace(None).unwrap().prequeue_until(opens_at);
        lines[0].open(&terms).await.unwrap();
        let commitment = lines[1].commitment().await.unwrap().unwrap();
        assert_eq!(lines[0].audit().await.unwrap(), None);

        let tickets = enter_all(&lines[0], 0..40).await;
        assert_eq!(tickets[0].show().await.unwrap(), Whereabouts::Early { waiting: 40 });
        assert!(matches!(lines[1].enter("user-5").await.unwrap(), Entry::In { is_new: false, .. }));
        // Whoever leaves and comes back is in the list twice, and the list still holds.
        let twice = enter(&lines[1], "twice").await;
        twice.leave().await.unwrap();
        let twice = enter(&lines[1], "twice").await;
        for user in [3, 27] {
            assert_eq!(tickets[user].leave().await.unwrap(), Whereabouts::Over(Ending::Left));
        }
        // One after the other: whoever is admitted says so, and makes room.
        let admitted = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = JoinSet::new();
        for (user, ticket) in tickets.iter().enumerate().filter(|(user, _)| ![3, 27].contains(user)) {
            let (line, admitted) = (lines[user % 3].clone(), Arc::clone(&admitted));
            let ticket = line.ticket(*ticket.id());
            waiting.spawn(async move {
                let admission = ticket.admitted().await.unwrap().unwrap();
                assert_eq!(admission.user.as_str(), format!("user-{user}"));
                admitted.lock().unwrap().push(user as u64);
                // Whoever was drawn and comes again has the same ticket.
                let again = line.enter(format!("user-{user}")).await.unwrap();
                assert!(matches!(&again, Entry::In { ticket: same, is_new: false, .. } if same.id() == ticket.id()));
                ticket.finish().await.unwrap();
            });
        }
        while clock.wall() < opens_at {
            sleep(ms(10)).await;
        }
        let late = enter(&lines[2], "late").await;
        let twice = tokio::spawn(async move {
            twice.admitted().await.unwrap().unwrap();
            twice.finish().await.unwrap();
        });
        timeout(3 * SOON, waiting.join_all()).await.unwrap();
        timeout(SOON, twice).await.unwrap().unwrap();
        timeout(SOON, late.admitted()).await.unwrap().unwrap().unwrap();

        let audit = lines[2].audit().await.unwrap().unwrap();
        let order = audit.verify(Some(&commitment)).unwrap();
        assert_ne!(order, (0..42).collect::<Vec<_>>());
        assert_eq!(audit.find(&Name::new("user", "twice").unwrap()).unwrap().0, 41);
        let stood: Vec<_> = order.into_iter().filter(|number| ![3, 27, 40, 41].contains(number)).collect();
        assert_eq!(*admitted.lock().unwrap(), stood);

        // Those who left stay away, and whoever comes back is behind.
        assert!(matches!(tickets[3].show().await.unwrap(), Whereabouts::Over(_)));
        assert!(matches!(lines[0].enter("user-3").await.unwrap(), Entry::In { is_new: true, .. }));
        assert!(status(&lines[0]).await.admitted >= 39);
    }
}

/// An audit that was tampered with is refuted, wherever it was.
#[tokio::test]
async fn a_false_audit_is_refuted() {
    let mut config = Config::default();
    (config.clock, config.line_tick) = (Clock::fake(), ms(1));
    let gate = Gate::open_with("memory", &config).await.unwrap();
    let line = gate.line("concert").unwrap();
    let opens_at = config.clock.wall() + ms(1_000);
    line.open(&terms(1, 60_000).prequeue_until(opens_at)).await.unwrap();
    let commitment = line.commitment().await.unwrap().unwrap();
    enter_all(&line, 0..20).await;
    // What has begun as a pre-queue stays one.
    assert_eq!(line.open(&terms(1, 60_000).opens_at(opens_at)).await.unwrap(), LineOpen::TooLate);
    config.clock.advance(ms(1_001));
    enter(&line, "late").await;
    assert!(eventually_async(SOON, async || line.audit().await.unwrap().is_some()).await);
    let audit = line.audit().await.unwrap().unwrap();
    assert!(audit.verify(Some(&commitment)).is_ok());
    let (number, place) = audit.find(&Name::new("user", "user-4").unwrap()).unwrap();
    assert_eq!((number, audit.verify(None).unwrap()[usize::try_from(place).unwrap()]), (4, 4));
    assert_eq!(audit.find(&Name::new("user", "late").unwrap()), None);

    type Tampering = fn(&mut Audit);
    let tampered: [(Tampering, Refuted); 6] = [
        (|audit| audit.commitment.0[0] ^= 1, Refuted::OtherCommitment),
        (|audit| audit.secret.0[31] ^= 1, Refuted::Secret),
        (|audit| audit.arrivals.swap(0, 1), Refuted::Arrivals),
        (|audit| audit.arrivals.truncate(19), Refuted::Arrivals),
        (|audit| audit.arrivals_hash.0[0] ^= 1, Refuted::Arrivals),
        (|audit| audit.seed.0[5] ^= 1, Refuted::Seed),
    ];
    for (tamper, expected) in tampered {
        let mut audit = audit.clone();
        tamper(&mut audit);
        assert_eq!(audit.verify(Some(&commitment)), Err(expected));
    }
}

/// Whoever serves the line dies at its first call, at its second, and so on: before the call, or after it and before its answer.
/// Somebody else goes on, to the order that was committed to.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_draws_and_serves_the_line_may_die_at_every_step() {
    const PEOPLE: u32 = 6;
    // Looking, the arrivals, the draw, looking again, and some ticks.
    for (step, how) in (0..12).flat_map(|step| [(step, Break::Refuse), (step, Break::LoseAnswer)]) {
        let clock = Clock::system();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        let mortal = Arc::new(BreakableStore::new(Arc::clone(&store)));
        let mut config = Config::default();
        config.line_tick = ms(5);
        let dying = Gate::on_with(Arc::clone(&mortal) as Arc<dyn Store>, &config).line("concert").unwrap();
        let opens_at = clock.wall() + ms(50);
        let terms = terms(1, 10).max_active(1).unwrap().grace(None).unwrap().prequeue_until(opens_at);
        dying.open(&terms).await.unwrap();
        let commitment = dying.commitment().await.unwrap().unwrap();
        let tickets = enter_all(&dying, 0..PEOPLE).await;
        // Somebody watches there, so it looks at every tick.
        let watched = tickets[0].clone();
        let watching = tokio::spawn(async move { watched.admitted().await });
        mortal.spare_next(step);
        mortal.break_all(how);
        let seen = mortal.calls() + step as u64;
        let has_died = async || mortal.calls() > seen && clock.wall() > opens_at;
        assert!(eventually_async(SOON, has_died).await, "{step} {how:?}: nobody serves the line");
        watching.abort();

        let heir = Gate::on_with(store, &config).line("concert").unwrap();
        let admitted = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = JoinSet::new();
        for ticket in tickets {
            let (ticket, admitted) = (heir.ticket(*ticket.id()), Arc::clone(&admitted));
            waiting.spawn(async move {
                ticket.admitted().await.unwrap().unwrap();
                admitted.lock().unwrap().push(ticket.id().number());
                ticket.finish().await.unwrap();
            });
        }
        assert!(timeout(SOON, waiting.join_all()).await.is_ok(), "{step} {how:?}: somebody is lost");
        let order = heir.audit().await.unwrap().unwrap().verify(Some(&commitment)).unwrap();
        assert_eq!(*admitted.lock().unwrap(), order, "{step} {how:?}");
        assert_eq!(status(&heir).await.admitted, u64::from(PEOPLE), "{step} {how:?}");
    }
}
