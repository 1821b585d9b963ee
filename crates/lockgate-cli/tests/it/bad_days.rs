//! Starts that must fail: one clear sentence that names the remedy, exit code 1, no panic, no stack trace.

use std::net::TcpListener;
use std::path::Path;

use lockgate::testing::services::{Cluster, Persistence, Redis};

use crate::old_redis;
use crate::process::{ADMIN_TOKEN, ServerProcess, run};

/// Runs `lockgate serve`, expects it to give up in good order, and returns what it said.
#[track_caller]
fn sentence_of_failure(data: &Path, arguments: &[&str]) -> String {
    let mut all = vec!["serve", "--data", data.to_str().unwrap()];
    if !arguments.contains(&"--listen") {
        all.extend(["--listen", "127.0.0.1:0"]);
    }
    all.extend(arguments);
    let output = run(&all);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&output.stdout));
    let ours: Vec<_> = said.lines().filter(|line| line.starts_with("lockgate: ")).collect();
    assert_eq!(ours.len(), 1, "one sentence, please: {said}");
    assert!(!said.contains("panicked") && !said.contains("RUST_BACKTRACE"), "{said}");
    ours[0].to_owned()
}

#[track_caller]
fn expect_words(sentence: &str, words: &[&str]) {
    for word in words {
        assert!(sentence.contains(word), "{word:?} is missing in: {sentence}");
    }
}

#[test]
fn a_store_url_that_makes_no_sense() {
    let data = tempfile::tempdir().unwrap();
    for url in ["nonsense", "http://127.0.0.1:6379", "redis://", "redis://127.0.0.1:notaport"] {
        let sentence = sentence_of_failure(data.path(), &["--store", url]);
        expect_words(&sentence, &["cannot read the store URL"]);
    }
    let sentence = sentence_of_failure(data.path(), &["--store", "nonsense", "--admin-token", ADMIN_TOKEN]);
    expect_words(&sentence, &["memory", "redis://host:port", "redis+cluster://"]);
}

#[test]
fn a_port_that_is_in_use() {
    let data = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let sentence = sentence_of_failure(data.path(), &["--listen", &address]);
    expect_words(&sentence, &[&address, "in use", "--listen"]);
}

#[test]
fn a_redis_that_is_down() {
    let data = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [
        format!("redis://{free}"),
        format!("redis+cluster://{free}"),
        format!("redis+sentinel://{free}/shop"),
    ] {
        let sentence = sentence_of_failure(data.path(), &["--store", &url, "--admin-token", ADMIN_TOKEN]);
        expect_words(&sentence, &["cannot connect to", &free.to_string(), "start the server there"]);
    }
}

#[test]
fn a_redis_that_is_too_old() {
    let data = tempfile::tempdir().unwrap();
    let sentence =
        sentence_of_failure(data.path(), &["--store", &old_redis::start(), "--admin-token", ADMIN_TOKEN]);
    expect_words(&sentence, &["6.0.16", "at least 6.2", "upgrade"]);
}

#[test]
fn a_redis_that_may_evict() {
    let data = tempfile::tempdir().unwrap();
    let redis = Redis::builder()
        .config("maxmemory", "100mb")
        .config("maxmemory-policy", "allkeys-lru")
        .start()
        .unwrap();
    let sentence = sentence_of_failure(data.path(), &["--store", &redis.url(), "--admin-token", ADMIN_TOKEN]);
    expect_words(&sentence, &["may evict", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction"]);
}

#[test]
fn a_node_of_a_cluster_taken_for_a_single_server() {
    let data = tempfile::tempdir().unwrap();
    let cluster = Cluster::start().unwrap();
    let sentence = sentence_of_failure(
        data.path(),
        &["--store", &cluster.nodes()[0].url(), "--admin-token", ADMIN_TOKEN],
    );
    expect_words(&sentence, &["redis+cluster://"]);
}

#[test]
fn a_redis_with_another_layout() {
    let data = tempfile::tempdir().unwrap();
    let redis = Redis::start(Persistence::Off).unwrap();
    redis.command(&["HSET", "lg:layout", "version", "3", "partitions", "64"]).unwrap();
    let sentence = sentence_of_failure(data.path(), &["--store", &redis.url(), "--admin-token", ADMIN_TOKEN]);
    expect_words(&sentence, &["partitions 64", "uses 1", "HGETALL lg:layout", "another namespace"]);
}

#[test]
fn a_redis_that_wants_a_password() {
    let data = tempfile::tempdir().unwrap();
    let redis = Redis::start(Persistence::Off).unwrap();
    redis.command(&["CONFIG", "SET", "requirepass", "secret"]).unwrap();
    let sentence = sentence_of_failure(data.path(), &["--store", &redis.url(), "--admin-token", ADMIN_TOKEN]);
    expect_words(&sentence, &["password", "redis://user:password@"]);
    let wrong = format!("redis://:hunter2@127.0.0.1:{}", redis.port());
    let sentence = sentence_of_failure(data.path(), &["--store", &wrong, "--admin-token", ADMIN_TOKEN]);
    assert!(!sentence.contains("hunter2"), "{sentence}");
}

#[test]
fn a_data_folder_that_cannot_be_written() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let sentence = sentence_of_failure(&file.path().join("below"), &[]);
    expect_words(&sentence, &["cannot use the data folder", "make it writable", "--data"]);
}

#[test]
fn a_second_server_on_the_same_data_folder() {
    let data = tempfile::tempdir().unwrap();
    let first = ServerProcess::start(data.path(), &[]);
    let sentence = sentence_of_failure(data.path(), &[]);
    expect_words(&sentence, &["another lockgate server", data.path().to_str().unwrap(), "--data"]);
    assert_eq!(first.get("/healthz").0, 200, "the first one goes on");
}

#[test]
fn a_door_that_would_be_open_to_everybody() {
    let data = tempfile::tempdir().unwrap();
    let sentence = sentence_of_failure(data.path(), &["--listen", "0.0.0.0:0"]);
    expect_words(&sentence, &["app token", "--app-token", "127.0.0.1"]);
}

#[test]
fn a_token_that_no_header_can_carry_is_refused_and_not_repeated() {
    let data = tempfile::tempdir().unwrap();
    for token in ["", "hunter2 hunter2", "hunter2\n"] {
        let sentence = sentence_of_failure(data.path(), &["--admin-token", token]);
        expect_words(&sentence, &["--admin-token", "visible ASCII"]);
        assert!(!sentence.contains("hunter2"), "{sentence}");
    }
}

#[test]
fn a_first_start_that_fails_does_not_swallow_the_token() {
    let data = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    sentence_of_failure(data.path(), &["--listen", &taken.local_addr().unwrap().to_string()]);
    let server = ServerProcess::start_without_token(data.path(), &[]);
    let token = std::fs::read_to_string(data.path().join("admin-token")).unwrap();
    assert!(server.welcome.contains(token.trim()), "{}", server.welcome);
}

#[test]
fn a_shared_store_without_the_token_or_the_key_that_all_must_share() {
    let data = tempfile::tempdir().unwrap();
    let redis = Redis::start(Persistence::Off).unwrap();
    let sentence = sentence_of_failure(data.path(), &["--store", &redis.url()]);
    expect_words(&sentence, &["--admin-token", "LOCKGATE_ADMIN_TOKEN"]);
    let sentence = sentence_of_failure(data.path(), &["--store", &redis.url(), "--admin-token", ADMIN_TOKEN]);
    expect_words(&sentence, &["--pass-key", "LOCKGATE_PASS_KEY", "openssl genpkey"]);
}

#[test]
fn a_command_line_that_makes_no_sense_is_exit_code_2() {
    for arguments in [&["serve", "--listen", "nowhere"][..], &["dance"], &["bench"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
