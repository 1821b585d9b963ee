//! `lockgate lab report`: page and charts of a run that is long over.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use lockgate_lab::lab;
use lockgate_lab::lab::report::Report;

use super::super::{Outcome, print};
use super::pages::Pages;

#[derive(Debug, Args)]
pub(super) struct Again {
    /// What `lab --json` has written
    file: PathBuf,

    #[command(flatten)]
    pages: Pages,
}

impl Again {
    pub(super) fn run(&self) -> Outcome {
        let shown = self.file.display();
        let unreadable = |why| format!("cannot read {shown}: {why}; name a file that lab --json has written");
        let text = fs::read_to_string(&self.file).map_err(unreadable)?;
        let senseless =
            |why| format!("{shown} is no report of the lab: {why}; name a file that lab --json has written");
        let report: Report = serde_json::from_str(&text).map_err(senseless)?;
        print(&lab::table(&report));
        self.pages.write(&report)
    }
}
