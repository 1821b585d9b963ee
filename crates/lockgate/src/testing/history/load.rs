//! Reads a history back, also that of a process that was killed in the middle of a line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::History;
use super::event::Event;

/// What the file of a recorder is called.
pub(super) const EXTENSION: &str = "history.jsonl";

/// Why a history could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system said no.
    #[error("cannot read the history {}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line that is not the last one makes no sense: the file was damaged, not just cut short.
    #[error("line {line} of the history {} is damaged: {source}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

impl History {
    /// Reads the files of all recorders in `folder`.
    ///
    /// # Errors
    ///
    /// See [`History::read_file`].
    pub fn read_folder(folder: &Path) -> Result<Self, ReadError> {
        let mut history = Self::default();
        for path in recorded_files(folder).map_err(|source| ReadError::Io { path: folder.into(), source })? {
            history.add_file(&path)?;
        }
        Ok(history)
    }

    /// Reads the file of one recorder. A last line without its end is what a killed process leaves; it is dropped
    /// and counted ([`History::torn_lines`]).
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a line with an end makes no sense.
    pub fn read_file(path: &Path) -> Result<Self, ReadError> {
        let mut history = Self::default();
        history.add_file(path)?;
        Ok(history)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), ReadError> {
        let bytes = fs::read(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if line.last() == Some(&b'\n') {
                let event: Event = serde_json::from_slice(line).map_err(|source| ReadError::Damaged {
                    path: path.into(),
                    line: index + 1,
                    source,
                })?;
                self.events.push(event);
            } else {
                // Nothing is lost with it: an `invoke` that was not fully written was never sent, and an end
                // that was not fully written leaves the outcome unknown.
                self.torn_lines += 1;
            }
        }
        Ok(())
    }
}

/// The recorders' files in a folder, in a fixed order, so that a verdict reads the same each time.
fn recorded_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
