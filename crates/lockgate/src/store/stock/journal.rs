//! The journal: every change, in the order in which it happened.

use std::fmt;
use std::time::Duration;

use super::{Campaign, CampaignChange, HoldId, Terms, UsedPass};
use crate::clock::Timestamp;
use crate::key::Name;

/// A place in a partition's journal. Later entries have larger ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalPosition {
    pub(crate) major: u64,
    pub(crate) minor: u64,
}

impl JournalPosition {
    /// Before the first entry.
    pub const START: JournalPosition = JournalPosition { major: 0, minor: 0 };

    pub(crate) const fn new(major: u64, minor: u64) -> Self {
        Self { major, minor }
    }

    /// The smallest position after this one.
    #[cfg(feature = "redis")]
    pub(crate) const fn next(self) -> Self {
        match self.minor.checked_add(1) {
            Some(minor) => Self { minor, ..self },
            None => Self { major: self.major.saturating_add(1), minor: 0 },
        }
    }

    /// A position before this one, and after all that are before it.
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    pub(crate) const fn previous(self) -> Self {
        match (self.major, self.minor) {
            (0, 0) => self,
            (major, 0) => Self { major: major - 1, minor: u64::MAX },
            (major, minor) => Self { major, minor: minor - 1 },
        }
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('-')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for JournalPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.major, self.minor)
    }
}

/// Somebody who reads the journal together with others: an entry goes to one reader of a group, and stays with it until it
/// is acknowledged or claimed by another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JournalReader {
    /// Who shares the work. Every group gets every entry.
    pub group: Name,
    /// Who this is. Two that are called the same are given the same entries.
    pub name: Name,
}

/// What a reader of the journal is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalTaken {
    /// An entry.
    Entry(JournalEntry),
    /// An entry that this program does not understand: somebody else's, or a newer one's.
    Unreadable {
        /// Where it stands.
        position: JournalPosition,
        /// What it says.
        content: String,
    },
    /// An entry that was given to this reader before, and that somebody has removed from the journal since.
    Gone {
        /// Where it stood.
        position: JournalPosition,
    },
}

impl JournalTaken {
    /// Where it stands.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        match self {
            JournalTaken::Entry(entry) => entry.position,
            JournalTaken::Unreadable { position, .. } | JournalTaken::Gone { position } => *position,
        }
    }
}

/// How far a group of readers is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStanding {
    /// Where the last entry stands that was ever written.
    pub last: JournalPosition,
    /// Where the oldest entry stands that the group has not acknowledged, be it with a reader or not; `None` when all are.
    pub oldest_waiting: Option<JournalPosition>,
    /// How long that one has been waiting, in whole milliseconds.
    pub behind: Duration,
}

/// One step of one campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Where it stands.
    pub position: JournalPosition,
    /// What has changed.
    pub campaign: Campaign,
    /// The number of the change; of several that happened in one step (coupons issued to several users), the first.
    pub rev: u64,
    /// When, by the store's clock; on Redis in whole milliseconds.
    pub at: Timestamp,
    /// How.
    pub change: JournalChange,
}

impl JournalEntry {
    /// The number of the last change in it.
    #[must_use]
    pub fn last_rev(&self) -> u64 {
        self.rev + self.change.revs() - 1
    }
}

/// How a campaign has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "durable", serde(tag = "what", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum JournalChange {
    /// It was opened, or got other terms.
    Opened {
        /// Its terms from then on.
        terms: Terms,
    },
    /// It was paused, resumed, closed or restocked.
    Changed {
        /// How.
        change: CampaignChange,
    },
    /// A coupon was issued to these users: one change each, in this order, with consecutive numbers.
    Issued {
        /// The number of the first grant.
        seq: u64,
        /// Who.
        users: Vec<Name>,
        /// The passes that were used up for it: none, or one per user in the same order.
        #[cfg_attr(feature = "durable", serde(default, skip_serializing_if = "Vec::is_empty"))]
        passes: Vec<UsedPass>,
    },
    /// Somebody bought some.
    Bought {
        /// The number of the grant.
        seq: u64,
        /// Who.
        user: Name,
        /// How many.
        quantity: u64,
        /// The client's own name for the request, or the order's.
        request: Option<Name>,
        /// The pass that was used up for it.
        #[cfg_attr(feature = "durable", serde(default, skip_serializing_if = "Option::is_none"))]
        pass: Option<UsedPass>,
    },
    /// Some were put aside.
    Held {
        /// Which hold.
        id: HoldId,
        /// For whom.
        user: Name,
        /// How many.
        quantity: u64,
        /// Until when.
        expires_at: Timestamp,
        /// The pass that was used up for it.
        #[cfg_attr(feature = "durable", serde(default, skip_serializing_if = "Option::is_none"))]
        pass: Option<UsedPass>,
    },
    /// A hold became a grant.
    Confirmed {
        /// Which hold.
        id: HoldId,
        /// The number of the grant.
        seq: u64,
        /// Whose.
        user: Name,
        /// How many.
        quantity: u64,
    },
    /// A hold was given back.
    Cancelled {
        /// Which hold.
        id: HoldId,
        /// Whose.
        user: Name,
        /// How many.
        quantity: u64,
    },
    /// A hold's time was over.
    Expired {
        /// Which hold.
        id: HoldId,
        /// Whose.
        user: Name,
        /// How many.
        quantity: u64,
    },
    /// Changes were lost with a server, and the campaign goes on without them: nobody knows any more what they were.
    Lost {
        /// How many.
        count: u64,
    },
    /// A grant was taken back.
    Revoked {
        /// The number of the grant.
        seq: u64,
        /// Whose.
        user: Name,
        /// How many.
        quantity: u64,
    },
}

impl JournalChange {
    /// How many changes it is.
    #[must_use]
    pub fn revs(&self) -> u64 {
        match self {
            JournalChange::Issued { users, .. } => users.len() as u64,
            JournalChange::Lost { count } => *count,
            _ => 1,
        }
    }
}

#[cfg(test)]
#[cfg(feature = "durable")]
mod tests {
    use super::*;
    use crate::store::Token;

    fn name(text: &str) -> Name {
        Name::new("name", text).unwrap()
    }

    /// What stands in journals since before there were passes: it is read, and written the same.
    #[test]
    fn an_entry_without_a_pass_is_written_as_it_always_was() {
        let held = format!(r#"{{"what":"held","id":"{:032x}","user":"a","quantity":1,"expires_at":9}}"#, 7);
        let always = [
            r#"{"what":"opened","terms":{"quantity":3,"opens_at":null,"closes_at":null,"per_user":2}}"#,
            r#"{"what":"issued","seq":1,"users":["a","b"]}"#,
            r#"{"what":"bought","seq":1,"user":"a","quantity":2,"request":null}"#,
            &held,
        ];
        for text in always {
            let change: JournalChange = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&change).unwrap(), text);
        }
    }

    #[test]
    fn what_is_written_of_passes_is_read_again() {
        let pass = UsedPass { jti: Token::from_bits(u128::MAX), expires_at: Timestamp::from_micros(9) };
        let terms = Terms::new(3).unwrap().demanding_pass_of(name("line\0"));
        let changes = [
            JournalChange::Opened { terms },
            JournalChange::Issued { seq: 1, users: vec![name("a")], passes: vec![pass] },
            JournalChange::Bought { seq: 1, user: name("a"), quantity: 1, request: None, pass: Some(pass) },
        ];
        for change in changes {
            let text = serde_json::to_string(&change).unwrap();
            assert_eq!(serde_json::from_str::<JournalChange>(&text).unwrap(), change, "{text}");
        }
    }
}
