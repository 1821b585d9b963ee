//! The data folder: one server at a time, and the home of the admin token and of the key that signs passes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lockgate::line::pass::PassKeys;

use crate::secret::Secret;
use crate::serve::StartError;

/// A data folder that belongs to this process as long as this value lives. The lock is the operating system's: it ends
/// with the process, however that ends.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Creates the folder if need be, and takes it.
    pub(crate) fn take(path: &Path) -> Result<Self, StartError> {
        let unusable = |why: io::Error| {
            StartError::new(format!(
                "cannot use the data folder {}: {why}; make it writable for this user, or name another with --data",
                path.display()
            ))
        };
        fs::create_dir_all(path).map_err(unusable)?;
        let lock = open_private(&path.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StartError::new(format!(
                "another lockgate server uses the data folder {}; stop it, or name another with --data",
                path.display()
            ))),
            Err(TryLockError::Error(why)) => Err(unusable(why)),
        }
    }

    /// The admin token that is kept here, and whether it was made just now.
    pub(crate) fn admin_token(&self) -> Result<(Secret, bool), StartError> {
        let path = self.admin_token_path();
        let explain = |why: String| {
            StartError::new(format!(
                "cannot use the admin token in {}: {why}; repair or delete that file, or give --admin-token",
                path.display()
            ))
        };
        let mut file = open_private(&path).map_err(|why| explain(why.to_string()))?;
        let mut kept = String::new();
        file.read_to_string(&mut kept).map_err(|why| explain(why.to_string()))?;
        if !kept.trim().is_empty() {
            return Ok((kept.trim().parse().map_err(|why: &str| explain(why.to_owned()))?, false));
        }
        let token = Secret::random().map_err(|why| explain(why.to_string()))?;
        let written = writeln!(file, "{}", token.reveal()).and_then(|()| file.sync_all());
        written.map_err(|why| explain(why.to_string()))?;
        Ok((token, true))
    }

    /// The key for passes that is kept here; made if there is none.
    pub(crate) fn pass_keys(&self) -> Result<PassKeys, StartError> {
        let path = self.pass_key_path();
        let explain = |why: String| {
            StartError::new(format!(
                "cannot use the pass key in {}: {why}; or delete that file, or give --pass-key",
                path.display()
            ))
        };
        let mut file = open_private(&path).map_err(|why| explain(why.to_string()))?;
        let mut kept = String::new();
        file.read_to_string(&mut kept).map_err(|why| explain(why.to_string()))?;
        if !kept.trim().is_empty() {
            return PassKeys::from_pkcs8_pem(&kept).map_err(|why| explain(why.to_string()));
        }
        let keys = PassKeys::generate();
        let written = file.write_all(keys.to_pkcs8_pem().as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|why| explain(why.to_string()))?;
        Ok(keys)
    }

    fn pass_key_path(&self) -> PathBuf {
        self.path.join("pass-key.pem")
    }

    /// Where the embedded store keeps its journal.
    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path.join("journal.db")
    }

    pub(crate) fn admin_token_path(&self) -> PathBuf {
        self.path.join("admin-token")
    }
}

/// Opens a file, making it if need be, that only this user may read.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataFolder::take(folder.path()).unwrap();
        let refused = DataFolder::take(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("another lockgate server uses") && refused.contains("--data"), "{refused}");
        drop(first);
        DataFolder::take(folder.path()).unwrap();
    }

    #[test]
    fn the_admin_token_is_made_once_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        let (made, is_new) = data.admin_token().unwrap();
        let (kept, is_new_again) = data.admin_token().unwrap();
        assert!(is_new && !is_new_again);
        assert_eq!(made.reveal(), kept.reveal());
        let mode = fs::metadata(data.admin_token_path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_pass_key_is_made_once_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        let made = data.pass_keys().unwrap();
        assert_eq!(data.pass_keys().unwrap().kid(), made.kid());
        let path = data.pass_key_path();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        fs::write(&path, "not a key").unwrap();
        let refused = data.pass_keys().unwrap_err().to_string();
        assert!(refused.contains("pass-key.pem") && refused.contains("--pass-key"), "{refused}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_refused_with_the_remedy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = DataFolder::take(&file.path().join("data")).unwrap_err().to_string();
        assert!(refused.contains("--data"), "{refused}");
    }
}
