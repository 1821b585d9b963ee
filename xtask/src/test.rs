//! The checks, in the order in which they fail fastest.

use crate::contract;
use crate::lean;
use crate::setup;
use crate::steps::Steps;

const FORMAT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--all-features", "--", "--deny", "warnings"];
const DOC: &[&str] = &["doc", "--workspace", "--all-features", "--no-deps", "--document-private-items"];

/// Unit, integration, doc, README and macro tests of all crates, with every service.
const TESTS: &[&str] = &["test", "--workspace", "--all-features", "--no-fail-fast"];

/// The library as somebody compiles it who wants no Redis.
const NO_DEFAULT_FEATURES: &[&str] = &["check", "--package", "lockgate", "--no-default-features"];

/// The examples that need no service: each checks itself, and must end well.
const EXAMPLES: [(&str, &str); 10] = [
    ("example blocking", "blocking"),
    ("example coupon", "coupon"),
    ("example fencing", "fencing"),
    ("example order", "order"),
    ("example own_tables", "own_tables"),
    ("example readers", "readers"),
    ("example report_once", "report_once"),
    ("example time_deal", "time_deal"),
    ("example transfer", "transfer"),
    ("example waiting_room", "waiting_room"),
];

/// What the README tells people to type first: it must build, and it must be the binary `lockgate`.
const RELEASE: &[&str] = &["run", "--release", "--quiet", "--", "--version"];

pub(crate) fn everything() -> Result<(), String> {
    let mut steps = Steps::start();
    steps.run("set-up", setup::install_missing_programs)?;
    steps.cargo("format", FORMAT)?;
    steps.cargo("clippy", CLIPPY)?;
    steps.cargo_with("documentation", DOC, &[("RUSTDOCFLAGS", "--deny warnings")])?;
    steps.cargo("library without features", NO_DEFAULT_FEATURES)?;
    steps.run("library without features is lean", lean::check)?;
    steps.cargo("tests", TESTS)?;
    steps.run("the server against its own contract", contract::check)?;
    steps.run("what Redis has to allow", contract::check_acl)?;
    for (step, example) in EXAMPLES {
        steps.cargo(
            step,
            &["run", "--package", "lockgate", "--all-features", "--quiet", "--example", example],
        )?;
    }
    steps.cargo("release build", RELEASE)?;
    steps.finish();
    Ok(())
}

pub(crate) fn quick() -> Result<(), String> {
    let mut steps = Steps::start();
    steps.cargo("format", FORMAT)?;
    steps.cargo("clippy", CLIPPY)?;
    steps.cargo("unit tests", &["test", "--workspace", "--all-features", "--lib"])?;
    steps.cargo(
        "HTTP contract",
        &["test", "--package", "lockgate-server", "--all-features", "--test", "it"],
    )?;
    steps.cargo(
        "conformance of the embedded store",
        &[
            "test",
            "--package",
            "lockgate",
            "--all-features",
            "--test",
            "it",
            "--",
            "conformance::memory",
            "five_places",
        ],
    )?;
    steps.finish();
    Ok(())
}
