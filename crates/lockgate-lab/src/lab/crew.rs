//! The processes that users are served by: this one alone, or children that are started once and play every round together.
//!
//! A child reads a line and answers with a line. First where everything is; then, round by round, its turn, `go`, and `finish`.

use std::path::Path;
use std::process::Stdio;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::Failure;
use super::actor::{Actor, Effort, Performance, Places, Testimony, Turn};

/// Everybody who serves users.
pub(super) enum Crew {
    /// One process: this one.
    Here(Box<Actor>),
    /// Several.
    Children(Vec<Member>),
}

/// What all of them saw and did in a round.
pub(super) struct Played {
    pub(super) testimonies: Vec<Testimony>,
    pub(super) efforts: Vec<Effort>,
}

impl Crew {
    pub(super) async fn muster(program: &Path, places: &Places, processes: usize) -> Result<Self, Failure> {
        if processes == 1 {
            return Ok(Crew::Here(Box::new(Actor::connect(places).await?)));
        }
        let mut members = Vec::new();
        for _ in 0..processes {
            let mut member = Member::start(program, "crew", threads_of_each(processes))?;
            member.say(places).await?;
            members.push(member);
        }
        for member in &mut members {
            member.hear::<String>().await?;
        }
        Ok(Crew::Children(members))
    }

    /// Plays one round. `begun` is called when the crowd is let go.
    pub(super) async fn play(&mut self, turns: Vec<Turn>, begun: impl FnOnce()) -> Result<Played, Failure> {
        match self {
            Crew::Here(actor) => play_here(actor, turns, begun).await,
            Crew::Children(members) => play_with(members, &turns, begun).await,
        }
    }

    pub(super) async fn leave(self) {
        match self {
            Crew::Here(actor) => actor.leave().await,
            // Their standard input ends, so they end too.
            Crew::Children(members) => {
                for member in members {
                    member.dismiss().await;
                }
            }
        }
    }
}

async fn play_here(actor: &Actor, turns: Vec<Turn>, begun: impl FnOnce()) -> Result<Played, Failure> {
    let turn = turns.into_iter().next().ok_or("a round without anybody")?;
    let performance = actor.prepare(turn).await?;
    begun();
    let testimony = actor.perform(&performance).await;
    let effort = actor.finish(performance).await?;
    Ok(Played { testimonies: vec![testimony], efforts: vec![effort] })
}

async fn play_with(members: &mut [Member], turns: &[Turn], begun: impl FnOnce()) -> Result<Played, Failure> {
    for (member, turn) in members.iter_mut().zip(turns) {
        member.say(turn).await?;
    }
    for member in members.iter_mut() {
        member.hear::<String>().await?;
    }
    begun();
    for member in members.iter_mut() {
        member.say("go").await?;
    }
    let (mut testimonies, mut efforts) = (Vec::new(), Vec::new());
    for member in members.iter_mut() {
        testimonies.push(member.hear().await?);
    }
    // Only now: what one process writes back may be what another was promised.
    for member in members.iter_mut() {
        member.say("finish").await?;
    }
    for member in members {
        efforts.push(member.hear().await?);
    }
    Ok(Played { testimonies, efforts })
}

/// The cores are shared out among the processes: each is as big as it could be on a machine of its own.
fn threads_of_each(processes: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / processes).max(1)
}

/// A child process.
pub(super) struct Member {
    process: Child,
    says: Lines<BufReader<ChildStdout>>,
    hears: ChildStdin,
}

impl Member {
    pub(super) fn start(program: &Path, part: &str, threads: usize) -> Result<Self, Failure> {
        let mut process = Command::new(program)
            .args(["lab", part, &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(hears), Some(says)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a process without pipes".into());
        };
        Ok(Self { process, says: BufReader::new(says).lines(), hears })
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    pub(super) async fn say(&mut self, what: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
        let line = serde_json::to_string(what)? + "\n";
        Ok(self.hears.write_all(line.as_bytes()).await?)
    }

    pub(super) async fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let line = self.says.next_line().await?;
        let line = line.ok_or("a process of the lab ended too early; what it printed above says why")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// `kill -9`, by its id.
    pub(super) async fn kill(mut self) -> Result<(), Failure> {
        Ok(self.process.kill().await?)
    }

    async fn dismiss(mut self) {
        drop(self.hears);
        // However it ends, it is over.
        let _ = self.process.wait().await;
    }
}

/// The life of a child: it connects, and plays its part in every round until nobody asks it any more.
pub(super) async fn serve() -> Result<(), Failure> {
    let Some(places) = next_line().await? else { return Ok(()) };
    let actor = Actor::connect(&serde_json::from_str::<Places>(&places)?).await?;
    reply("connected")?;
    while let Some(turn) = next_line().await? {
        let performance: Performance = actor.prepare(serde_json::from_str(&turn)?).await?;
        reply("ready")?;
        next_line().await?;
        reply(&actor.perform(&performance).await)?;
        next_line().await?;
        reply(&actor.finish(performance).await?)?;
    }
    actor.leave().await;
    Ok(())
}

/// What the parent says next; nothing when it has gone. What the strategy does in the background goes on meanwhile.
pub(super) async fn next_line() -> Result<Option<String>, Failure> {
    let read = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|read| (read > 0).then_some(line))
    };
    Ok(tokio::task::spawn_blocking(read).await??)
}

pub(super) fn reply(what: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}
