//! A process full of people, who write down all that they see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::line::{Entry, Line, Ticket, Watch, Whereabouts};
use lockgate::testing::history::{
    Enter, Entered, Finish, FinishAnswer, Leave, LeaveAnswer, Look, LookAnswer, Recorder,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::Failure;
use super::super::dice::Dice;
use super::super::worker::{die_with_whoever_started_us, lines_of_stdin};
use super::orders::PeopleOrders;

/// How often somebody who has entered does something else than wait, at each look: once in so many.
const LEAVES_ONCE_IN: u64 = 60;
const VANISHES_ONCE_IN: u64 = 80;

/// Opens a gate, and does what standard input says until it ends.
///
/// # Errors
///
/// When the store cannot be reached, or the history cannot be written.
pub async fn live(orders: PeopleOrders) -> Result<(), Failure> {
    die_with_whoever_started_us()?;
    let clock = Clock::system();
    let mut config = Config::default();
    config.line_tick = Duration::from_millis(100);
    config.redis.response_timeout = Duration::from_millis(200);
    config.redis.call_timeout = Duration::from_millis(600);
    let gate = Gate::open_with(&orders.store, &config).await?;
    let place = Place {
        line: gate.line(&orders.line)?,
        recorder: Recorder::in_folder(&orders.folder, &orders.name, clock.clone())?,
        some_vanish: orders.some_vanish,
        rests: Arc::new(AtomicBool::new(false)),
    };
    let say = |word: &str| println!("{} 0 {word}", clock.monotonic().as_nanos());
    say("ready");
    let mut lines = lines_of_stdin();
    let mut people = JoinSet::new();
    while let Some(line) = lines.recv().await {
        match line.as_str() {
            "work" => {
                for person in 0..orders.people {
                    let name = format!("{}-{}-{person}", orders.name, std::process::id());
                    let dice = Dice::new(orders.seed.wrapping_add(u64::from(person)));
                    people.spawn(Person { name, dice, place: place.clone() }.live());
                }
                say("working");
            }
            "rest" => {
                place.rests.store(true, Ordering::SeqCst);
                while let Some(ended) = people.join_next().await {
                    ended??;
                }
                say("resting");
            }
            other => return Err(format!("there is no command {other:?}").into()),
        }
    }
    Ok(())
}

/// What all people of a process share.
#[derive(Clone)]
struct Place {
    line: Line,
    recorder: Recorder,
    some_vanish: bool,
    rests: Arc<AtomicBool>,
}

/// One after the other, under names that nobody else has.
struct Person {
    name: String,
    dice: Dice,
    place: Place,
}

/// What somebody comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Admitted,
    Gone,
}

impl Person {
    async fn live(mut self) -> Result<(), Failure> {
        for life in 0_u64.. {
            if self.place.rests.load(Ordering::SeqCst) {
                break;
            }
            let user = format!("{}-{life}", self.name);
            sleep(self.dice.millis(1, 40)).await;
            let Some(ticket) = self.enter(&user).await? else { continue };
            let watches = self.dice.below(3) == 0;
            let end =
                if watches { self.watch(&user, &ticket).await? } else { self.look(&user, &ticket).await? };
            if end == End::Admitted {
                self.stay(&user, &ticket).await?;
            }
        }
        Ok(())
    }

    /// Tries again when there was no answer, most of the time.
    async fn enter(&mut self, user: &str) -> Result<Option<Ticket>, Failure> {
        for _ in 0..20 {
            let (line, user) = (self.line(), user.to_owned());
            let pending = self.place.recorder.invoke(Enter { line, user: user.clone() })?;
            match self.place.line.enter(&user).await {
                Ok(Entry::In { ticket, .. }) => {
                    pending.ok(Entered { place: ticket.id().number() })?;
                    return Ok(Some(ticket));
                }
                Ok(other) => return Err(format!("not let in: {other:?}").into()),
                Err(_) => pending.unknown()?,
            }
            if self.dice.below(10) == 0 {
                break;
            }
            sleep(self.dice.millis(20, 80)).await;
        }
        Ok(None)
    }

    fn line(&self) -> String {
        self.place.line.name().as_str().to_owned()
    }

    fn has_had_enough(&mut self, once_in: u64) -> bool {
        self.place.some_vanish && self.dice.below(once_in) == 0
    }

    /// Shows the ticket again and again.
    async fn look(&mut self, user: &str, ticket: &Ticket) -> Result<End, Failure> {
        loop {
            sleep(self.dice.millis(10, 70)).await;
            if self.has_had_enough(VANISHES_ONCE_IN) {
                return Ok(End::Gone);
            }
            if self.dice.below(LEAVES_ONCE_IN) == 0 && self.leave(user, ticket).await? {
                return Ok(End::Gone);
            }
            let pending = self.place.recorder.invoke(Look { line: self.line(), user: user.to_owned() })?;
            match ticket.show().await.map(|whereabouts| answer_of(&whereabouts)) {
                Ok(LookAnswer::Waiting) => pending.ok(LookAnswer::Waiting)?,
                Ok(last) => {
                    pending.ok(last)?;
                    return Ok(if last == LookAnswer::Admitted { End::Admitted } else { End::Gone });
                }
                Err(_) => pending.unknown()?,
            }
        }
    }

    /// Is told; one operation for all of it, because what is told in between may be a moment old.
    async fn watch(&mut self, user: &str, ticket: &Ticket) -> Result<End, Failure> {
        let pending = self.place.recorder.invoke(Look { line: self.line(), user: user.to_owned() })?;
        let mut watch = ticket.watch();
        let patience = if self.has_had_enough(8) { self.dice.millis(10, 500) } else { Duration::MAX };
        let watching = async {
            let first = next_of(&mut watch).await;
            if first == LookAnswer::Waiting {
                pending.queued()?;
            }
            let mut last = first;
            while last == LookAnswer::Waiting {
                last = next_of(&mut watch).await;
            }
            Ok::<_, Failure>(last)
        };
        let Ok(last) = tokio::time::timeout(patience.min(Duration::from_secs(3_600)), watching).await else {
            pending.unknown()?;
            return Ok(End::Gone);
        };
        let last = last?;
        pending.ok(last)?;
        Ok(if last == LookAnswer::Admitted { End::Admitted } else { End::Gone })
    }

    /// Whether it is over: whoever got no answer goes on waiting.
    async fn leave(&self, user: &str, ticket: &Ticket) -> Result<bool, Failure> {
        let pending = self.place.recorder.invoke(Leave { line: self.line(), user: user.to_owned() })?;
        match ticket.leave().await {
            Ok(Whereabouts::Over(lockgate::line::Ending::Left)) => pending.ok(LeaveAnswer::Left)?,
            Ok(_) => pending.ok(LeaveAnswer::NotInLine)?,
            Err(_) => {
                pending.unknown()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Is in for a while, and goes: mostly with a word.
    async fn stay(&mut self, user: &str, ticket: &Ticket) -> Result<(), Failure> {
        sleep(self.dice.millis(5, 80)).await;
        if self.has_had_enough(12) {
            return Ok(());
        }
        if self.dice.below(8) == 0 {
            return self.leave(user, ticket).await.map(|_| ());
        }
        let pending = self.place.recorder.invoke(Finish { line: self.line(), user: user.to_owned() })?;
        match ticket.finish().await {
            Ok(Whereabouts::Over(lockgate::line::Ending::Finished)) => pending.ok(FinishAnswer::Finished)?,
            Ok(_) => pending.ok(FinishAnswer::NotAdmitted)?,
            Err(_) => pending.unknown()?,
        }
        Ok(())
    }
}

fn answer_of(whereabouts: &Whereabouts) -> LookAnswer {
    match whereabouts {
        Whereabouts::Waiting { .. } | Whereabouts::Early { .. } => LookAnswer::Waiting,
        Whereabouts::Admitted(_) => LookAnswer::Admitted,
        _ => LookAnswer::Gone,
    }
}

/// What a watch says next; a store that does not answer is asked again.
async fn next_of(watch: &mut Watch) -> LookAnswer {
    loop {
        match watch.next().await {
            Ok(Some(whereabouts)) => return answer_of(&whereabouts),
            Ok(None) => return LookAnswer::Gone,
            Err(StoreError::InvalidInput(_)) => return LookAnswer::Gone,
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}
