//! What is recorded is read back, also after a kill.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use super::{acquire, issue, open};
use crate::clock::Clock;
use crate::testing::history::{
    AcquireAnswer, Bounds, GrantRow, History, IssueAnswer, ListGrants, OpenAnswer, ReadError, Recorder, check,
};

fn only_file(folder: &Path) -> PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// A small sale, with everything that an operation can be.
fn record_a_sale(recorder: &Recorder) {
    recorder.invoke(open(10)).unwrap().ok(OpenAnswer::Opened).unwrap();
    recorder.invoke(issue("ann")).unwrap().ok(IssueAnswer::Issued { seq: 1 }).unwrap();
    recorder.invoke(issue("bob")).unwrap().fail().unwrap();
    recorder.invoke(issue("eve")).unwrap().unknown().unwrap();
    drop(recorder.invoke(issue("joe")).unwrap());
    let waiting = recorder.invoke(acquire(10)).unwrap();
    waiting.queued().unwrap();
    waiting.ok(AcquireAnswer::Acquired { fence: 1 }).unwrap();
    let listing = recorder.invoke(ListGrants { campaign: "c".into() }).unwrap();
    listing.row(GrantRow { user: "ann".into(), seq: 1, quantity: 1 }).unwrap();
    listing.complete().unwrap();
}

#[test]
fn a_file_says_what_memory_says() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fake();
    let memory = Recorder::in_memory("shop", clock.clone());
    record_a_sale(&memory);
    record_a_sale(&Recorder::in_folder(folder.path(), "shop", clock).unwrap());

    let (memory, file) = (memory.history(), History::read_folder(folder.path()).unwrap());
    let steps = |history: &History| -> Vec<_> {
        history.events().iter().map(|event| (event.op, event.at, event.step.clone())).collect()
    };
    assert_eq!(steps(&memory), steps(&file));
    let judged = check(&file, &Bounds::default()).into_result().unwrap();
    assert_eq!((judged.operations, judged.unknown, judged.listed_rows), (7, 2, 1));
}

#[test]
fn a_torn_last_line_is_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    record_a_sale(&Recorder::in_folder(folder.path(), "shop", Clock::fake()).unwrap());
    let path = only_file(folder.path());
    let bytes = fs::read(&path).unwrap();
    let whole = History::read_file(&path).unwrap();

    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    let torn = History::read_file(&path).unwrap();

    assert_eq!((whole.torn_lines(), torn.torn_lines()), (0, 1));
    assert_eq!(torn.events().len(), whole.events().len() - 1);
    let judged = check(&torn, &Bounds::default()).into_result().unwrap();
    assert_eq!((judged.torn_lines, judged.listings, judged.unknown), (1, 0, 3));
}

#[test]
fn every_cut_of_a_file_can_be_read_and_breaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    record_a_sale(&Recorder::in_folder(folder.path(), "shop", Clock::fake()).unwrap());
    let path = only_file(folder.path());
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let verdict = check(&History::read_file(&path).unwrap(), &Bounds::default());
        assert!(verdict.violations.is_empty(), "cut at {length}: {verdict}");
    }
}

#[test]
fn a_damaged_line_in_the_middle_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    record_a_sale(&Recorder::in_folder(folder.path(), "shop", Clock::fake()).unwrap());
    let path = only_file(folder.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"op\":2", "\"op\":", 1)).unwrap();

    let error = History::read_folder(folder.path()).unwrap_err();

    assert!(matches!(error, ReadError::Damaged { line: 3, .. }), "{error}");
}

#[test]
fn a_line_is_flat_json_in_snake_case() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::in_folder(folder.path(), "shop", Clock::fake()).unwrap();
    recorder.invoke(acquire(10)).unwrap().ok(AcquireAnswer::Acquired { fence: 3 }).unwrap();
    let text = fs::read_to_string(only_file(folder.path())).unwrap();
    let steps: Vec<&str> = text.lines().map(|line| line.split_once("\"step\":").unwrap().1).collect();
    assert_eq!(
        steps,
        [
            r#"{"invoke":{"call":"acquire","lock":"l","lease_ms":10}}}"#,
            r#"{"ok":{"answer":"acquired","fence":3}}}"#
        ]
    );
}

#[test]
fn two_recorders_with_many_tasks_each_are_read_as_one_history() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    for _ in 0..2 {
        let recorder = Recorder::in_folder(folder.path(), "shop", clock.clone()).unwrap();
        thread::scope(|scope| {
            for thread in 0..2 {
                let recorder = recorder.clone();
                scope.spawn(move || {
                    for user in 0..200 {
                        let pending = recorder.invoke(issue(&format!("{thread}-{user}"))).unwrap();
                        pending.ok(IssueAnswer::Denied).unwrap();
                    }
                });
            }
        });
    }

    let history = History::read_folder(folder.path()).unwrap();

    let judged = check(&history, &Bounds::default()).into_result().unwrap();
    assert_eq!((history.events().len(), judged.operations, judged.unknown), (1_600, 800, 0));
}

#[test]
fn a_foreign_file_in_the_folder_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut foreign =
        OpenOptions::new().create(true).append(true).open(folder.path().join("notes.txt")).unwrap();
    foreign.write_all(b"not a history\n").unwrap();
    assert_eq!(History::read_folder(folder.path()).unwrap(), History::default());
}
