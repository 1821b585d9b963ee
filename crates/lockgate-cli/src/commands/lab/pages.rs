//! What is made of a report for people: a page, and its charts as files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use lockgate_lab::lab;
use lockgate_lab::lab::report::Report;

use super::super::Outcome;

#[derive(Debug, Args)]
pub(super) struct Pages {
    /// Write a page for people to this file: everything that was found, with charts, in one file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the charts to this folder, each as an SVG file
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

impl Pages {
    pub(super) fn write(&self, report: &Report) -> Outcome {
        if let Some(file) = &self.html {
            write(file, &lab::html(report)?, "--html")?;
        }
        let Some(folder) = &self.charts else { return Ok(()) };
        let unusable = |why| format!("cannot make {}: {why}; correct --charts", folder.display());
        fs::create_dir_all(folder).map_err(unusable)?;
        for chart in lab::charts(report)? {
            write(&folder.join(format!("{}.svg", chart.name)), &chart.standalone(), "--charts")?;
        }
        Ok(())
    }
}

/// Says which wish was about the file that cannot be written.
pub(super) fn write(file: &Path, text: &str, wish: &str) -> Outcome {
    let unwritable = |why| format!("cannot write {}: {why}; correct {wish}", file.display());
    Ok(fs::write(file, text).map_err(unwritable)?)
}
