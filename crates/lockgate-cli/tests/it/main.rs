//! The binary as users meet it: real processes, real ports, real exit codes.
//!
//! `cfg(test)` is always set here; written down, it tells clippy that helpers may panic as tests may.

#[cfg(test)]
mod bad_days;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod completions;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod edge;
#[cfg(test)]
mod exit_codes;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod lab_report;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod old_redis;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod process;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod serve;
#[cfg(test)]
#[cfg(feature = "otel")]
mod telemetry;
#[cfg(test)]
mod under_load;
