//! Completions and manual pages: made from the command line, so they cannot lag behind it; tried, so they are of use.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::process::run;

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands of `lockgate … --help`, as people read them.
pub(crate) fn commands(path: &[&str]) -> Vec<String> {
    let help = text(&[path, &["--help"]].concat());
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let names = listed.lines().take_while(|line| line.starts_with("  "));
    // Lines that are indented more deeply go on with the one above.
    let names =
        names.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_shell_gets_completions_with_every_command() {
    let all = commands(&[]);
    assert!(all.len() > 12, "{all:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&["completions", shell]);
        for name in &all {
            assert!(script.contains(name), "{shell} knows no {name}");
        }
        for word in ["force-release", "--idempotency-key", "dead-letters"] {
            // Some shells write a flag as it is, others without its dashes.
            assert!(script.contains(word.trim_start_matches('-')), "{shell} knows no {word}");
        }
    }
}

#[test]
fn bash_completes_with_them() {
    let script = text(&["completions", "bash"]);
    let mut bash = Command::new("bash");
    let mut bash = bash.arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let asked = "COMP_WORDS=(lockgate coupons pa); COMP_CWORD=2; _lockgate lockgate pa coupons; echo \"got ${COMPREPLY[*]}\"";
    write!(bash.stdin.take().unwrap(), "{script}\n{asked}\n").unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "got pause\n");
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(text(&["man", "--out", pages.to_str().unwrap()]), "");
    let front = text(&["man"]);
    assert_eq!(std::fs::read_to_string(pages.join("lockgate.1")).unwrap(), front);
    for name in commands(&[]) {
        assert!(
            front.contains(&format!("lockgate\\-{}", name.replace('-', "\\-"))),
            "lockgate.1 names no {name}"
        );
        assert!(pages.join(format!("lockgate-{name}.1")).exists(), "{name} has no page");
        for below in commands(&[&name]) {
            let page = pages.join(format!("lockgate-{name}-{below}.1"));
            assert!(page.exists(), "{name} {below} has no page");
            let page = std::fs::read_to_string(page).unwrap();
            assert!(page.starts_with(".ie") && page.contains(".SH SYNOPSIS"), "{name} {below}: {page}");
        }
    }
    let refused = run(&["man", "--out", pages.join("lockgate.1").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--out"), "{refused:?}");
}

#[test]
fn the_page_about_the_command_line_names_every_command() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    for name in commands(&[]) {
        assert!(
            page.contains(&format!("`{name}`")) || page.contains(&format!("`{name} …`")),
            "docs/cli.md: {name}"
        );
    }
}
