//! Where one run takes place: a Redis that may fail, a line, processes full of people, an auditor, and the judge.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::key::{Keyspace, Kind, Name};
use lockgate::line::{Ending, Line, LineStatus, LineTerms};
use lockgate::store::{LineTick, Tick};
use lockgate::testing::history::{
    Bounds, ClockSet, Fate, History, LineOpened, LineStands, ListPlaces, OpenLine, PlaceRow, ReadLine,
    Recorder, SetClock, check,
};
use lockgate::testing::proxy::FaultProxy;
use lockgate::testing::services::{Persistence, Redis};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::dice::Dice;
use super::super::hand::{Hand, now};
use super::super::stop::Stop;
use super::super::{Failure, Site};
use super::orders::PeopleOrders;
use super::{LineOutcome, LineScenario};

const LINE: &str = "concert";

/// How long the auditor waits between two looks: a place is known to have been passed within about this time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(3);

/// How soon after the last fault the line has admitted somebody again: whoever had no answer asks again after less than a second.
const BACK_WITHIN: Duration = Duration::from_secs(4);

/// How soon everybody is through who was in the line at the end.
const THROUGH_WITHIN: Duration = Duration::from_secs(20);

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

pub(super) struct Hall {
    pub(super) dice: Dice,
    pub(super) redis: Redis,
    pub(super) grace: Duration,
    /// Whether people vanish, for the processes that are started next.
    pub(super) some_vanish: bool,
    /// Whether nobody may be called absent at all.
    pub(super) nobody_is_absent: bool,
    /// Whether the processes were running and connected all the time.
    pub(super) undisturbed: bool,
    auditor: Auditor,
    recorder: Recorder,
    line: Line,
    gate: Gate,
    folder: TempDir,
    program: PathBuf,
    allowance: Duration,
    faults: u64,
    broken: Vec<String>,
}

/// A process full of people, and the network between it and the store.
pub(super) struct Company {
    pub(super) hand: Hand,
    pub(super) network: FaultProxy,
}

impl Hall {
    pub(super) async fn open(site: &Site, seed: u64) -> Result<Self, Failure> {
        let mut dice = Dice::new(seed);
        let redis = Redis::start(Persistence::AofAlways)?;
        let gate = Gate::open_with(&redis.url(), &impatient()).await?;
        let line = gate.line(LINE)?;
        let folder = tempfile::Builder::new().prefix("lockgate-line-faults-").tempdir()?;
        let recorder = Recorder::in_folder(folder.path(), "hall", Clock::system())?;
        let grace = dice.millis(1_000, 1_500);
        open_line(&line, &recorder, &mut dice, grace).await?;
        // A gate of its own, so that it lets nothing go on but its looks.
        let auditor = Auditor::begin(&redis.url(), &recorder).await?;
        Ok(Self {
            dice,
            redis,
            grace,
            some_vanish: true,
            nobody_is_absent: false,
            undisturbed: false,
            auditor,
            recorder,
            line,
            gate,
            folder,
            program: site.program.clone(),
            allowance: site.allowance,
            faults: 0,
            broken: Vec::new(),
        })
    }

    /// A process full of people, who begin to come.
    pub(super) async fn company(&mut self, name: &str) -> Result<Company, Stop> {
        let network = FaultProxy::start(SocketAddr::from(([127, 0, 0, 1], self.redis.port()))).await?;
        let orders = PeopleOrders {
            name: name.to_owned(),
            store: format!("redis://{}", network.addr()),
            folder: self.folder.path().to_owned(),
            line: LINE.to_owned(),
            people: 10,
            some_vanish: self.some_vanish,
            seed: self.dice.below(u64::MAX),
        };
        let mut hand = Hand::start_as("people", &self.program, name, &orders)?;
        hand.says(0, &["ready"]).await?;
        hand.tell("work")?;
        hand.says(0, &["working"]).await?;
        Ok(Company { hand, network })
    }

    pub(super) async fn companies(&mut self, count: usize) -> Result<Vec<Company>, Stop> {
        let mut companies = Vec::new();
        for number in 0..count {
            companies.push(self.company(&format!("company-{number}")).await?);
        }
        self.goes_on("the beginning").await?;
        Ok(companies)
    }

    pub(super) fn count_fault(&mut self) {
        self.faults += 1;
    }

    async fn status(&self) -> Option<LineStatus> {
        self.line.status().await.ok().flatten()
    }

    /// Somebody is admitted again in time.
    pub(super) async fn goes_on(&mut self, after: &str) -> Result<(), Stop> {
        let (began, bound) = (now(), BACK_WITHIN + self.allowance);
        let mut before = None;
        while Duration::from_nanos(now() - began) < bound {
            if let Some(LineStatus { admitted, .. }) = self.status().await
                && *before.get_or_insert(admitted) < admitted
            {
                return Ok(());
            }
            sleep(Duration::from_millis(5)).await;
        }
        Err(Stop::broken(format!("nobody was admitted for {bound:?} after {after}")))
    }

    /// Nobody looks at the line from here, until the end of what is done: a look lets its time go on.
    pub(super) fn stop_looking(&self) {
        self.auditor.is_blind.store(true, Ordering::SeqCst);
    }

    pub(super) fn look_again(&self) {
        self.auditor.is_blind.store(false, Ordering::SeqCst);
    }

    /// Moves the line's note of the server's time at the last call, so that the next call finds the clock so far ahead or behind.
    pub(super) fn set_clock(&mut self, forward: bool) -> Result<(), Stop> {
        const MOVE: &str = "local then_us = struct.unpack('>d', redis.call('GETRANGE', KEYS[1], 8, 15))
            redis.call('SETRANGE', KEYS[1], 8, struct.pack('>d', then_us + ARGV[1]))";
        let key = Keyspace::new("lg", 1)?.key(Kind::Line, &Name::new("line", LINE)?);
        let hour_us = i64::try_from(HOUR.as_micros())?;
        let by = if forward { -hour_us } else { hour_us };
        let pending = self.recorder.invoke(SetClock { line: LINE.to_owned() })?;
        self.redis.command(&["EVAL", MOVE, "1", &key, &by.to_string()])?;
        pending.ok(ClockSet)?;
        self.count_fault();
        Ok(())
    }

    /// Everybody comes to an end, and what became of them is written down.
    pub(super) async fn all_get_through(&mut self, companies: &mut [Company]) -> Result<(), Stop> {
        for company in companies.iter_mut() {
            company.network.heal();
            company.hand.tell("rest")?;
        }
        for company in companies.iter_mut() {
            company.hand.says(0, &["resting"]).await?;
        }
        let (began, bound) = (now(), THROUGH_WITHIN + self.allowance);
        loop {
            if self.status().await.is_some_and(|status| status.crowd.waiting == 0) {
                break;
            }
            if Duration::from_nanos(now() - began) > bound {
                let status = self.status().await.map(|status| (status.head, status.arrived, status.crowd));
                return Err(Stop::broken(format!("not everybody was through after {bound:?}: {status:?}")));
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.list().await
    }

    async fn list(&self) -> Result<(), Stop> {
        let pending = self.recorder.invoke(ListPlaces { line: LINE.to_owned() })?;
        let edition = self.status().await.map_or(0, |status| status.edition);
        let name = Name::new("line", LINE)?;
        let told = self.gate.store().line_tick(&name, edition, &tell_all()).await?;
        for row in rows_of(told.ok_or_else(|| Stop::broken("the line is gone"))?) {
            pending.row(row)?;
        }
        Ok(pending.complete()?)
    }

    /// Reads what everybody wrote down, also the dead, and judges it.
    pub(super) async fn judge(
        mut self,
        scenario: LineScenario,
        seed: u64,
        ended: Result<(), Stop>,
    ) -> Result<LineOutcome, Failure> {
        match ended {
            Ok(()) => {}
            Err(Stop::Broken(what)) => self.broken.push(what),
            Err(Stop::Trouble(why)) => return Err(why),
        }
        let absent = self.status().await.map_or(0, |status| status.abandoned);
        if self.nobody_is_absent && absent > 0 {
            self.broken.push(format!("{absent} were passed over, and everybody was there"));
        }
        self.auditor.end().await?;
        self.gate.shutdown().await;
        let bounds = Bounds { watchers_are_seen: self.undisturbed, ..Bounds::default() };
        let verdict = check(&History::read_folder(self.folder.path())?, &bounds);
        self.broken.extend(verdict.violations.iter().map(ToString::to_string));
        if verdict.judged.timed_admissions == 0 || verdict.judged.admissions == 0 {
            self.broken.push("nobody was seen to be admitted, so nothing was judged".to_owned());
        }
        if !self.broken.is_empty() {
            let kept = self.folder.keep();
            self.broken.push(format!("(what the processes wrote down is in {})", kept.display()));
        }
        Ok(LineOutcome {
            scenario: scenario.name(),
            seed,
            faults: self.faults,
            operations: verdict.judged.operations,
            places: verdict.judged.listed_places,
            admissions: verdict.judged.timed_admissions,
            violations: self.broken,
        })
    }
}

/// Asks what became of everybody.
pub(super) fn tell_all() -> Tick {
    Tick { seen: Vec::new(), known_head: Some(0), known_leaves: Some(u64::MAX) }
}

/// What became of everybody: behind the head as it wrote it down, and ahead of it of those who have left.
pub(super) fn rows_of(told: LineTick) -> Vec<PlaceRow> {
    let passed = (told.passed_from..).zip(told.passed).map(|(place, ending)| {
        let fate = match ending {
            None => Fate::Admitted,
            Some(Ending::Left) => Fate::Left,
            Some(_) => Fate::Skipped,
        };
        PlaceRow { place, fate }
    });
    let bits = told.gone.unwrap_or_default();
    let bits = bits.iter().flat_map(|byte| (0..8).map(move |bit| byte & (0x80 >> bit) != 0));
    let left = (told.head / 8 * 8..told.tail).zip(bits).filter(|(_, has_left)| *has_left);
    passed.chain(left.map(|(place, _)| PlaceRow { place, fate: Fate::Left })).collect()
}

/// Gives up soon, so that an outage is over for it when it is over.
fn impatient() -> Config {
    let mut config = Config::default();
    config.redis.response_timeout = Duration::from_millis(200);
    config.redis.call_timeout = Duration::from_millis(400);
    config
}

async fn open_line(
    line: &Line,
    recorder: &Recorder,
    dice: &mut Dice,
    grace: Duration,
) -> Result<(), Failure> {
    let (batch, every_ms, max_active) = (2 + dice.below(3), 60 + dice.below(80), 5 + dice.below(6));
    let terms = LineTerms::new(u32::try_from(batch)?, Duration::from_millis(every_ms))?
        .max_active(u32::try_from(max_active)?)?
        .grace(Some(grace))?
        .pass_ttl(grace)?;
    let pending = recorder.invoke(OpenLine {
        line: LINE.to_owned(),
        batch,
        every_ms,
        max_active: Some(max_active),
        grace_ms: Some(u64::try_from(grace.as_millis())?),
        pass_ttl_ms: u64::try_from(grace.as_millis())?,
    })?;
    line.open(&terms).await?;
    Ok(pending.ok(LineOpened)?)
}

/// Looks at the line all the time, and lets nothing go on.
struct Auditor {
    ends: Arc<AtomicBool>,
    is_blind: Arc<AtomicBool>,
    looking: JoinHandle<Result<(), Failure>>,
}

impl Auditor {
    async fn begin(url: &str, recorder: &Recorder) -> Result<Self, Failure> {
        let (ends, is_blind) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let gate = Gate::open_with(url, &impatient()).await?;
        let look = look_until(Arc::clone(&ends), Arc::clone(&is_blind), gate, recorder.clone());
        Ok(Self { ends, is_blind, looking: tokio::spawn(look) })
    }

    async fn end(&mut self) -> Result<(), Failure> {
        self.ends.store(true, Ordering::SeqCst);
        (&mut self.looking).await?
    }
}

async fn look_until(
    ends: Arc<AtomicBool>,
    is_blind: Arc<AtomicBool>,
    gate: Gate,
    recorder: Recorder,
) -> Result<(), Failure> {
    let line = gate.line(LINE)?;
    while !ends.load(Ordering::SeqCst) {
        sleep(BETWEEN_LOOKS).await;
        if is_blind.load(Ordering::SeqCst) {
            continue;
        }
        let pending = recorder.invoke(ReadLine { line: LINE.to_owned() })?;
        match line.status().await {
            Ok(Some(LineStatus { head, admitted, crowd, .. })) => {
                pending.ok(LineStands { head, admitted, active: crowd.active })?;
            }
            Ok(None) => return Err("the line is gone".into()),
            Err(_) => pending.unknown()?,
        }
    }
    Ok(())
}
