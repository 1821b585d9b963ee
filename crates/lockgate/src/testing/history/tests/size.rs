//! A large history: read and judged in seconds, so that a long fault run can be judged too.
//!
//! The figures: `cargo test --release -p lockgate --features testing history::tests::size -- --nocapture`

use std::io::{BufWriter, Write as _};

use super::{
    Answer, Bounds, History, Script, acquire, acquired, check, enter, entered, granted_row, issue, issued,
    look, open, release, write,
};
use crate::clock::Clock;

#[test]
fn a_large_history_is_read_and_judged_whole() {
    let clock = Clock::system();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut lines = BufWriter::new(file.as_file_mut());
    for event in many_events() {
        serde_json::to_writer(&mut lines, &event).unwrap();
        lines.write_all(b"\n").unwrap();
    }
    drop(lines);

    let started = clock.monotonic();
    let history = History::read_file(file.path()).unwrap();
    let read = clock.monotonic();
    let verdict = check(&history, &Bounds::default());
    let judged = clock.monotonic();

    let (reading, judging) = (read.since(started), judged.since(read));
    println!("{} events: read in {reading:?}, judged in {judging:?}", history.events().len());
    println!("{:?}", verdict.judged);
    assert!(verdict.violations.is_empty(), "{verdict}");
}

/// One lock, one campaign and one line, so that nothing is saved by splitting; requests overlap hundredfold.
fn many_events() -> Vec<super::Event> {
    // A million events in release; fewer where every one of them costs ten times as much.
    const ROUNDS: u64 = if cfg!(debug_assertions) { 7_000 } else { 70_000 };
    let mut s = Script::default();
    s.ok(0, 1, open(ROUNDS), Answer::Opened);
    let (mut grants, mut ledger) = (Vec::new(), Vec::new());
    for n in 1..=ROUNDS {
        let (now, user) = (1_000 + 10 * n, format!("user-{n}"));
        s.queued_ok((now - 900, now - 800, now), acquire(5_000), acquired(n));
        s.ok(now + 2, now + 3, write(n), Answer::WriteAccepted);
        s.ok(now + 5, now + 500, release(n), Answer::Released);
        s.ok(now - 500, now + 500, issue(&user), issued(n));
        s.ok(now - 500, now + 500, enter(&user), entered(n));
        s.ok(now + 600, now + 700, look(&user), Answer::LookAdmitted);
        ledger.push(granted_row(n, &user, n));
        grants.push(user);
    }
    let rows: Vec<(&str, u64)> = grants.iter().map(String::as_str).zip(1..).collect();
    let end = 10 * ROUNDS + 10_000;
    s.list_grants(end, &rows);
    s.list_ledger(end + 10, ledger);
    s.events
}
