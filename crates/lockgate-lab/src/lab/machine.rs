//! Which machine this is, as far as it says so.

use std::fs;

use super::report::Machine;

/// What Linux tells about itself; elsewhere less.
pub(super) fn this_one() -> Machine {
    let line = |file: &str, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(value.trim_start_matches([' ', '\t', ':', '=']).trim().trim_matches('"').to_owned())
    };
    let kibibytes =
        line("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()).ok();
    let name = line("/etc/os-release", "PRETTY_NAME").unwrap_or_else(|| std::env::consts::OS.to_owned());
    Machine {
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: kibibytes.map(|kibibytes| kibibytes.saturating_mul(1_024)),
        processor: line("/proc/cpuinfo", "model name"),
        os: kernel.map_or_else(|| name.clone(), |kernel| format!("{name}, kernel {kernel}")),
    }
}
