//! Every connection is an open file, and many systems allow a process only 1,024 of them unless it asks for more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is open besides connections: the store, the ledger, the journal, the log.
const BESIDES: u64 = 256;

/// Asks for as many as the connections need, and warns if it does not get them.
pub(super) fn raise_limit_for(connections: usize) {
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(BESIDES);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Some(wanted) = raised(current, maximum, needed)
        && let Err(why) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::warn!(%why, "the limit of open files cannot be raised");
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if allowed < needed {
        tracing::warn!(
            allowed,
            needed,
            "too few open files are allowed for --max-connections: raise the hard limit (`ulimit -Hn`, LimitNOFILE= of \
             systemd), or lower --max-connections"
        );
    }
}

/// What to ask for, if it has to be asked. `None` is no limit.
fn raised(current: Option<u64>, maximum: Option<u64>, needed: u64) -> Option<u64> {
    let wanted = needed.min(maximum.unwrap_or(u64::MAX));
    current.filter(|&current| current < wanted).map(|_| wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_for_what_is_needed_as_far_as_it_may() {
        assert_eq!(raised(Some(1_024), Some(500_000), 10_256), Some(10_256));
        assert_eq!(raised(Some(1_024), Some(4_096), 10_256), Some(4_096));
        assert_eq!(raised(Some(1_024), None, 10_256), Some(10_256));
        assert_eq!(raised(Some(20_000), Some(500_000), 10_256), None);
        assert_eq!(raised(None, None, 10_256), None);
        assert_eq!(raised(Some(4_096), Some(4_096), 10_256), None);
    }
}
