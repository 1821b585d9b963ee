//! A counter that only the lock protects, and the time of the last release: in a file that all processes share.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lockgate::store::Token;

/// What is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) counter: u64,
    /// When a holder called its release, in nanoseconds of the machine's clock; 0: nobody yet.
    pub(super) released_at: u64,
}

/// See the [module](self). Removed when it is dropped by who created it.
pub(super) struct Notebook {
    file: File,
    path: PathBuf,
    is_mine: bool,
}

impl Notebook {
    pub(super) fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("lockgate-bench-{}", Token::random()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let notebook = Self { file, path, is_mine: true };
        notebook.write(Page::default())?;
        Ok(notebook)
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { file, path: path.to_owned(), is_mine: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> io::Result<Page> {
        let mut bytes = [0; 16];
        self.file.read_exact_at(&mut bytes, 0)?;
        let number =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Ok(Page { counter: number(0), released_at: number(8) })
    }

    pub(super) fn write(&self, page: Page) -> io::Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&page.counter.to_le_bytes());
        bytes[8..].copy_from_slice(&page.released_at.to_le_bytes());
        self.file.write_all_at(&bytes, 0)
    }
}

impl Drop for Notebook {
    fn drop(&mut self) {
        if self.is_mine {
            // What cannot be removed is the system's to sweep.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The same for one process alone, in memory: a file would take longer than the lock.
#[derive(Default)]
pub(super) struct Slate {
    counter: AtomicU64,
    released_at: AtomicU64,
}

/// Where this process writes.
pub(super) enum Desk {
    Shared(Notebook),
    Own(Notebook, Slate),
}

impl Desk {
    pub(super) fn read(&self) -> io::Result<Page> {
        match self {
            Desk::Shared(notebook) => notebook.read(),
            Desk::Own(_, slate) => Ok(Page {
                counter: slate.counter.load(Ordering::Relaxed),
                released_at: slate.released_at.load(Ordering::Relaxed),
            }),
        }
    }

    pub(super) fn write(&self, page: Page) -> io::Result<()> {
        match self {
            Desk::Shared(notebook) => notebook.write(page),
            Desk::Own(_, slate) => {
                slate.counter.store(page.counter, Ordering::Relaxed);
                slate.released_at.store(page.released_at, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Writes what was kept in memory to the file, for who reads it in the end.
    pub(super) fn close(&self) -> io::Result<()> {
        match self {
            Desk::Shared(_) => Ok(()),
            Desk::Own(notebook, _) => notebook.write(self.read()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_another_reads() {
        let notebook = Notebook::create().unwrap();
        let other = Notebook::open(notebook.path()).unwrap();
        let page = Page { counter: 7, released_at: u64::MAX - 1 };
        other.write(page).unwrap();
        assert_eq!(notebook.read().unwrap(), page);
    }
}
