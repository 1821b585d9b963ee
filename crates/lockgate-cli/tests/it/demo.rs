//! `lockgate demo`: a sale from its beginning to its verdict.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lockgate::testing::eventually;
use serde_json::{Value, json};

use crate::process::{lockgate, run};

/// A small crowd that is quickly served.
const SMALL: [&str; 11] =
    ["demo", "--shoppers", "80", "--stock", "20", "--batch", "10", "--every", "150ms", "--seed", "5"];

#[test]
fn a_sale_is_played_verified_and_told_to_machines_and_people() {
    let output = run(&[&SMALL[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["holds"], &told["granted"], &told["seed"]), (&json!(true), &json!(20), &json!(5)));
    assert_eq!(told["checks"].as_array().unwrap().len(), 9);
    for refused in ["sold-out", "pass-required", "pass-invalid"] {
        assert!(told["refused"][refused].as_u64() > Some(0), "there is somebody of every kind: {told}");
    }
    assert!(told["left"].as_u64() > Some(0) && told["vanished"].as_u64() > Some(0), "{told}");
    let progress = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        progress.contains("dashboard    http://127.0.0.1:") && progress.contains(" arrived, "),
        "{progress}"
    );

    // More than anybody wants.
    let output = run(&["demo", "--shoppers", "10", "--stock", "50", "--batch", "10", "--every", "100ms"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("10 shoppers came") && text.ends_with("It was fair.\n"),
        "{output:?}"
    );
}

/// Killed when the test ends, however it ends.
struct Playing(Child);

impl Playing {
    fn start(more: &[&str]) -> Self {
        let mut command = lockgate(&[&SMALL[..], more].concat());
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn interrupt(&mut self) -> Option<i32> {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(eventually(Duration::from_secs(30), || self.0.try_wait().unwrap().is_some()), "it goes on");
        self.0.wait().unwrap().code()
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_can_be_kept_with_all_that_was_sold_until_it_is_interrupted() {
    let mut playing = Playing::start(&["--keep"]);
    let lines = BufReader::new(playing.0.stderr.take().unwrap()).lines();
    let kept = lines.map_while(Result::ok).find(|line| line.starts_with("serving http://")).unwrap();
    let mut words = kept.split_whitespace();
    let url = words.nth(1).unwrap().trim_end_matches('/').to_owned();
    let token = words.next_back().unwrap().to_owned();
    let shown = run(&["coupons", "show", "summer", "--json", "--server", &url, "--token", &token]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["issued"], &shown["state"]), (&json!(20), &json!("sold-out")));
    assert_eq!(playing.interrupt(), Some(0));
}

#[test]
fn whoever_interrupts_it_is_told_that_nothing_was_verified_and_nothing_stays_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut command = lockgate(&SMALL);
    command.env("TMPDIR", home.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut playing = Playing(command.spawn().unwrap());
    let mut lines = BufReader::new(playing.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    // The sale is under way.
    assert!(lines.any(|line| line.contains(" arrived, ")));
    assert_eq!(home.path().read_dir().unwrap().count(), 1);
    assert_eq!(playing.interrupt(), Some(1));
    assert!(lines.any(|line| line.contains("nothing was verified")));
    assert_eq!(home.path().read_dir().unwrap().count(), 0);
}
