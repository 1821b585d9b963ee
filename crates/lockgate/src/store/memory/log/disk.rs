//! The file: one row per entry, readable with any SQLite tool.
//!
//! ```sql
//! SELECT position, kind, name, rev, change FROM journal WHERE name = 'summer' ORDER BY rev;
//! ```

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, Row, Transaction, params};

use super::super::line::{LineEvent, Lines};
use super::{Inbox, LineNote, Replayed};
use crate::clock::Timestamp;
use crate::error::OpenError;
use crate::key::Name;
use crate::store::{Campaign, CampaignKind, JournalEntry, JournalPosition};

/// Tells our files from those of others: `lkgt`.
const APPLICATION_ID: i32 = 0x6c6b_6774;

/// The versions before there were readers, and before there were lines.
const OLDER: std::ops::RangeInclusive<i32> = 1..=2;

/// The version of the tables below.
const FORMAT: i32 = 3;

const SCHEMA: &str = "
CREATE TABLE journal (
    position INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    grouped  TEXT,
    name     TEXT NOT NULL,
    rev      INTEGER NOT NULL,
    at_us    INTEGER NOT NULL,
    change   TEXT NOT NULL
) STRICT;
";

/// Up to where each group of readers has acknowledged all.
const READERS: &str = "
CREATE TABLE IF NOT EXISTS readers (
    name     TEXT PRIMARY KEY,
    through  INTEGER NOT NULL
) STRICT;
";

/// What happened to lines, each in its own time.
const LINES: &str = "
CREATE TABLE IF NOT EXISTS lines (
    position INTEGER PRIMARY KEY,
    line     TEXT NOT NULL,
    at_ms    INTEGER NOT NULL,
    event    TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS lines_by_name ON lines (line);
";

/// A line of which so many events are kept, and more than twice as many as there are people in it, is written anew at the next
/// opening.
const WORTH_SHORTENING: u64 = 10_000;

/// Before so many pages (4 KiB each) the write-ahead log is not carried over into the table: fewer syncs.
const WAL_PAGES: u32 = 8_192;

/// See the [module](self).
pub(super) struct Disk {
    path: PathBuf,
    connection: Connection,
}

impl Disk {
    /// Opens the file, or makes it. Nobody else can open it meanwhile.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        keep_to_ourselves(path);
        let connection = connect(path).map_err(|why| explain(path, &why))?;
        let disk = Self { path: path.to_owned(), connection };
        disk.check_format()?;
        disk.sync_all().map_err(OpenError::Config)?;
        // The file's name must survive a power loss too.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|why| {
            OpenError::Config(format!("cannot sync the folder of {}: {why}", path.display()))
        })?;
        Ok(disk)
    }

    fn check_format(&self) -> Result<(), OpenError> {
        let unreadable = |why: rusqlite::Error| explain(&self.path, &why);
        let pragma = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let tables = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = self.connection.query_row(tables, [], |row| row.get(0)).map_err(unreadable)?;
        let found =
            (pragma("application_id").map_err(unreadable)?, pragma("user_version").map_err(unreadable)?);
        match found {
            (APPLICATION_ID, FORMAT) => Ok(()),
            (APPLICATION_ID, older) if OLDER.contains(&older) => self.add_tables().map_err(unreadable),
            (0, 0) if tables == 0 => self.create().map_err(unreadable),
            (APPLICATION_ID, other) => Err(OpenError::Unfit(format!(
                "{} has format {other} and this version of Lockgate writes {FORMAT}; use the version that wrote it",
                self.path.display()
            ))),
            _ => Err(OpenError::Unfit(format!(
                "{} is a database, but not a journal of Lockgate; name another file",
                self.path.display()
            ))),
        }
    }

    fn create(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {SCHEMA} {READERS} {LINES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
        ))
    }

    fn add_tables(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {READERS} {LINES} PRAGMA user_version = {FORMAT}; COMMIT;"
        ))
    }

    /// Opens the file anew after a failure. What is in the write-ahead log is written once more and synced: a sync that has
    /// failed says nothing about what is on disk, and a second one that succeeds says nothing about the first.
    pub(super) fn reopen(&mut self) -> Result<(), String> {
        let closed = std::mem::replace(
            &mut self.connection,
            Connection::open_in_memory().map_err(|why| why.to_string())?,
        );
        // Errors of closing are those of the failure.
        let _ = closed.close();
        self.connection = connect(&self.path).map_err(|why| why.to_string())?;
        self.sync_all()
    }

    /// Carries over what is in the write-ahead log, and syncs it. Whoever wrote it may have died before its sync, and what is
    /// answered from it must be on disk.
    fn sync_all(&self) -> Result<(), String> {
        let checkpoint =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i32>(0));
        match checkpoint {
            Ok(0) => Ok(()),
            Ok(_) => Err("somebody else uses the journal".into()),
            Err(why) => Err(why.to_string()),
        }
    }

    /// Writes all of it in one transaction, and returns when it is synced.
    pub(super) fn commit(&mut self, work: &Inbox) -> Result<(), String> {
        self.insert(work).map_err(|why| why.to_string())
    }

    fn insert(&mut self, work: &Inbox) -> rusqlite::Result<()> {
        let Inbox { entries, lines, done, .. } = work;
        let transaction = self.connection.transaction()?;
        insert_entries(&transaction, entries)?;
        insert_lines(&transaction, lines)?;
        for (group, through) in done {
            let note = "INSERT OR REPLACE INTO readers VALUES (?1, ?2)";
            transaction.execute(note, params![group.as_str(), signed(*through)])?;
        }
        transaction.commit()
    }

    pub(super) fn read(&self, after: JournalPosition, limit: usize) -> Result<Vec<JournalEntry>, String> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = || {
            let mut select = self
                .connection
                .prepare("SELECT * FROM journal WHERE position > ?1 ORDER BY position LIMIT ?2")?;
            select
                .query_map(params![signed(after.major), limit], read_row)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|why| why.to_string())
    }

    /// Reads all of it.
    pub(super) fn replay(&self) -> Result<Replayed, String> {
        let explain = |why: String| {
            format!("the journal {} is damaged: {why}; restore it from a backup", self.path.display())
        };
        let mut replayed = Replayed::default();
        let select = self.connection.prepare("SELECT * FROM journal ORDER BY position");
        let mut select = select.map_err(|why| explain(why.to_string()))?;
        let entries = select.query_map([], read_row).map_err(|why| explain(why.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|why| explain(why.to_string()))?;
            replayed.add(&entry).map_err(explain)?;
        }
        self.replay_lines(&mut replayed).map_err(explain)?;
        replayed.done = self.done().map_err(|why| explain(why.to_string()))?;
        Ok(replayed.finish())
    }

    fn replay_lines(&self, replayed: &mut Replayed) -> Result<(), String> {
        let explain = |why: rusqlite::Error| why.to_string();
        let select = "SELECT line, at_ms, event FROM lines ORDER BY position";
        let mut select = self.connection.prepare(select).map_err(explain)?;
        let mut rows = select.query([]).map_err(explain)?;
        while let Some(row) = rows.next().map_err(explain)? {
            let (line, at_ms, event) = read_line_row(row).map_err(explain)?;
            replayed.add_line(&line, at_ms, &event)?;
        }
        Ok(())
    }

    /// Writes the lines anew that have far more events than people.
    pub(super) fn shorten(&mut self, lines: &Lines) -> Result<(), String> {
        self.shorten_lines(lines).map_err(|why| why.to_string())
    }

    fn shorten_lines(&mut self, lines: &Lines) -> rusqlite::Result<()> {
        let counted = "SELECT line, count(*) FROM lines GROUP BY line HAVING count(*) >= ?1";
        let mut long = Vec::new();
        {
            let mut select = self.connection.prepare(counted)?;
            let rows = select.query_map([signed(WORTH_SHORTENING)], |row| {
                Ok((row.get::<_, String>(0)?, unsigned(row.get(1)?)))
            })?;
            for row in rows {
                let (line, events) = row?;
                let line = Name::new("line", line).map_err(|why| bad(0, &why.to_string()))?;
                long.extend(
                    lines.snapshot(&line).filter(|(_, people, _)| events > 2 * people).map(|it| (line, it)),
                );
            }
        }
        let transaction = self.connection.transaction()?;
        for (line, (at_ms, _, event)) in long {
            let again =
                [LineNote::Forgotten { line: line.clone() }, LineNote::Happened { line, at_ms, event }];
            insert_lines(&transaction, &again)?;
        }
        transaction.commit()
    }

    fn done(&self) -> rusqlite::Result<Vec<(Name, u64)>> {
        let mut select = self.connection.prepare("SELECT name, through FROM readers")?;
        let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, unsigned(row.get(1)?))))?;
        let named = rows.map(|row| {
            let (name, through) = row?;
            Ok((Name::new("group", &name).map_err(|why| bad(0, &why.to_string()))?, through))
        });
        named.collect()
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn limit_pages(&self, max_pages: u32) {
        let limited =
            self.connection.query_row(&format!("PRAGMA max_page_count = {max_pages}"), [], |_| Ok(()));
        if let Err(why) = limited {
            tracing::error!(%why, "the number of pages could not be limited");
        }
    }
}

/// A new file can be read by nobody else: it holds the secrets of lines. Whatever goes wrong here goes wrong again when it is opened,
/// and is explained there.
fn keep_to_ourselves(path: &Path) {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    // A store that was dropped a moment ago may still be closing the file.
    connection.busy_timeout(Duration::from_secs(2))?;
    connection.execute_batch(&format!(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = {WAL_PAGES};
         BEGIN EXCLUSIVE; COMMIT;"
    ))?;
    Ok(connection)
}

fn insert_entries(transaction: &Transaction<'_>, entries: &[JournalEntry]) -> rusqlite::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut insert = transaction.prepare("INSERT INTO journal VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for JournalEntry { position, campaign, rev, at, change } in entries {
        let Campaign { kind, name, group } = campaign;
        insert.execute(params![
            signed(position.major),
            kind.as_str(),
            group.as_ref().map(Name::as_str),
            name.as_str(),
            signed(*rev),
            signed(at.as_micros()),
            written(change)?
        ])?;
    }
    Ok(())
}

fn insert_lines(transaction: &Transaction<'_>, lines: &[LineNote]) -> rusqlite::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut insert = transaction.prepare("INSERT INTO lines (line, at_ms, event) VALUES (?1, ?2, ?3)")?;
    for note in lines {
        match note {
            LineNote::Happened { line, at_ms, event } => {
                insert.execute(params![line.as_str(), signed(*at_ms), written(event)?])?;
            }
            LineNote::Forgotten { line } => {
                transaction.execute("DELETE FROM lines WHERE line = ?1", [line.as_str()])?;
            }
        }
    }
    Ok(())
}

fn written(it: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(it).map_err(|why| rusqlite::Error::ToSqlConversionFailure(Box::new(why)))
}

fn read_line_row(row: &Row<'_>) -> rusqlite::Result<(Name, u64, LineEvent)> {
    let line = Name::new("line", row.get::<_, String>(0)?).map_err(|why| bad(0, &why.to_string()))?;
    let event = serde_json::from_str(row.get_ref(2)?.as_str()?).map_err(|why| bad(2, &why.to_string()))?;
    Ok((line, unsigned(row.get(1)?), event))
}

fn bad(column: usize, why: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.to_owned().into())
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<JournalEntry> {
    let name =
        |column: usize, text: String| Name::new("name", text).map_err(|why| bad(column, &why.to_string()));
    let kind = CampaignKind::from_word(&row.get::<_, String>(1)?).ok_or_else(|| bad(1, "no such kind"))?;
    let group = row.get::<_, Option<String>>(2)?.map(|group| name(2, group)).transpose()?;
    let campaign = Campaign { group, ..Campaign::new(kind, name(3, row.get(3)?)?) };
    let change = row.get_ref(6)?.as_str()?;
    Ok(JournalEntry {
        position: JournalPosition::new(unsigned(row.get(0)?), 0),
        campaign,
        rev: unsigned(row.get(4)?),
        at: Timestamp::from_micros(unsigned(row.get(5)?)),
        change: serde_json::from_str(change).map_err(|why| bad(6, &why.to_string()))?,
    })
}

/// SQLite's integers are signed; none of ours comes near the difference.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn explain(path: &Path, why: &rusqlite::Error) -> OpenError {
    let shown = path.display();
    match why.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Config(format!(
            "another process uses the journal {shown}; stop it, name another file, or use Redis for several processes"
        )),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => OpenError::Unfit(format!(
            "{shown} is not a journal of Lockgate, or damaged ({why}); name another file, or restore it from a backup"
        )),
        _ => OpenError::Config(format!(
            "cannot open the journal {shown}: {why}; make its folder writable for this user, or name another file"
        )),
    }
}
