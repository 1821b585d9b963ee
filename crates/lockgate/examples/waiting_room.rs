//! A waiting room before a shop that can serve a hundred people every 200 ms: half of ten thousand people come early and are
//! drawn, the others stand behind them. Everybody who is let in gets a pass and buys with it. At the end the order is verified.
//!
//! ```sh
//! cargo run --features pass --example waiting_room
//! cargo run --features pass --example waiting_room redis://127.0.0.1/
//! ```

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::key::Name;
use lockgate::line::draw::Hash256;
use lockgate::line::pass::{PassKeys, PassVerifier};
use lockgate::line::{Entry, Line, LineTerms, Ticket, Whereabouts};
use lockgate::stock::{Coupon, Issue, Terms};
use tokio::task::JoinSet;

const PEOPLE: usize = 10_000;
const EARLY: usize = 5_000;
const BATCH: u32 = 100;
const EVERY: Duration = Duration::from_millis(200);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let gate = Gate::open(&url).await?;
    let line = gate.line(format!("concert-{}", std::process::id()))?;
    let opens_at = Clock::system().wall() + Duration::from_millis(1_500);
    line.open(&LineTerms::new(BATCH, EVERY)?.prequeue_until(opens_at)).await?;
    // Published before anybody comes: from now on we are bound to the order that will be drawn.
    let commitment = line.commitment().await?.ok_or("there is no pre-queue")?;
    println!("commitment: {commitment}");

    // Nobody buys without having stood in line.
    let seat = gate.coupon(format!("seat-{}", std::process::id()))?;
    seat.open(&Terms::new(PEOPLE as u64)?.demanding_pass_of(line.name().clone())).await?;
    assert_eq!(seat.issue("mallory").await?, Issue::PassRequired);

    let shop =
        Arc::new(Shop { line: line.clone(), seat, keys: PassKeys::generate(), came_in: Mutex::default() });
    let mut crowd = JoinSet::new();
    let clock = Clock::system();
    for person in 0..PEOPLE {
        if person == EARLY {
            while clock.wall() < opens_at {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let ticket = enter(&line, person).await?;
        crowd.spawn(Arc::clone(&shop).visit(ticket));
    }
    show_progress(&line, PEOPLE as u64).await?;
    while let Some(visited) = crowd.join_next().await {
        visited??;
    }
    verify(&line, &commitment, &shop.came_in()).await?;
    gate.shutdown().await;
    Ok(())
}

async fn enter(line: &Line, person: usize) -> Result<Ticket, Failure> {
    match line.enter(format!("person-{person}")).await? {
        Entry::In { ticket, .. } => Ok(ticket),
        denied => Err(format!("person {person} was not let in: {denied:?}").into()),
    }
}

async fn show_progress(line: &Line, people: u64) -> Result<(), Failure> {
    loop {
        let status = line.status().await?.ok_or("the line is gone")?;
        println!("{:>6} waiting, {:>6} admitted", status.crowd.waiting, status.admitted);
        // Nobody has left and everybody is there: all places up to the head are admitted, and no other.
        assert_eq!(status.admitted, status.head);
        if status.admitted == people {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

struct Shop {
    line: Line,
    seat: Coupon,
    keys: PassKeys,
    /// By their numbers of arrival, and where the head of the line was then.
    came_in: Mutex<Vec<CameIn>>,
}

#[derive(Clone, Copy)]
struct CameIn {
    number: u64,
    head: u64,
}

impl Shop {
    async fn visit(self: Arc<Self>, ticket: Ticket) -> Result<(), Failure> {
        let admission = match ticket.admitted().await? {
            Ok(admission) => admission,
            Err(elsewhere) => return Err(format!("not admitted: {elsewhere:?}").into()),
        };
        let head = self.line.status().await?.ok_or("the line is gone")?.head;
        let came_in = CameIn { number: ticket.id().number(), head };
        self.came_in.lock().unwrap_or_else(PoisonError::into_inner).push(came_in);
        // The gateway needs nothing but the published keys.
        let (pass, now) =
            (self.keys.sign(&admission.claims(Clock::system().wall()))?, Clock::system().wall());
        let pass = PassVerifier::from_jwks(&self.keys.jwks())?.verify(&pass, &admission.line, now)?;
        match self.seat.issue_with_pass(admission.user.as_str(), &pass).await? {
            Issue::Issued { .. } => {}
            denied => return Err(format!("{:?} was denied: {denied:?}", admission.user).into()),
        }
        match ticket.finish().await? {
            Whereabouts::Over(_) => Ok(()),
            elsewhere => Err(format!("could not finish: {elsewhere:?}").into()),
        }
    }

    fn came_in(&self) -> Vec<CameIn> {
        self.came_in.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Everybody came in once, and nobody before the head had come to the place that was drawn for them or that they came to.
async fn verify(line: &Line, commitment: &Hash256, came_in: &[CameIn]) -> Result<(), Failure> {
    let audit = line.audit().await?.ok_or("nothing was drawn")?;
    let mut order = audit.verify(Some(commitment))?;
    let drawn = order.len();
    order.extend(drawn as u64..PEOPLE as u64);
    let mut place_of = vec![0; PEOPLE];
    for (place, number) in (0_u64..).zip(&order) {
        place_of[usize::try_from(*number)?] = place;
    }
    let mut once: Vec<_> = came_in.iter().map(|person| person.number).collect();
    once.sort_unstable();
    assert!(once.into_iter().eq(0..PEOPLE as u64), "somebody came in twice, or not at all");
    for CameIn { number, head } in came_in {
        let place = place_of[usize::try_from(*number)?];
        assert!(place < *head, "number {number} came in at place {place}, and the head was at {head}");
    }
    let alice = Name::new("user", "person-0")?;
    let (number, place) = audit.find(&alice).ok_or("the first one is not in the audit")?;
    println!("{drawn} came early; the first of them (number {number}) was drawn to place {place}");
    println!("{PEOPLE} came in, in the order that was committed to: verified");
    Ok(())
}
