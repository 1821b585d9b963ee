//! `lockgate bench`: how fast it is here, beside the limit and the usual ways.

use clap::Args;

use super::Outcome;

/// Measure
#[derive(Debug, Args)]
pub(crate) struct Bench {}

impl Bench {
    pub(crate) fn run(self) -> Outcome {
        Ok(())
    }
}
