//! The embedded store, whose clock is set by an hour, forward and back, while people come, look and go.
//!
//! Everything happens in one task and in the time of a fake clock, so that a seed repeats a run to the letter.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::line::{Ending, LineTerms};
use lockgate::store::memory::MemoryStore;
use lockgate::store::{Enter as Entering, EnterWish, Standing, Store, Tick, TicketAt};
use lockgate::testing::history::{
    Bounds, ClockSet, Enter, Entered, Finish, FinishAnswer, LineOpened, LineStands, ListPlaces, Look,
    LookAnswer, OpenLine, ReadLine, Recorder, SetClock, check,
};

use super::super::Failure;
use super::super::dice::Dice;
use super::hall::{HOUR, rows_of, tell_all};
use super::{LineOutcome, LineScenario};

const LINE: &str = "concert";
const STEP: Duration = Duration::from_millis(10);
const STEPS: u64 = 3_000;
const BATCH: u32 = 3;
const EVERY: Duration = Duration::from_millis(100);
const MAX_ACTIVE: u32 = 8;
const GRACE: Duration = Duration::from_millis(1_000);
const PEOPLE: u64 = 40;

/// Longer than this nobody waits for the next admission: a batch, and a step of the clock that was set back.
const STALLED_AFTER: u64 = 50;

struct Run {
    store: Arc<dyn Store>,
    clock: Clock,
    recorder: Recorder,
    dice: Dice,
    line: Name,
    edition: u64,
    inside: Vec<Person>,
    come: u64,
    /// Steps since somebody was admitted.
    still: u64,
    last_admitted: u64,
    faults: u64,
    broken: Vec<String>,
}

struct Person {
    user: Name,
    number: u64,
    is_admitted: bool,
}

pub(super) async fn clock_set(seed: u64) -> Result<LineOutcome, Failure> {
    let mut run = Run::begin(seed).await?;
    for step in 0..STEPS {
        run.step(step).await?;
    }
    run.end(seed).await
}

impl Run {
    async fn begin(seed: u64) -> Result<Self, Failure> {
        let clock = Clock::fake();
        let mut config = Config::default();
        config.clock = clock.clone();
        let gate = Gate::on_with(Arc::new(MemoryStore::with(&config)), &config);
        let recorder = Recorder::in_memory("embedded", clock.clone());
        let line = gate.line(LINE)?;
        let terms =
            LineTerms::new(BATCH, EVERY)?.max_active(MAX_ACTIVE)?.grace(Some(GRACE))?.pass_ttl(GRACE)?;
        let pending = recorder.invoke(OpenLine {
            line: LINE.to_owned(),
            batch: BATCH.into(),
            every_ms: u64::try_from(EVERY.as_millis())?,
            max_active: Some(MAX_ACTIVE.into()),
            grace_ms: Some(u64::try_from(GRACE.as_millis())?),
            pass_ttl_ms: u64::try_from(GRACE.as_millis())?,
        })?;
        line.open(&terms).await?;
        pending.ok(LineOpened)?;
        let edition = line.status().await?.ok_or("the line is not there")?.edition;
        // What goes on in the background would go by real time; everything here is asked for.
        gate.shutdown().await;
        Ok(Self {
            store: Arc::clone(gate.store()),
            clock,
            recorder,
            dice: Dice::new(seed),
            line: line.name().clone(),
            edition,
            inside: Vec::new(),
            come: 0,
            still: 0,
            last_admitted: 0,
            faults: 0,
            broken: Vec::new(),
        })
    }

    /// Ten milliseconds of everybody's life.
    async fn step(&mut self, step: u64) -> Result<(), Failure> {
        self.clock.advance(STEP);
        if step % 300 == 299 {
            self.set_clock()?;
        }
        if (self.inside.len() as u64) < PEOPLE {
            self.enter().await?;
        }
        for _ in 0..self.inside.len() / 4 {
            self.somebody_acts().await?;
        }
        self.store.line_tick(&self.line, self.edition, &Tick::default()).await?;
        self.look_at_the_line().await
    }

    fn set_clock(&mut self) -> Result<(), Failure> {
        let pending = self.recorder.invoke(SetClock { line: LINE.to_owned() })?;
        match self.dice.coin() {
            true => self.clock.set_forward(HOUR),
            false => self.clock.set_back(HOUR),
        }
        self.faults += 1;
        Ok(pending.ok(ClockSet)?)
    }

    async fn enter(&mut self) -> Result<(), Failure> {
        let user = Name::new("user", format!("user-{}", self.come))?;
        self.come += 1;
        let name = user.as_str().to_owned();
        let pending = self.recorder.invoke(Enter { line: LINE.to_owned(), user: name })?;
        let wishes = [EnterWish { user: user.clone(), known: None }];
        let told = self.store.line_enter(&self.line, self.edition, &wishes).await?;
        match told.map(|told| told.each).as_deref() {
            Some([Entering::In { number, .. }]) => {
                pending.ok(Entered { place: *number })?;
                self.inside.push(Person { user, number: *number, is_admitted: false });
                Ok(())
            }
            other => Err(format!("not let in: {other:?}").into()),
        }
    }

    /// Shows the ticket, or finishes; somebody who is over is forgotten.
    async fn somebody_acts(&mut self) -> Result<(), Failure> {
        if self.inside.is_empty() {
            return Ok(());
        }
        let place = usize::try_from(self.dice.below(self.inside.len() as u64))?;
        let person = self.inside.swap_remove(place);
        let at = TicketAt { number: person.number, place: person.number };
        let user = person.user.as_str().to_owned();
        if person.is_admitted {
            let pending = self.recorder.invoke(Finish { line: LINE.to_owned(), user })?;
            let finished = self.store.ticket_finish(&self.line, self.edition, at).await?;
            let is_finished = finished == Some(Standing::Over(Ending::Finished));
            pending.ok(if is_finished { FinishAnswer::Finished } else { FinishAnswer::NotAdmitted })?;
            return Ok(());
        }
        let pending = self.recorder.invoke(Look { line: LINE.to_owned(), user })?;
        let told = self.store.ticket_show(&self.line, self.edition, &[at]).await?;
        match told.map(|told| told.each).as_deref() {
            Some([Standing::Waiting { .. }]) => {
                pending.ok(LookAnswer::Waiting)?;
                self.inside.push(person);
            }
            Some([Standing::Admitted { .. }]) => {
                pending.ok(LookAnswer::Admitted)?;
                self.inside.push(Person { is_admitted: true, ..person });
            }
            _ => pending.ok(LookAnswer::Gone)?,
        }
        Ok(())
    }

    async fn look_at_the_line(&mut self) -> Result<(), Failure> {
        let pending = self.recorder.invoke(ReadLine { line: LINE.to_owned() })?;
        let status = self.store.line_read(&self.line).await?.ok_or("the line is gone")?;
        let (head, admitted, active) = (status.head, status.admitted, status.crowd.active);
        pending.ok(LineStands { head, admitted, active })?;
        self.still =
            if admitted > self.last_admitted || status.crowd.waiting == 0 { 0 } else { self.still + 1 };
        self.last_admitted = admitted;
        if self.still == STALLED_AFTER {
            let now = self.clock.monotonic();
            self.broken.push(format!("nobody was admitted for {:?}, at {now:?}", STEP * 50));
        }
        Ok(())
    }

    /// Everybody gets through, and what became of them is judged.
    async fn end(mut self, seed: u64) -> Result<LineOutcome, Failure> {
        for _ in 0..STEPS {
            self.clock.advance(STEP);
            for _ in 0..self.inside.len() {
                self.somebody_acts().await?;
            }
            self.store.line_tick(&self.line, self.edition, &Tick::default()).await?;
            self.look_at_the_line().await?;
            if self.inside.is_empty() {
                break;
            }
        }
        self.list().await?;
        let status = self.store.line_read(&self.line).await?.ok_or("the line is gone")?;
        if status.abandoned > 0 {
            self.broken.push(format!("{} were passed over, and everybody was there", status.abandoned));
        }
        let verdict = check(&self.recorder.history(), &Bounds::default());
        self.broken.extend(verdict.violations.iter().map(ToString::to_string));
        Ok(LineOutcome {
            scenario: LineScenario::EmbeddedClockSet.name(),
            seed,
            faults: self.faults,
            operations: verdict.judged.operations,
            places: verdict.judged.listed_places,
            admissions: verdict.judged.timed_admissions,
            violations: self.broken,
        })
    }

    async fn list(&mut self) -> Result<(), Failure> {
        let pending = self.recorder.invoke(ListPlaces { line: LINE.to_owned() })?;
        let told = self.store.line_tick(&self.line, self.edition, &tell_all()).await?;
        for row in rows_of(told.ok_or("the line is gone")?) {
            pending.row(row)?;
        }
        Ok(pending.complete()?)
    }
}
