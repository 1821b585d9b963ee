//! What a process full of people is told and what it says: like a worker of a lock ([`super::super::orders`]).
//!
//! | command | says | |
//! | --- | --- | --- |
//! | (start) | `ready` | the gate is open |
//! | `work` | `working` | people come, one after the other |
//! | `rest` | `resting` | nobody comes any more, and all who came are through |

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a process does all its life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeopleOrders {
    pub(super) name: String,
    /// The URL of the store, perhaps through a network that fails.
    pub(super) store: String,
    /// Where the history goes.
    pub(super) folder: PathBuf,
    pub(super) line: String,
    /// How many at a time.
    pub(super) people: u32,
    /// Whether some of them vanish without a word.
    pub(super) some_vanish: bool,
    pub(super) seed: u64,
}
