//! Tokens that neither print nor leak by timing.

use std::fmt;
use std::str::FromStr;

use subtle::ConstantTimeEq;

/// A token. `Debug` hides it, and comparing takes as long for a near miss as for a wild guess.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// 128 random bits in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// When the operating system has no randomness to give.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    /// Whether `presented` is this secret.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// The token itself: for the one place where it is shown, and the one file where it is kept.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = &'static str;

    fn from_str(token: &str) -> Result<Self, Self::Err> {
        let sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if sendable {
            Ok(Self(token.to_owned()))
        } else {
            Err("a token is one or more visible ASCII characters, without spaces")
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_knows_itself_and_does_not_print_itself() {
        let secret: Secret = "correct-horse".parse().unwrap();
        assert!(secret.is("correct-horse"));
        assert!(!secret.is("correct-hors") && !secret.is("correct-horsf") && !secret.is(""));
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
    }

    #[test]
    fn tokens_that_no_header_can_carry_are_refused() {
        for token in ["", " ", "a b", "ü", "a\n"] {
            assert!(token.parse::<Secret>().is_err(), "{token:?}");
        }
    }
}
