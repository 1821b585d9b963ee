//! The lab: measures, and tells the truth about what it measured.
//!
//! - [`mod@bench`]: limit, peers and ours in one run, interleaved, as ratios with their spread.
//! - [`lab`]: the strategies of the field side by side, and whether each is what it claims.
//! - [`faults`]: what happens to a lock when processes, networks and servers fail; bounds measured, histories judged.

pub mod bench;
pub mod faults;
pub mod lab;
