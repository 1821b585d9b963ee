//! One row of the ledger.

use std::fmt;

use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{Campaign, CampaignChange, HoldId, JournalChange, JournalEntry, Terms};

/// One change of one campaign: what the ledger keeps under (campaign, rev), and what a [`Sink`](super::Sink) is given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// What has changed.
    pub campaign: Campaign,
    /// The number of the change: 1, 2, 3 … without a gap.
    pub rev: u64,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// How.
    pub what: What,
    /// The number of the grant, if it is one or takes one back.
    pub seq: Option<u64>,
    /// Whose, if it is somebody's and was not erased.
    pub user: Option<Name>,
    /// How many, if it is about some.
    pub quantity: Option<u64>,
    /// What else there is to say: the hold, the client's request, the terms.
    pub detail: Option<String>,
}

macro_rules! what {
    ($($(#[$doc:meta])* $what:ident = $word:literal),+ $(,)?) => {
        /// How a campaign has changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum What { $($(#[$doc])* $what),+ }

        impl What {
            /// The word for it in the ledger.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(What::$what => $word),+ }
            }

            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(What::$what),)+ _ => None }
            }
        }
    };
}

what! {
    /// It was opened, or got other terms.
    Opened = "opened",
    /// It was paused, resumed, closed or restocked.
    Changed = "changed",
    /// A coupon was issued.
    Issued = "issued",
    /// Some were bought.
    Bought = "bought",
    /// Some were put aside.
    Held = "held",
    /// A hold became a grant.
    Confirmed = "confirmed",
    /// A hold was given back.
    Cancelled = "cancelled",
    /// A hold's time was over.
    Expired = "expired",
    /// A grant was taken back.
    Revoked = "revoked",
    /// A change that was lost with a server: nobody knows what it was.
    Lost = "lost",
}

impl What {
    /// Whether somebody has something since.
    #[must_use]
    pub const fn is_grant(self) -> bool {
        matches!(self, What::Issued | What::Bought | What::Confirmed)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Record {
    /// That something has happened, and nothing else.
    pub(crate) const fn without_content(campaign: Campaign, rev: u64, at: Timestamp, what: What) -> Self {
        Self { campaign, rev, at, what, seq: None, user: None, quantity: None, detail: None }
    }

    /// The rows of an entry: one, or one per user.
    pub(crate) fn all_of(entry: JournalEntry, rows: &mut Vec<Record>) {
        let JournalEntry { campaign, rev, at, change, .. } = entry;
        let row = |what| Record::without_content(campaign.clone(), rev, at, what);
        let of_hold = |what, seq, user, quantity, id: HoldId| Record {
            seq,
            user: Some(user),
            quantity: Some(quantity),
            detail: Some(id.to_string()),
            ..row(what)
        };
        rows.push(match change {
            JournalChange::Issued { seq, users, .. } => {
                let numbered = (rev..).zip(seq..).zip(users);
                rows.extend(numbered.map(|((rev, seq), user)| Record {
                    rev,
                    seq: Some(seq),
                    user: Some(user),
                    quantity: Some(1),
                    ..row(What::Issued)
                }));
                return;
            }
            JournalChange::Lost { count } => {
                rows.extend((rev..rev + count).map(|rev| Record { rev, ..row(What::Lost) }));
                return;
            }
            JournalChange::Opened { terms } => {
                Record { quantity: Some(terms.quantity), detail: Some(written(&terms)), ..row(What::Opened) }
            }
            JournalChange::Changed { change } => {
                let (word, by) = written_change(change);
                Record { quantity: by, detail: Some(word.to_owned()), ..row(What::Changed) }
            }
            JournalChange::Bought { seq, user, quantity, request, .. } => Record {
                seq: Some(seq),
                user: Some(user),
                quantity: Some(quantity),
                detail: request.map(|request| request.as_str().to_owned()),
                ..row(What::Bought)
            },
            JournalChange::Held { id, user, quantity, expires_at, .. } => Record {
                detail: Some(format!("{id} {}", expires_at.as_micros())),
                ..of_hold(What::Held, None, user, quantity, id)
            },
            JournalChange::Confirmed { id, seq, user, quantity } => {
                of_hold(What::Confirmed, Some(seq), user, quantity, id)
            }
            JournalChange::Cancelled { id, user, quantity } => {
                of_hold(What::Cancelled, None, user, quantity, id)
            }
            JournalChange::Expired { id, user, quantity } => of_hold(What::Expired, None, user, quantity, id),
            JournalChange::Revoked { seq, user, quantity } => {
                Record { seq: Some(seq), user: Some(user), quantity: Some(quantity), ..row(What::Revoked) }
            }
        });
    }

    /// What the row says, as the journal said it; `None` when no journal ever did.
    pub(crate) fn change(&self) -> Option<JournalChange> {
        let hold = || HoldId::parse(self.detail.as_deref()?);
        Some(match self.what {
            What::Opened => JournalChange::Opened { terms: read_terms(self.detail.as_deref()?)? },
            What::Changed => {
                JournalChange::Changed { change: read_change(self.detail.as_deref()?, self.quantity)? }
            }
            What::Lost => JournalChange::Lost { count: 1 },
            What::Issued => {
                JournalChange::Issued { seq: self.seq?, users: vec![self.owner()?], passes: Vec::new() }
            }
            What::Bought => {
                let request = self.detail.as_deref().map(|request| Name::new("request", request).ok());
                let request = match request {
                    Some(request) => Some(request?),
                    None => None,
                };
                JournalChange::Bought {
                    seq: self.seq?,
                    user: self.owner()?,
                    quantity: self.quantity?,
                    request,
                    pass: None,
                }
            }
            What::Held => {
                let (id, expires_at) = self.detail.as_deref()?.split_once(' ')?;
                JournalChange::Held {
                    id: HoldId::parse(id)?,
                    user: self.owner()?,
                    quantity: self.quantity?,
                    expires_at: Timestamp::from_micros(expires_at.parse().ok()?),
                    pass: None,
                }
            }
            What::Confirmed => JournalChange::Confirmed {
                id: hold()?,
                seq: self.seq?,
                user: self.owner()?,
                quantity: self.quantity?,
            },
            What::Cancelled => {
                JournalChange::Cancelled { id: hold()?, user: self.owner()?, quantity: self.quantity? }
            }
            What::Expired => {
                JournalChange::Expired { id: hold()?, user: self.owner()?, quantity: self.quantity? }
            }
            What::Revoked => {
                JournalChange::Revoked { seq: self.seq?, user: self.owner()?, quantity: self.quantity? }
            }
        })
    }

    /// Whose it is. Whoever was erased still has it, under a name that says nothing: the number of the grant or of the change.
    fn owner(&self) -> Option<Name> {
        match &self.user {
            Some(user) => Some(user.clone()),
            None => Name::new("user", format!("erased {}", self.seq.unwrap_or(self.rev))).ok(),
        }
    }

    /// What it adds to the grants of its campaign, or takes from them.
    pub(crate) fn granted(&self) -> i64 {
        let quantity = i64::try_from(self.quantity.unwrap_or(0)).unwrap_or(i64::MAX);
        match self.what {
            what if what.is_grant() => quantity,
            What::Revoked => -quantity,
            _ => 0,
        }
    }

    /// Whether both say the same of the same change. Where a user was erased, nothing is left to compare.
    pub(crate) fn says_the_same_as(&self, other: &Record) -> bool {
        let is_erased = self.is_erased() || other.is_erased();
        let same_person = is_erased || (self.user == other.user && self.detail == other.detail);
        same_person
            && (&self.campaign, self.rev, self.at, self.what, self.seq, self.quantity)
                == (&other.campaign, other.rev, other.at, other.what, other.seq, other.quantity)
    }

    fn is_erased(&self) -> bool {
        self.user.is_none() && !matches!(self.what, What::Opened | What::Changed | What::Lost)
    }
}

/// Terms, as a row has them: `300 opens=9000000 closes=10000000 per_user=2 line=tour`. The line is last, because its name may
/// hold anything.
fn written(terms: &Terms) -> String {
    let mut text = terms.quantity.to_string();
    let parts = [
        ("opens", terms.opens_at.map(Timestamp::as_micros)),
        ("closes", terms.closes_at.map(Timestamp::as_micros)),
        ("per_user", terms.per_user),
    ];
    for (word, number) in parts {
        if let Some(number) = number {
            text.push_str(&format!(" {word}={number}"));
        }
    }
    if let Some(line) = &terms.line {
        text.push_str(&format!("{LINE}{line}"));
    }
    text
}

const LINE: &str = " line=";

fn read_terms(text: &str) -> Option<Terms> {
    // Before the line there are only numbers and words of ours.
    let (text, line) = text.split_once(LINE).map_or((text, None), |(text, line)| (text, Some(line)));
    let line = match line {
        Some(line) => Some(Name::new("line", line).ok()?),
        None => None,
    };
    let mut words = text.split(' ');
    let quantity = words.next()?.parse().ok()?;
    let mut terms = Terms { quantity, opens_at: None, closes_at: None, per_user: None, line };
    for word in words {
        let (word, number) = word.split_once('=')?;
        let number: u64 = number.parse().ok()?;
        match word {
            "opens" => terms.opens_at = Some(Timestamp::from_micros(number)),
            "closes" => terms.closes_at = Some(Timestamp::from_micros(number)),
            "per_user" => terms.per_user = Some(number),
            _ => return None,
        }
    }
    Some(terms)
}

fn written_change(change: CampaignChange) -> (&'static str, Option<u64>) {
    match change {
        CampaignChange::Pause => ("pause", None),
        CampaignChange::Resume => ("resume", None),
        CampaignChange::Close => ("close", None),
        CampaignChange::Restock { by } => ("restock", Some(by)),
    }
}

fn read_change(word: &str, by: Option<u64>) -> Option<CampaignChange> {
    Some(match word {
        "pause" => CampaignChange::Pause,
        "resume" => CampaignChange::Resume,
        "close" => CampaignChange::Close,
        "restock" => CampaignChange::Restock { by: by? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{CampaignKind, JournalPosition};

    fn name(text: &str) -> Name {
        Name::new("name", text).unwrap()
    }

    #[test]
    fn what_a_row_says_is_what_the_journal_said() {
        let (id, user, quantity) = (HoldId::random(), name("a\0 b"), 7);
        let terms = Terms::new(300).unwrap().per_user(2).unwrap();
        let window =
            terms.clone().between(Some(Timestamp::from_millis(9)), Some(Timestamp::from_millis(10))).unwrap();
        let changes = [
            JournalChange::Opened { terms: terms.clone() },
            JournalChange::Opened { terms: terms.demanding_pass_of(name("a line=\0 per_user=9\n")) },
            JournalChange::Opened { terms: window },
            JournalChange::Changed { change: CampaignChange::Pause },
            JournalChange::Changed { change: CampaignChange::Resume },
            JournalChange::Changed { change: CampaignChange::Close },
            JournalChange::Changed { change: CampaignChange::Restock { by: 9 } },
            JournalChange::Issued { seq: 4, users: vec![user.clone()], passes: Vec::new() },
            JournalChange::Bought { seq: 1, user: user.clone(), quantity, request: None, pass: None },
            JournalChange::Bought {
                seq: 1,
                user: user.clone(),
                quantity,
                request: Some(name("r 1")),
                pass: None,
            },
            JournalChange::Held {
                id,
                user: user.clone(),
                quantity,
                expires_at: Timestamp::from_micros(8),
                pass: None,
            },
            JournalChange::Confirmed { id, seq: 5, user: user.clone(), quantity },
            JournalChange::Cancelled { id, user: user.clone(), quantity },
            JournalChange::Expired { id, user: user.clone(), quantity },
            JournalChange::Revoked { seq: 5, user, quantity },
        ];
        let campaign = Campaign::new(CampaignKind::Deal, name("deal"));
        for change in changes {
            let (position, at) = (JournalPosition::START, Timestamp::from_millis(3));
            let mut rows = Vec::new();
            let campaign = campaign.clone();
            Record::all_of(
                JournalEntry { position, campaign, rev: 3, at, change: change.clone() },
                &mut rows,
            );
            assert_eq!(rows.len(), 1);
            assert_eq!((rows[0].rev, rows[0].change()), (3, Some(change)));
            assert_eq!(What::from_word(rows[0].what.as_str()), Some(rows[0].what));
        }
    }

    #[test]
    fn every_user_of_an_entry_is_a_row() {
        let users = ["a", "b", "c"].map(name).to_vec();
        let campaign = Campaign::new(CampaignKind::Coupon, name("c"));
        let change = JournalChange::Issued { seq: 11, users, passes: Vec::new() };
        let (position, at) = (JournalPosition::START, Timestamp::from_millis(3));
        let mut rows = Vec::new();
        Record::all_of(JournalEntry { position, campaign, rev: 21, at, change }, &mut rows);
        let told: Vec<_> = rows.iter().map(|row| (row.rev, row.seq, row.user.clone())).collect();
        let expected = [(21, 11, "a"), (22, 12, "b"), (23, 13, "c")];
        assert_eq!(told, expected.map(|(rev, seq, user)| (rev, Some(seq), Some(name(user)))));
        assert_eq!(rows.iter().map(Record::granted).sum::<i64>(), 3);
    }

    #[test]
    fn only_an_erased_user_may_differ() {
        let campaign = Campaign::new(CampaignKind::Coupon, name("c"));
        let change = JournalChange::Issued { seq: 1, users: vec![name("a")], passes: Vec::new() };
        let (position, at) = (JournalPosition::START, Timestamp::from_millis(3));
        let mut rows = Vec::new();
        Record::all_of(JournalEntry { position, campaign, rev: 1, at, change }, &mut rows);
        let row = rows.remove(0);
        let another = Record { user: Some(name("b")), ..row.clone() };
        let erased = Record { user: None, ..row.clone() };
        let later = Record { at: Timestamp::from_millis(4), ..erased.clone() };
        assert!(row.says_the_same_as(&row) && row.says_the_same_as(&erased) && erased.says_the_same_as(&row));
        assert!(!row.says_the_same_as(&another) && !row.says_the_same_as(&later));
    }
}
