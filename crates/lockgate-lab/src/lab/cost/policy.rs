//! The ways to wait that are compared.

use serde::Serialize;

/// How a waiter gets the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Asks on every stroke of a clock that strikes every b: what the estimate describes.
    SpinEvery,
    /// Asks, pauses for b, asks: what programs do.
    SpinPausing,
    /// Lockgate's, with pauses of b, give or take a half.
    LibrarySpin,
    /// Lockgate's, told that the lock is free.
    Notify,
    /// Lockgate's, told that the lock is its own.
    HandOff,
}

impl Policy {
    /// In the order of the report.
    pub const ALL: [Self; 5] =
        [Self::SpinEvery, Self::SpinPausing, Self::LibrarySpin, Self::Notify, Self::HandOff];

    /// As JSON calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SpinEvery => "spin-every",
            Self::SpinPausing => "spin-pausing",
            Self::LibrarySpin => "library-spin",
            Self::Notify => "notify",
            Self::HandOff => "hand-off",
        }
    }

    /// In plain words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::SpinEvery => "spin: asks every b",
            Self::SpinPausing => "spin: asks, pauses for b, asks",
            Self::LibrarySpin => "Lockgate's spin: pauses of b, give or take a half",
            Self::Notify => "notify: told that it is free",
            Self::HandOff => "hand-off: told that it has it",
        }
    }

    /// Whether it asks again and again, rather than being told.
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::SpinEvery | Self::SpinPausing | Self::LibrarySpin)
    }

    /// What its clients send, none of which its scripts call.
    pub(super) fn client_commands(self) -> &'static [&'static str] {
        match self {
            // How it is released is not part of the estimate.
            Self::SpinEvery | Self::SpinPausing => &["set"],
            Self::LibrarySpin | Self::Notify | Self::HandOff => &["eval", "evalsha", "script|load"],
        }
    }
}
