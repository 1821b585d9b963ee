//! Free ports on the loopback interface.
//!
//! Ports lie *below* the range from which the system serves outgoing connections. A client that keeps trying to
//! reach a killed server could otherwise be given that very port as its own, connect to itself, and keep the
//! server from ever coming back.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use super::ServiceError;

/// Below are the ports that people know by heart.
const FIRST: u16 = 15_000;
/// What Linux comes with; asked for at run time, since it can be set.
const USUAL_EPHEMERAL_START: u16 = 32_768;
const TRIES: u16 = 200;
/// How often a whole service is started again because somebody took a port between our look and its bind.
const ATTEMPTS: usize = 5;

/// A port that nobody listens on, and that this process has not given out before.
pub(super) fn free_port() -> Result<u16, ServiceError> {
    static GIVEN_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given_out = GIVEN_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let given_out = given_out.get_or_insert_default();
    let end = ephemeral_start();
    // Processes start at different places, so that they seldom look at the same port at the same time.
    let mut candidate = random_port_between(FIRST, end);
    for _ in 0..TRIES {
        if !given_out.contains(&candidate) && is_free(candidate) {
            given_out.insert(candidate);
            return Ok(candidate);
        }
        candidate = if candidate + 1 >= end { FIRST } else { candidate + 1 };
    }
    any_free_port().map_err(ServiceError::while_trying_to("find a free port on 127.0.0.1"))
}

/// Runs `start` again, with other ports, when one of its ports was taken in the meantime.
pub(super) fn retry_on_taken_port<T>(
    mut start: impl FnMut() -> Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(ServiceError::PortTaken { .. }) => {}
            outcome => return outcome,
        }
    }
    start()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn any_free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn random_port_between(first: u16, end: u16) -> u16 {
    let random = RandomState::new().hash_one(std::process::id());
    let width = u64::from(end - first);
    first + u16::try_from(random % width).unwrap_or(0)
}

/// Where the system's own range begins. A machine with an unusual one gets the usual one: what is free is
/// checked in any case.
fn ephemeral_start() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .filter(|start| *start > FIRST + 1_000)
        .unwrap_or(USUAL_EPHEMERAL_START)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_out_twice() {
        let ports: HashSet<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn a_taken_port_is_tried_again_but_not_for_ever() {
        let mut attempts = 0;
        let outcome: Result<(), _> = retry_on_taken_port(|| {
            attempts += 1;
            Err(ServiceError::PortTaken { server: "test" })
        });
        assert!(matches!(outcome, Err(ServiceError::PortTaken { .. })));
        assert_eq!(attempts, ATTEMPTS);
    }
}
