//! Whom to be when we are root: PostgreSQL refuses to run as the one who may do everything.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;

use rustix::process::geteuid;

use super::ServiceError;

/// In order of preference. The second exists on every Unix.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl User {
    /// Somebody harmless when we are root; `None`, for whoever we are, when we are not.
    pub(super) fn unprivileged() -> Result<Option<Self>, ServiceError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd")
            .map_err(ServiceError::while_trying_to("read the users in /etc/passwd"))?;
        let user = UNPRIVILEGED.iter().find_map(|name| find(&users, name));
        let nobody = || io::Error::new(io::ErrorKind::NotFound, "there is neither `postgres` nor `nobody`");
        user.map(Some)
            .ok_or_else(nobody)
            .map_err(ServiceError::while_trying_to("find a user other than root"))
    }

    /// Hands a folder over to this user.
    pub(super) fn own(self, folder: &Path) -> Result<(), ServiceError> {
        chown(folder, Some(self.uid), Some(self.gid))
            .map_err(ServiceError::while_trying_to(format!("change the owner of {}", folder.display())))
    }
}

/// Lines are `name:password:uid:gid:comment:home:shell`.
fn find(users: &str, name: &str) -> Option<User> {
    let mut fields = users
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    Some(User { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let users =
            "postgres2:x:7:8::/:\npostgres:x:101:104:PostgreSQL administrator,,,:/var/lib:/bin/bash\n";
        assert_eq!(find(users, "postgres"), Some(User { uid: 101, gid: 104 }));
        assert_eq!(find(users, "nobody"), None);
    }
}
