//! Processes as `/proc` shows them: who is alive, who descends from whom, who works in which folder.
//!
//! Where there is no `/proc`, a process has no visible family and none is ever found in a folder: what is lost is
//! the pausing of PostgreSQL's backends and the sweeping after a killed test run, nothing else.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::program;

/// What tells one process from another that later got the same id: its id and when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// In the kernel's ticks since boot; 0 where there is no `/proc`.
    pub(super) started: u64,
}

impl Identity {
    /// Who we are.
    pub(super) fn of_this_process() -> Self {
        let pid = std::process::id();
        Self { pid, started: stat(pid).map_or(0, |stat| stat.started) }
    }

    /// Whether that very process still runs. A zombie does not: it cannot clean up after itself any more.
    pub(super) fn is_alive(self) -> bool {
        match stat(self.pid) {
            Some(stat) => stat.started == self.started && !matches!(stat.state, 'Z' | 'X'),
            None => self.started == 0 && as_pid(self.pid).is_some_and(|pid| test_kill_process(pid).is_ok()),
        }
    }
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

/// `/proc/<pid>/stat`. The command's name comes second, in brackets, and may itself hold brackets and spaces, so
/// counting begins behind the last one.
fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = line.rsplit_once(')')?;
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn all_ids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The children of a process, and theirs, as they are now. PostgreSQL serves each connection in one.
pub(super) fn descendants_of(ancestor: Pid) -> Vec<Identity> {
    let all: Vec<(u32, Stat)> = all_ids().filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut family = HashSet::from([ancestor.as_raw_nonzero().get().unsigned_abs()]);
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for (pid, stat) in &all {
            if family.contains(&stat.parent) && family.insert(*pid) {
                found.push(Identity { pid: *pid, started: stat.started });
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether neither a process nor any of its descendants runs.
pub(super) fn is_frozen(ancestor: Pid) -> bool {
    let ancestor_id = ancestor.as_raw_nonzero().get().unsigned_abs();
    let family = descendants_of(ancestor).into_iter().map(|descendant| descendant.pid).chain([ancestor_id]);
    family.filter_map(stat).all(|stat| matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
}

/// Sends a signal to a process, if it is still the same one.
pub(super) fn signal(process: Identity, signal: Signal) {
    if let Some(pid) = as_pid(process.pid).filter(|_| process.is_alive()) {
        // It may have ended in the meantime, which is what all callers are after anyway.
        let _ = kill_process(pid, signal);
    }
}

/// Our servers that work inside this folder. Every one of them makes its data folder its working directory; a
/// shell that somebody left there is none of ours.
pub(super) fn servers_working_in(folder: &Path) -> Vec<Identity> {
    all_ids()
        .filter(|pid| works_in(*pid, folder) && is_one_of_our_programs(*pid))
        .filter_map(|pid| Some(Identity { pid, started: stat(pid)?.started }))
        .collect()
}

fn works_in(pid: u32, folder: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
}

fn is_one_of_our_programs(pid: u32) -> bool {
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = exe.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    // `redis-server` is often a link to `redis-check-rdb`, or to Valkey's: one program with several names.
    name.starts_with("redis-")
        || name.starts_with("valkey-")
        || program::ALL.iter().any(|program| program.name == name)
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn we_are_alive_and_nobody_who_started_at_another_time_is_us() {
        let us = Identity::of_this_process();
        assert!(us.is_alive());
        assert!(!Identity { started: us.started + 1, ..us }.is_alive());
    }
}
