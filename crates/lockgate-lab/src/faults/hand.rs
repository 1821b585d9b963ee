//! The orchestrator's end of a worker process: tells it what to do, hears what it says, kills, stops and continues it.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::testing::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{sleep, timeout};

use super::orders::{Orders, Said};
use super::stop::Stop;

/// Far longer than anything here should take: whoever waits so long sees a bound broken, and not a slow machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A worker process. Killed when this is dropped.
pub(super) struct Hand {
    pub(super) name: String,
    child: Child,
    input: ChildStdin,
    heard: UnboundedReceiver<Said>,
    /// Heard while something else was waited for.
    unread: VecDeque<Said>,
}

impl Hand {
    /// Starts `program` in its hidden mode.
    pub(super) fn start(program: &Path, orders: &Orders) -> Result<Self, Stop> {
        Self::start_as("worker", program, &orders.name, orders)
    }

    /// The same, in another hidden mode.
    pub(super) fn start_as(
        mode: &str,
        program: &Path,
        name: &str,
        orders: &impl Serialize,
    ) -> Result<Self, Stop> {
        let mut child = Command::new(program)
            .arg(mode)
            .arg(serde_json::to_string(orders)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let no_pipe = || io::Error::other("the worker has no pipe");
        let input = child.stdin.take().ok_or_else(no_pipe)?;
        let heard = hear(child.stdout.take().ok_or_else(no_pipe)?);
        Ok(Self { name: name.to_owned(), child, input, heard, unread: VecDeque::new() })
    }

    /// Sends a command.
    pub(super) fn tell(&mut self, command: &str) -> Result<(), Stop> {
        Ok(writeln!(self.input, "{command}")?)
    }

    /// What the slot says next, if it is one of `words`; what others say meanwhile is kept.
    pub(super) async fn says(&mut self, slot: u32, words: &[&str]) -> Result<Said, Stop> {
        self.says_within(slot, words, PATIENCE).await
    }

    pub(super) async fn says_within(
        &mut self,
        slot: u32,
        words: &[&str],
        patience: Duration,
    ) -> Result<Said, Stop> {
        let is_it = |said: &Said| said.slot == slot && words.contains(&said.word.as_str());
        if let Some(said) = self.unread.iter().position(is_it).and_then(|place| self.unread.remove(place)) {
            return Ok(said);
        }
        let listening = async {
            while let Some(said) = self.heard.recv().await {
                if is_it(&said) {
                    return Some(said);
                }
                self.unread.push_back(said);
            }
            None
        };
        match timeout(patience, listening).await {
            Ok(Some(said)) => Ok(said),
            Ok(None) => Err(Stop::broken(format!("{} ended before it said {words:?}", self.name))),
            Err(_) => Err(Stop::broken(format!("{} has not said {words:?} within {patience:?}", self.name))),
        }
    }

    /// Tells, and returns what it says to it.
    pub(super) async fn ask(&mut self, command: &str, slot: u32, words: &[&str]) -> Result<Said, Stop> {
        self.tell(&format!("{command} {slot}"))?;
        self.says(slot, words).await
    }

    /// What it has said, if it has.
    pub(super) fn has_said(&mut self, slot: u32, word: &str) -> Option<Said> {
        while let Ok(said) = self.heard.try_recv() {
            self.unread.push_back(said);
        }
        let is_it = |said: &Said| said.slot == slot && said.word == word;
        self.unread.iter().position(is_it).and_then(|place| self.unread.remove(place))
    }

    /// Puts back what was heard, for somebody who wants to hear it too.
    pub(super) fn heard_before(&mut self, said: Said) {
        self.unread.push_front(said);
    }

    fn signal(&self, signal: Signal) -> Result<(), Stop> {
        Ok(kill_process(Pid::from_child(&self.child), signal).map_err(io::Error::from)?)
    }

    /// Ends it with `kill -9`. Returns the time just before.
    pub(super) fn kill(&mut self) -> Result<u64, Stop> {
        let before = now();
        self.child.kill()?;
        self.child.wait()?;
        Ok(before)
    }

    /// Stops it where it stands. Returns when it stands.
    pub(super) fn pause(&self) -> Result<(), Stop> {
        self.signal(Signal::STOP)?;
        let stat = format!("/proc/{}/stat", self.child.id());
        let stands = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
        if eventually(PATIENCE, stands) { Ok(()) } else { Err(io::Error::other("it does not stop").into()) }
    }

    /// Lets it go on. Returns the time just before.
    pub(super) fn resume(&self) -> Result<u64, Stop> {
        let before = now();
        self.signal(Signal::CONT).map(|()| before)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The clock that all processes of this machine share, in nanoseconds.
pub(super) fn now() -> u64 {
    Clock::system().monotonic().as_nanos()
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The first of `hands` whose slot 1 has the lock, and when.
pub(super) async fn first_to_lock(hands: &mut [&mut Hand]) -> Result<(usize, Said), Stop> {
    let began = now();
    while Duration::from_nanos(now() - began) < PATIENCE {
        for (place, hand) in hands.iter_mut().enumerate() {
            if let Some(said) = hand.has_said(1, "locked") {
                return Ok((place, said));
            }
        }
        sleep(Duration::from_millis(1)).await;
    }
    Err(Stop::broken(format!("nobody got the lock within {PATIENCE:?}")))
}

/// Hears on a thread of its own, so that nothing else has to wait for a worker.
fn hear(output: ChildStdout) -> UnboundedReceiver<Said> {
    let (sender, heard) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            match line.parse::<Said>().map(|said| sender.send(said)) {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(why) => eprintln!("{why}"),
            }
        }
    });
    heard
}
