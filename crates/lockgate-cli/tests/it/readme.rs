//! The commands of the README, run as they stand there.
//!
//! A block is run when the line before it is the comment below. A line that begins with `# → ` is what the command
//! above it must print, and is compared to the letter. The server listens on another port than 8080, which the tests
//! must not need; so that address is replaced.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{ADMIN_TOKEN, ServerProcess};

const RUN_BY_CI: &str = "<!-- run by CI -->\n```sh\n";

#[test]
fn its_commands_print_what_it_says_they_print() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let blocks: Vec<_> = readme.split(RUN_BY_CI).skip(1).filter_map(|rest| rest.split_once("```")).collect();
    assert!(!blocks.is_empty(), "the README has no block that is run by CI");
    for (block, _) in blocks {
        let data = tempfile::tempdir().unwrap();
        let server = ServerProcess::start(data.path(), &[]);
        let script = block.replace("http://127.0.0.1:8080", &server.url);
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &script]).env("LOCKGATE_ADMIN_TOKEN", ADMIN_TOKEN);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let promised: String =
            block.lines().filter_map(|line| line.strip_prefix("# → ")).collect::<Vec<_>>().join("\n");
        assert!(!promised.is_empty(), "the block promises nothing: {block}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), promised);
    }
}
