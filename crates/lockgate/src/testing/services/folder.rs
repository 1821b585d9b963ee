//! A folder of its own for each service, gone when the service goes.
//!
//! ```text
//! /tmp/lockgate-services-<user>/          one per user, so that nobody trips over another's
//!     <pid>-<start>/                      one per test process; the name says whose it is
//!         redis-0/  postgres-1/  ...      one per service
//! ```
//!
//! A process that is killed cannot clean up. So every start first sweeps: it removes the folders whose process no
//! longer exists, and ends the servers that still work in them (there are some only where `setpriv` is missing, or
//! when they were paused).

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, geteuid};

use super::ServiceError;
use super::process::{self, Identity};

/// Others may pass through but not look around: PostgreSQL runs as another user when we are root.
const PASSABLE: u32 = 0o711;

/// Keeps one thread from removing the process's folder while another creates a service's in it.
static CHANGING: Mutex<()> = Mutex::new(());

/// The folder of one service. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new, empty folder; sweeps first.
    pub(super) fn create(service: &str) -> Result<Self, ServiceError> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let base = base_folder();
        let path = folder_of_this_process(&base).join(format!("{service}-{number}"));
        let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        create_passable(&base)
            .and_then(|()| must_be_ours(&base))
            .and_then(|()| create_passable(&folder_of_this_process(&base)))
            .and_then(|()| create_passable(&path))
            .map_err(ServiceError::while_trying_to(format!("create the folder {}", path.display())))?;
        sweep(&base);
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        remove(&self.path);
        // Only the last service's folder leaves its parent empty; until then this fails, and should.
        if let Some(of_this_process) = self.path.parent() {
            let _ = fs::remove_dir(of_this_process);
        }
    }
}

fn base_folder() -> PathBuf {
    // Resolved, because a server's working directory is compared with it.
    let temp = std::env::temp_dir();
    let temp = temp.canonicalize().unwrap_or(temp);
    temp.join(format!("lockgate-services-{}", geteuid().as_raw()))
}

fn folder_of_this_process(base: &Path) -> PathBuf {
    let us = Identity::of_this_process();
    base.join(format!("{}-{}", us.pid, us.started))
}

fn create_passable(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(PASSABLE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The temporary folder is open to all, so the name may have been taken by somebody who wants to see our data.
fn must_be_ours(base: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(base)?;
    if metadata.is_dir() && metadata.uid() == geteuid().as_raw() {
        return Ok(());
    }
    let remedy = format!("{} belongs to somebody else; remove it or set TMPDIR", base.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, remedy))
}

/// Removes what processes left behind that no longer exist. Two processes may sweep at once.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(owner_of);
        if owner.is_some_and(|owner| !owner.is_alive()) {
            end_servers_in(&entry.path());
            for service in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                remove(&service.path());
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn owner_of(folder_name: &str) -> Option<Identity> {
    let (pid, started) = folder_name.split_once('-')?;
    Some(Identity { pid: pid.parse().ok()?, started: started.parse().ok()? })
}

fn end_servers_in(folder: &Path) {
    for server in process::servers_working_in(folder) {
        process::signal(server, Signal::KILL);
    }
}

/// Removes a service's folder. What cannot be removed now, the next sweep tries again.
fn remove(folder: &Path) {
    remove_shared_memory_noted_in(&folder.join("data/postmaster.pid"));
    let _ = fs::remove_dir_all(folder);
}

/// PostgreSQL holds a small segment of System V shared memory, which outlives a killed server, and of which a
/// machine has only some thousands. It notes key and id in the seventh line of its pid file.
fn remove_shared_memory_noted_in(pid_file: &Path) {
    let Ok(notes) = fs::read_to_string(pid_file) else { return };
    let Some(id) = notes.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) else { return };
    let _ = Command::new("ipcrm")
        .args(["--shmem-id", id])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_service_and_others_stay() {
        let (gone, stays) = (Folder::create("test").unwrap(), Folder::create("test").unwrap());
        let path = gone.path().to_owned();
        fs::write(path.join("file"), "data").unwrap();
        drop(gone);
        assert!(!path.exists());
        assert!(stays.path().exists());
    }

    #[test]
    fn a_sweep_removes_only_what_dead_processes_left() {
        let base = tempfile::tempdir().unwrap();
        let us = Identity::of_this_process();
        let ours = base.path().join(format!("{}-{}", us.pid, us.started));
        let left_behind = base.path().join(format!("{}-{}", us.pid, us.started + 1));
        let unknown = base.path().join("notes");
        for folder in [&ours, &left_behind, &unknown] {
            fs::create_dir_all(folder.join("redis-0")).unwrap();
        }

        sweep(base.path());

        assert!(ours.exists() && unknown.exists());
        assert!(!left_behind.exists());
    }
}
