//! The services do what they are told, and nothing is left of them.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lockgate::testing::eventually;
use lockgate::testing::services::{
    Cluster, Persistence, Postgres, Redis, Reply, Sentinel, Server, ServiceError,
};

const BOUND: Duration = Duration::from_secs(20);
/// Too short for a paused server, and long enough for one that runs.
const SHORT: Duration = Duration::from_millis(200);

fn text(text: &str) -> Reply {
    Reply::Text(text.into())
}

/// The kernel's letter for what a process does. A zombie counts as gone: it only waits for its parent to take note.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    behind_name.chars().next().filter(|state| *state != 'Z')
}

fn is_running(pid: u32) -> bool {
    state_of(pid).is_some()
}

fn is_stopped(pid: u32) -> bool {
    state_of(pid).is_none_or(|state| state == 'T')
}

fn none_is_running(pids: &[u32]) -> bool {
    !pids.iter().any(|pid| is_running(*pid))
}

/// The ids of a process and of its children, for PostgreSQL's backends.
fn family_of(server: &Server) -> Vec<u32> {
    let parent = server.pid().unwrap();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).chain([parent]).collect()
}

fn keeps_a_value_over_a_kill(persistence: Persistence) -> Reply {
    let redis = Redis::start(persistence).unwrap();
    redis.command(&["SET", "a", "1"]).unwrap();
    let (port, first_pid) = (redis.port(), redis.pid());
    redis.kill();
    assert!(redis.command(&["PING"]).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.port(), port);
    assert_ne!(redis.pid(), first_pid);
    redis.command(&["GET", "a"]).unwrap()
}

#[test]
fn redis_keeps_over_a_kill_what_its_persistence_says() {
    assert_eq!(keeps_a_value_over_a_kill(Persistence::Off), Reply::Nil);
    assert_eq!(keeps_a_value_over_a_kill(Persistence::AofEverysec), text("1"));
    assert_eq!(keeps_a_value_over_a_kill(Persistence::AofAlways), text("1"));
}

#[test]
fn redis_keeps_its_append_only_file_over_a_graceful_restart() {
    let redis = Redis::start(Persistence::AofEverysec).unwrap();
    redis.command(&["SET", "a", "1"]).unwrap();
    redis.restart().unwrap();
    assert_eq!(redis.command(&["GET", "a"]).unwrap(), text("1"));
    redis.stop().unwrap();
    assert_eq!(redis.pid(), None);
    redis.stop().unwrap();
}

#[test]
fn a_paused_redis_does_not_answer_until_it_is_resumed() {
    let redis = Redis::start(Persistence::Off).unwrap();
    redis.command(&["SET", "a", "1"]).unwrap();
    redis.pause().unwrap();
    redis.pause().unwrap();
    assert!(redis.command_within(SHORT, &["GET", "a"]).is_err());
    redis.resume().unwrap();
    redis.resume().unwrap();
    assert_eq!(redis.command(&["GET", "a"]).unwrap(), text("1"));
}

#[test]
fn a_paused_server_can_be_restarted_killed_and_dropped() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    redis.command(&["SET", "a", "1"]).unwrap();
    redis.pause().unwrap();
    redis.restart().unwrap();
    assert_eq!(redis.command(&["GET", "a"]).unwrap(), text("1"));
    redis.pause().unwrap();
    redis.kill();
    assert!(redis.pause().unwrap_err().to_string().contains("restart it first"));
    redis.restart().unwrap();
    redis.pause().unwrap();
    let pid = redis.pid().unwrap();
    drop(redis);
    assert!(!is_running(pid));
}

#[test]
fn redis_takes_lines_of_configuration_and_says_what_it_refuses() {
    let redis = Redis::builder().config("maxmemory-policy", "allkeys-lru").start().unwrap();
    let policy = redis.command(&["CONFIG", "GET", "maxmemory-policy"]).unwrap();
    assert_eq!(policy.field("maxmemory-policy"), Some("allkeys-lru"));
    let refusal = redis.command(&["NO-SUCH-COMMAND"]).unwrap_err();
    assert!(matches!(refusal, ServiceError::Refused { .. }), "{refusal}");
}

#[test]
fn a_server_that_does_not_come_up_says_why() {
    let error = Redis::builder().config("maxmemory-policy", "nonsense").start().unwrap_err();
    assert!(matches!(error, ServiceError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("maxmemory-policy"), "its log is in the message: {error}");
}

#[test]
fn redis_speaks_tls_only_to_those_who_trust_its_certificate() {
    let redis = Redis::builder().tls().start().unwrap();
    assert!(redis.url().starts_with("rediss://127.0.0.1:"));
    assert_eq!(redis.command(&["PING"]).unwrap(), Reply::Status("PONG".into()));
    let handshake = |ca: &Path| {
        let arguments = ["s_client", "-verify_return_error", "-verify_ip", "127.0.0.1", "-connect"];
        let mut openssl = Command::new("openssl");
        openssl.args(arguments).arg(redis.address()).arg("-CAfile").arg(ca).stdin(Stdio::null());
        openssl.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(handshake(redis.ca_file().unwrap()));
    let other = Redis::builder().tls().start().unwrap();
    assert!(!handshake(other.ca_file().unwrap()), "it must not be trusted by another's certificate");
}

#[test]
fn sentinel_moves_the_mastership_when_told_and_when_the_master_dies() {
    let sentinel = Sentinel::start().unwrap();
    let first = sentinel.master_port().unwrap();
    let url = sentinel.url();
    assert!(url.starts_with("redis+sentinel://127.0.0.1:") && url.ends_with("/lockgate"), "{url}");

    let second = sentinel.fail_over().unwrap();
    assert_ne!(second.port(), first);
    second.command(&["SET", "a", "1"]).unwrap();
    assert!(eventually(BOUND, || second.info("replication", "connected_slaves").as_deref() == Some("2")));
    assert_eq!(second.command(&["WAIT", "2", "5000"]).unwrap().as_int(), Some(2));

    second.kill();
    let third = sentinel.wait_for_master_other_than(Some(second.port())).unwrap();
    assert_eq!(third.command(&["GET", "a"]).unwrap(), text("1"));

    second.restart().unwrap();
    assert!(eventually(BOUND, || second.info("replication", "role").as_deref() == Some("slave")));
    for _ in 0..3 {
        let old = sentinel.master_port();
        assert_ne!(Some(sentinel.fail_over().unwrap().port()), old, "it can be told again and again");
    }
}

#[test]
fn cluster_serves_every_slot_and_survives_a_master() {
    let cluster = Cluster::start().unwrap();
    assert_eq!(cluster.url().matches("127.0.0.1:").count(), 3);
    for node in cluster.nodes() {
        let info = node.command(&["CLUSTER", "INFO"]).unwrap().to_string();
        assert!(info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384"), "{info}");
    }
    let masters: HashSet<u16> = (0..200)
        .map(|number| {
            let key = format!("key-{number}");
            let master = cluster.master_of(&key).unwrap();
            master.command(&["SET", &key, "1"]).unwrap();
            master.port()
        })
        .collect();
    assert_eq!(masters.len(), 3);

    let dead = cluster.master_of("key-0").unwrap();
    assert!(dead.command(&["WAIT", "1", "5000"]).is_ok());
    dead.kill();
    assert!(eventually(BOUND, || {
        let heir = cluster.master_of("key-0").filter(|heir| heir.port() != dead.port());
        heir.is_some_and(|heir| {
            heir.command_within(SHORT, &["GET", "key-0"]).is_ok_and(|got| got == text("1"))
        })
    }));
}

#[test]
fn postgres_pauses_with_all_its_backends() {
    let postgres = Postgres::start().unwrap();
    let family = family_of(&postgres);
    assert!(family.len() > 2, "{family:?}");
    postgres.pause().unwrap();
    for pid in family {
        assert!(is_stopped(pid), "{pid} goes on while its server is paused");
    }
}

#[test]
fn processes_and_folders_are_gone_after_a_drop() {
    let (redis, postgres) = (Redis::start(Persistence::AofAlways).unwrap(), Postgres::start().unwrap());
    let folders = [redis.folder().to_owned(), postgres.folder().to_owned()];
    let pids = [family_of(&redis), family_of(&postgres)].concat();
    drop((redis, postgres));
    assert!(pids.len() > 4 && none_is_running(&pids), "{pids:?}");
    assert!(!folders.iter().any(|folder| folder.exists()), "{folders:?}");
}

#[test]
fn the_shared_memory_of_a_killed_postgres_goes_with_its_folder() {
    let postgres = Postgres::start().unwrap();
    let notes = std::fs::read_to_string(postgres.folder().join("data/postmaster.pid")).unwrap();
    let id = notes.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)).unwrap();
    let is_there = || {
        let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments.lines().any(|segment| segment.split_whitespace().nth(1) == Some(id))
    };
    postgres.kill();
    assert!(is_there());
    drop(postgres);
    assert!(!is_there());
}

#[test]
fn processes_and_folders_are_gone_after_a_panic() {
    let (mut pid, mut folder) = (0, PathBuf::new());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let redis = Redis::start(Persistence::Off).unwrap();
        (pid, folder) = (redis.pid().unwrap(), redis.folder().to_owned());
        redis.command(&["NO-SUCH-COMMAND"]).unwrap();
    }));
    assert!(outcome.is_err());
    assert!(pid != 0 && !is_running(pid));
    assert!(!folder.exists());
}

#[test]
fn a_server_outlives_the_thread_that_asked_for_it() {
    let redis = std::thread::spawn(|| Redis::start(Persistence::Off).unwrap()).join().unwrap();
    assert!(!eventually(SHORT, || redis.command(&["PING"]).is_err()));
}

/// Tells [`owns_services_in_a_process_of_its_own`] what to do with them.
const OWN: &str = "LOCKGATE_TEST_OWN";

/// Not a test by itself: the body of a process that the next tests start, and mostly kill.
#[test]
fn owns_services_in_a_process_of_its_own() {
    let Ok(how) = std::env::var(OWN) else { return };
    let (redis, postgres) = (Redis::start(Persistence::Off).unwrap(), Postgres::start().unwrap());
    let pids = [family_of(&redis), family_of(&postgres)].concat();
    if how == "paused" {
        redis.pause().unwrap();
        postgres.pause().unwrap();
    }
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    println!("\nowner: {} {}", redis.folder().parent().unwrap().display(), pids.join(" "));
    if how == "briefly" {
        return;
    }
    loop {
        std::thread::park();
    }
}

/// A process of its own that owns a Redis and a PostgreSQL.
struct Owner {
    process: Child,
    folder: PathBuf,
    pids: Vec<u32>,
}

impl Owner {
    /// Its folders are below `temp`, where no other test's start sweeps them too early.
    fn start(how: &str, temp: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "services::owns_services_in_a_process_of_its_own", "--nocapture"])
            .env(OWN, how)
            .env("TMPDIR", temp)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find_map(|line| Some(line.strip_prefix("owner: ")?.to_owned()));
        // The rest is read too: a process whose output nobody takes dies of it.
        std::thread::spawn(move || lines.count());
        let line = line.expect("it says what it owns");
        let mut words = line.split(' ');
        let folder = PathBuf::from(words.next().unwrap());
        let pids: Vec<u32> = words.map(|pid| pid.parse().unwrap()).collect();
        assert!(folder.starts_with(temp) && pids.len() > 4, "{line}");
        Self { process, folder, pids }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// For one that owns its services only briefly.
    fn ends_well(&mut self) -> bool {
        self.process.wait().unwrap().success() && none_is_running(&self.pids) && !self.folder.exists()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn processes_end_with_a_killed_owner_and_the_next_start_sweeps_its_folder() {
    let home = Redis::start(Persistence::Off).unwrap();
    let mut owner = Owner::start("running", home.folder());
    assert!(!none_is_running(&owner.pids));
    owner.kill();
    assert!(eventually(BOUND, || none_is_running(&owner.pids)), "{:?}", owner.pids);
    assert!(owner.folder.exists(), "nobody could remove it yet");

    assert!(Owner::start("briefly", home.folder()).ends_well());
    assert!(!owner.folder.exists(), "{}", owner.folder.display());
}

#[test]
fn what_was_paused_when_its_owner_was_killed_is_swept_too() {
    let home = Redis::start(Persistence::Off).unwrap();
    let mut owner = Owner::start("paused", home.folder());
    owner.kill();
    assert!(Owner::start("briefly", home.folder()).ends_well());
    assert!(eventually(BOUND, || none_is_running(&owner.pids)), "{:?}", owner.pids);
    assert!(!owner.folder.exists(), "{}", owner.folder.display());
}

#[test]
fn many_start_at_once() {
    let ports: HashSet<u16> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Redis::start(Persistence::Off).unwrap())).collect();
        let started: Vec<Redis> = starts.into_iter().map(|start| start.join().unwrap()).collect();
        started.iter().map(|redis| redis.port()).collect()
    });
    assert_eq!(ports.len(), 8);
}
