//! What is not kept for ever.

/// The answer to [`Store::campaign_forget`](crate::store::Store::campaign_forget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignForget {
    /// It is gone, or was not there.
    Forgotten,
    /// It is not over, or something of it is held; nothing has changed.
    NotOver,
    /// It has changed since: this is the number of its last change. Nothing has changed now.
    Changed {
        /// The number of its last change.
        rev: u64,
    },
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
    /// This store is rebuilt from its journal and forgets nothing.
    Kept,
}

/// The answer to [`Store::user_erase`](crate::store::Store::user_erase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserErase {
    /// What was the user's is somebody's who has no name, or there was nothing.
    Erased,
    /// Something is held for the user: confirm or cancel it first. Nothing has changed.
    Held,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
    /// This store is rebuilt from its journal and forgets nothing.
    Kept,
}
