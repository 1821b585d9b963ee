//! What can go wrong, as types; denials are not here.
//!
//! *Sold out* or *taken* are answers, and stand in the `Ok` of each call. An error means that there is no answer:
//! the input could not be asked ([`InvalidInput`]), the store could not be opened ([`OpenError`]) or it did not
//! answer ([`StoreError`]). Each message names the remedy.

/// The input cannot be asked of any store. Nothing was sent and nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidInput {
    /// Which input is wrong.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl InvalidInput {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }
}

/// A store could not be opened.
///
/// The variants are the cases that a program may want to tell apart; their text is written for the person who
/// has to put it right.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store URL or the configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// Nobody answers at the address.
    #[error("{0}")]
    Unreachable(String),
    /// Somebody answers, but it must not be used as it is: too old, evicting, of another layout, or not ours.
    #[error("{0}")]
    Unfit(String),
}

/// A URL as it may be shown: without user and password, and without the query, which may hold some too.
#[must_use]
pub fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let location = rest.rsplit_once('@').map_or(rest, |(_, location)| location);
    let location = location.split_once('?').map_or(location, |(location, _)| location);
    if url.contains("://") { format!("{scheme}://{location}") } else { location.to_owned() }
}

/// The store did not answer.
///
/// Whether something happened nevertheless is the difference that matters, so it is the variant.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store could not be asked: **nothing has changed**.
    #[error("the store did not take the call, nothing has changed: {0}; try again when it is back")]
    Unavailable(String),
    /// The call was sent and no answer came: it **may or may not** have happened. Every operation may be asked
    /// again with the same arguments without happening twice.
    #[error("the store did not answer, the call may or may not have happened: {0}; ask again to find out")]
    UnknownOutcome(String),
    /// The store refused the call, and would again: **nothing has changed**. A key of another type, a missing
    /// permission, a script that failed.
    #[error("the store refused the call, nothing has changed: {0}")]
    Refused(String),
    /// The server behind the store has changed, and it is being looked at whether something is missing: **nothing has
    /// changed**.
    #[error(
        "the store is another one than before and its campaigns are being checked, nothing has changed; try again in a \
         moment, or run `lockgate recover` if it stays so"
    )]
    Recovering,
    /// Too many callers wait in this process already: **nothing has changed**.
    #[error("too many callers wait already, nothing has changed; try again in {} ms", retry_after.as_millis())]
    Busy {
        /// When those who wait now will probably have been served.
        retry_after: std::time::Duration,
    },
    /// The input cannot be asked of any store.
    #[error(transparent)]
    InvalidInput(#[from] InvalidInput),
}
