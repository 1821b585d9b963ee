//! The rows of a listing: what the store, the ledger and a line hold in the end.

use serde::{Deserialize, Serialize};

use super::call::one;

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Row {
    /// A grant that the store holds.
    Granted(GrantRow),
    /// A change that the ledger holds.
    Ledger(LedgerRow),
    /// What became of a place.
    Place(PlaceRow),
}

/// A grant that the store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRow {
    /// Who has it.
    pub user: String,
    /// Its number within the campaign.
    pub seq: u64,
    /// How much.
    #[serde(default = "one")]
    pub quantity: u64,
}

/// A change that the ledger holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Its number among all changes of the campaign, from 1 and without a gap.
    pub rev: u64,
    /// What changed.
    pub change: Change,
    /// The row's payload or a hash of it. Only compared: two rows of one rev must not differ in it.
    #[serde(default)]
    pub content: String,
}

/// What a ledger row says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A user got something.
    Grant {
        /// Who.
        user: String,
        /// The grant's number.
        seq: u64,
    },
    /// It was taken back.
    Revoke {
        /// From whom.
        user: String,
        /// The grant's number.
        seq: u64,
    },
    /// Anything else that has a rev: a change of the total, a hold, an expiry.
    Other,
}

/// What became of a place in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRow {
    /// Which place.
    pub place: u64,
    /// What.
    pub fate: Fate,
}

/// What becomes of a place in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Whoever stood there was admitted.
    Admitted,
    /// Whoever stood there had left.
    Left,
    /// Whoever stood there was not seen, and passed over.
    Skipped,
}

impl From<PlaceRow> for Row {
    fn from(row: PlaceRow) -> Self {
        Self::Place(row)
    }
}

impl From<GrantRow> for Row {
    fn from(row: GrantRow) -> Self {
        Self::Granted(row)
    }
}

impl From<LedgerRow> for Row {
    fn from(row: LedgerRow) -> Self {
        Self::Ledger(row)
    }
}
