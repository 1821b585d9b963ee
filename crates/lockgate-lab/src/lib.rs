//! The lab: measures, and tells the truth about what it measured.
//!
//! - [`mod@bench`]: limit, peers and ours in one run, interleaved, as ratios with their spread.

pub mod bench;
