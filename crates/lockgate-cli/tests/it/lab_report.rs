//! The lab's files: a run writes them, and they can be made again of its JSON without another run.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::run;

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

#[test]
fn a_page_is_made_by_a_run_and_made_again_of_its_json() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, page, again) = (inside("r.json"), inside("r.html"), inside("again.html"));
    let (charts, charts_again) = (inside("charts"), inside("deep/charts"));
    let line = format!(
        "lab --users 12 --stock 8 --rounds 1 --growth 6 --db sqlite --strategies conditional-update,mutex-around-tx \
         --json {json} --html {page} --charts {charts}"
    );
    let output = run(&line.split_whitespace().collect::<Vec<_>>());
    assert!(output.status.success(), "{output:?}");
    let table = output.stdout;
    assert!(String::from_utf8_lossy(&table).contains("conditional-update"));

    let output = run(&["lab", "report", &json, "--html", &again, "--charts", &charts_again]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, table);
    assert_eq!(text(again.as_ref()), text(page.as_ref()));
    assert!(text(page.as_ref()).contains("12 people press the button"));
    for chart in ["time.svg", "growth-database.svg", "growth-in-process.svg", "sql.svg"] {
        let drawn = text(&Path::new(&charts).join(chart));
        assert!(drawn.starts_with("<svg "), "{chart}");
        assert_eq!(drawn, text(&Path::new(&charts_again).join(chart)), "{chart}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_said_with_the_flag_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json").to_str().unwrap().to_owned();
    fs::write(&json, "{}").unwrap();
    let output = run(&["lab", "report", &json]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is no report of the lab"), "{said}");
}

#[test]
fn waiting_is_compared_with_its_estimate() {
    let line = "lab cost --waiters 2 --hold 20ms --backoff 10ms --rounds 1 --json";
    let output = run(&line.split_whitespace().collect::<Vec<_>>());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["waiters"], &report["hold_ms"]), (&2.into(), &20.0.into()));
    assert_eq!(report["policies"].as_array().unwrap().len(), 5);
    for (line, expected) in
        [("lab cost --waiters 0", "between 1 and 500"), ("lab cost --hold 11s", "between 1ms and 10s")]
    {
        let output = run(&line.split_whitespace().collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
}
