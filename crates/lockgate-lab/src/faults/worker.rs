//! A process that works a lock as it is told, and writes down all that it sees: see [`orders`](super::orders).
//!
//! **Promise:** what it asked is in its file before it is sent, so a worker that is killed is still a witness. It dies
//! with whoever started it.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::testing::history::Recorder;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Failure;
use super::dice::Dice;
use super::hold::{Hold, Tools};
use super::orders::{Command, Orders};
use super::recipe::{Recipe, Want};
use super::register::Register;
use super::shares::Shares;

/// How often a task of a crowd stops waiting after a moment.
const GIVES_UP_ONCE_IN: u64 = 8;

/// How often a holder asks its guard for how long it trusts the lock.
const BELIEVE_EVERY: Duration = Duration::from_millis(10);

/// Opens a gate, and does what standard input says until it ends.
///
/// # Errors
///
/// When a store cannot be reached, or the history cannot be written.
pub async fn work(orders: Orders) -> Result<(), Failure> {
    die_with_whoever_started_us()?;
    let clock = Clock::system();
    let gate = Gate::open_with(&orders.store, &orders.config()).await?;
    let tools = Tools {
        recipe: Recipe::new(gate, &orders),
        wants: orders.wants,
        gives_up: orders.seed.is_multiple_of(2),
        register: Register::at(&orders.register).await?,
        recorder: Recorder::in_folder(&orders.folder, &orders.name, clock.clone())?,
        shares: Shares::in_folder(&orders.folder, &orders.name, &orders.lock, clock.clone())?,
        clock,
    };
    let mut desks = vec![tools.clone()];
    for number in 1..orders.toil.locks {
        let lock = format!("{}-{number}", orders.lock);
        desks.push(Tools { recipe: tools.recipe.for_lock(lock), ..tools.clone() });
    }
    tools.say(0, "ready", None);
    let (slots, longest_hold) = (HashMap::new(), orders.toil.longest_hold);
    let worker = Worker { tools, desks, longest_hold, seed: orders.seed, slots, crowd: None };
    worker.obey(lines_of_stdin()).await
}

#[cfg(target_os = "linux")]
pub(super) fn die_with_whoever_started_us() -> std::io::Result<()> {
    // The end of standard input tells a running worker; this also ends one that is stopped.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn die_with_whoever_started_us() -> std::io::Result<()> {
    Ok(())
}

pub(super) fn lines_of_stdin() -> UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Tools {
    fn want_of(&self, slot: u32) -> Want {
        let place = usize::try_from(slot.saturating_sub(1)).unwrap_or(usize::MAX);
        self.wants.get(place).or(self.wants.last()).cloned().unwrap_or(Want::Mutex)
    }

    fn say(&self, slot: u32, word: &str, number: Option<u64>) {
        let at = self.clock.monotonic().as_nanos();
        match number {
            Some(number) => println!("{at} {slot} {word} {number}"),
            None => println!("{at} {slot} {word}"),
        }
    }
}

struct Worker {
    tools: Tools,
    /// One for each lock.
    desks: Vec<Tools>,
    longest_hold: Option<Duration>,
    seed: u64,
    slots: HashMap<u32, UnboundedSender<Command>>,
    crowd: Option<Crowd>,
}

impl Worker {
    async fn obey(mut self, mut lines: UnboundedReceiver<String>) -> Result<(), Failure> {
        while let Some(line) = lines.recv().await {
            let (word, number) = line.split_once(' ').unwrap_or((&line, "0"));
            let number: u32 = number.parse()?;
            match (word, self.crowd.as_ref()) {
                ("work", None) => self.crowd = Some(self.begin_to_work(number)),
                ("grants", Some(crowd)) => self.tools.say(0, "grants", Some(crowd.grants())),
                ("rest", Some(_)) => {
                    if let Some(crowd) = self.crowd.take() {
                        let grants = crowd.rest().await?;
                        self.tools.say(0, "resting", Some(grants));
                    }
                }
                _ => self.pass_on(number, word.parse()?),
            }
        }
        Ok(())
    }

    fn begin_to_work(&self, tasks: u32) -> Crowd {
        let crowd = Crowd::begin(&self.desks, self.longest_hold, self.seed, tasks);
        self.tools.say(0, "working", None);
        crowd
    }

    fn pass_on(&mut self, slot: u32, command: Command) {
        let tools = &self.tools;
        let begin = || {
            let (sender, commands) = mpsc::unbounded_channel();
            let slot = Slot { number: slot, tools: tools.clone(), commands };
            tokio::spawn(async move {
                if let Err(why) = slot.serve().await {
                    // A witness that cannot write must not go on.
                    eprintln!("a worker cannot go on: {why}");
                    std::process::exit(1);
                }
            });
            sender
        };
        // Fails only when the slot's task has ended, and then the process ends too.
        let _ = self.slots.entry(slot).or_insert_with(begin).send(command);
    }
}

/// One task with one lock in its hand.
struct Slot {
    number: u32,
    tools: Tools,
    commands: UnboundedReceiver<Command>,
}

impl Slot {
    async fn serve(mut self) -> Result<(), Failure> {
        while let Some(command) = self.commands.recv().await {
            match command {
                Command::Lock => {
                    if let Some(hold) = self.lock().await? {
                        self.keep(hold).await?;
                    }
                }
                _ => self.say("idle", None),
            }
        }
        Ok(())
    }

    fn say(&self, word: &str, number: Option<u64>) {
        self.tools.say(self.number, word, number);
    }

    /// Waits for the lock; nothing when it was not given, or nobody waits any more.
    async fn lock(&mut self) -> Result<Option<Hold>, Failure> {
        let want = self.tools.want_of(self.number);
        let asked = self.tools.asks(&want)?;
        let recipe = self.tools.recipe.clone();
        let held = tokio::select! {
            held = recipe.take(&want) => held,
            () = cancelled(&mut self.commands) => {
                self.say("cancelled", None);
                return Ok(None);
            }
        };
        let Ok(held) = held else {
            asked.unknown()?;
            self.say("failed", None);
            return Ok(None);
        };
        let hold = self.tools.has_it(asked, held)?;
        self.say("locked", Some(hold.fence()));
        Ok(Some(hold))
    }

    /// Holds it, and says what is asked, until it is given back.
    async fn keep(&mut self, hold: Hold) -> Result<(), Failure> {
        let mut is_lost = false;
        loop {
            let command = tokio::select! {
                biased;
                () = hold.lost(), if !is_lost => {
                    is_lost = true;
                    self.say("lost", None);
                    hold.believe()?;
                    continue;
                }
                command = self.commands.recv() => command,
                () = sleep(BELIEVE_EVERY), if !is_lost => {
                    hold.believe()?;
                    continue;
                }
            };
            match command {
                Some(Command::Check) => self.say(if hold.believe()? { "held" } else { "lost" }, None),
                Some(Command::Write) => {
                    self.say(if hold.write().await? { "accepted" } else { "refused" }, None);
                }
                Some(Command::Release) => {
                    self.say(hold.release().await?, None);
                    return Ok(());
                }
                Some(Command::Drop) => {
                    hold.let_go()?;
                    self.say("dropped", None);
                    return Ok(());
                }
                Some(Command::Lock | Command::Cancel) => self.say("busy", None),
                None => return Ok(()),
            }
        }
    }
}

/// Returns when the wait is to be dropped. Anything else that is said meanwhile is not heard.
async fn cancelled(commands: &mut UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        if command == Command::Cancel {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Tasks that lock, write and release until they are told to rest.
struct Crowd {
    tasks: JoinSet<Result<(), Failure>>,
    is_over: Arc<AtomicBool>,
    grants: Arc<AtomicU64>,
}

impl Crowd {
    fn begin(desks: &[Tools], longest_hold: Option<Duration>, seed: u64, tasks: u32) -> Self {
        let mut crowd = Self { tasks: JoinSet::new(), is_over: Arc::default(), grants: Arc::default() };
        for task in 0..tasks {
            let toiler = Toiler {
                desks: desks.to_vec(),
                longest_hold,
                dice: Dice::new(seed.wrapping_add(u64::from(task) << 32)),
                is_over: Arc::clone(&crowd.is_over),
                grants: Arc::clone(&crowd.grants),
            };
            crowd.tasks.spawn(toiler.toil());
        }
        crowd
    }

    fn grants(&self) -> u64 {
        self.grants.load(Ordering::Relaxed)
    }

    async fn rest(mut self) -> Result<u64, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(self.grants())
    }
}

struct Toiler {
    desks: Vec<Tools>,
    longest_hold: Option<Duration>,
    dice: Dice,
    is_over: Arc<AtomicBool>,
    grants: Arc<AtomicU64>,
}

impl Toiler {
    async fn toil(mut self) -> Result<(), Failure> {
        while !self.is_over.load(Ordering::Relaxed) {
            let tools = self.dice.choose(&self.desks).clone();
            let want = self.dice.choose(&tools.wants).clone();
            let Some(hold) = wait_for(&tools, &want, &mut self.dice).await? else { continue };
            self.grants.fetch_add(1, Ordering::Relaxed);
            if self.dice.coin() {
                hold.write().await?;
            }
            self.keep(&hold).await?;
            hold.believe()?;
            let Some(hold) = perhaps_go_on_reading(hold, &want, &mut self.dice).await? else { continue };
            if self.dice.coin() {
                hold.release().await?;
            } else {
                hold.let_go()?;
            }
            sleep(self.dice.millis(0, 2)).await;
        }
        Ok(())
    }

    /// Holds it for a while. Who holds it for long writes at the end too, also when it was told that it has lost it: that is
    /// what a careless holder does, and what the fence is there for.
    async fn keep(&mut self, hold: &Hold) -> Result<(), Failure> {
        let longest = self.longest_hold.filter(|_| self.dice.coin());
        let Some(longest) = longest else {
            sleep(self.dice.millis(0, 3)).await;
            return Ok(());
        };
        tokio::select! {
            () = hold.lost() => {
                hold.believe()?;
            }
            () = sleep(longest.mul_f64(self.dice.fraction())) => {}
        }
        hold.write().await?;
        Ok(())
    }
}

/// Nothing when it was not given, or when it gave up waiting. In some processes nobody gives up, because that also wakes
/// those who have been forgotten. Nor do those who want a mutex: there is a scenario for that.
async fn wait_for(tools: &Tools, want: &Want, dice: &mut Dice) -> Result<Option<Hold>, Failure> {
    let asked = tools.asks(want)?;
    let gives_up = tools.gives_up && *want != Want::Mutex && dice.below(GIVES_UP_ONCE_IN) == 0;
    let patience = if gives_up { dice.millis(0, 30) } else { Duration::MAX };
    match timeout(patience, tools.recipe.take(want)).await {
        Ok(Ok(held)) => Ok(Some(tools.has_it(asked, held)?)),
        Ok(Err(_)) => {
            asked.unknown()?;
            sleep(dice.millis(5, 30)).await;
            Ok(None)
        }
        Err(_) => asked.unknown().map(|()| None).map_err(Into::into),
    }
}

/// Some of those who read do it for longer than others pass a lock on; some of those who write read on afterwards.
async fn perhaps_go_on_reading(hold: Hold, want: &Want, dice: &mut Dice) -> Result<Option<Hold>, Failure> {
    let goes_on = match want {
        Want::Read => dice.below(4) == 0,
        Want::Write => dice.coin(),
        _ => false,
    };
    if !goes_on {
        return Ok(Some(hold));
    }
    let Some(hold) = hold.downgrade().await? else { return Ok(None) };
    sleep(dice.millis(0, 25)).await;
    hold.believe()?;
    Ok(Some(hold))
}
