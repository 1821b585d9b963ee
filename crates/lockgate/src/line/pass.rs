//! A pass: the proof that somebody was admitted, which anybody can check without asking anybody.
//!
//! **Promise:** what [`PassVerifier::verify`] accepts was signed by one of its keys, for that line, and is not over. Nothing in
//! the token is believed before its signature is, and nothing in it chooses how it is checked.
//!
//! ```text
//! believing the token                        one kind of signature, keys that are known
//! M: {"alg":"none"} sub = mallory            M: {"alg":"none"} sub = mallory
//! gate: no signature is demanded → in        gate: not the header of a pass → refused
//! M: {"alg":"HS256"} signed with the key     M: {"alg":"HS256"} signed with the key
//!    that everybody may read                    that everybody may read
//! gate: the signature is right → in          gate: not the header of a pass → refused
//! ```
//!
//! **Not promised:** that a pass was not used before. It is only a text, and can be copied; a campaign that
//! [demands](crate::stock::Terms::demanding_pass_of) a pass grants each admission once, because the store counts it.
//!
//! A pass is a JWT (RFC 7519) with an Ed25519 signature (RFC 8037), so every gateway can read it:
//!
//! | part | says |
//! | --- | --- |
//! | header | `{"typ":"JWT","alg":"EdDSA","kid":…}`, and nothing else; `kid` is the RFC 7638 thumbprint of the key |
//! | `sub` | the user |
//! | `line` | the line |
//! | `jti` | the admission: a renewed pass has the same |
//! | `exp` | when the admission is over, in whole seconds, never later than it is |
//! | `iat` | when it was signed, in whole seconds |
//!
//! ```
//! use std::time::Duration;
//! use lockgate::clock::Timestamp;
//! use lockgate::key::Name;
//! use lockgate::line::pass::{PassClaims, PassError, PassKeys, PassVerifier};
//! use lockgate::store::Token;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = PassKeys::generate();
//! let (user, line) = (Name::new("user", "alice")?, Name::new("line", "tour")?);
//! let now = Timestamp::from_millis(1_750_000_000_000);
//! let until = now + Duration::from_secs(600);
//! let token = keys.sign(&PassClaims { user: &user, line: &line, jti: Token::random(), until, now })?;
//!
//! // Elsewhere, with nothing but what is published.
//! let verifier = PassVerifier::from_jwks(&keys.jwks())?;
//! assert_eq!(verifier.verify(&token, &line, now)?.user(), &user);
//! assert_eq!(verifier.verify(&token, &line, until), Err(PassError::Expired));
//! # Ok(())
//! # }
//! ```

mod jwks;
mod keys;

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header, decode_header};

use self::jwks::PublicKey;
pub use self::keys::PassKeys;
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;
use crate::store::{MAX_QUANTITY, PassUse, Token};

/// The longest token that is looked at. The longest names make about 50 KiB; control characters, which JSON writes as six
/// characters each, could make more, and such a pass is not signed.
pub const MAX_PASS_BYTES: usize = 64 * 1024;

/// The largest difference of clocks that a verifier can be told to forgive.
pub const MAX_LEEWAY: Duration = Duration::from_secs(60);

/// What a pass is to say.
#[derive(Clone, Copy, Debug)]
pub struct PassClaims<'a> {
    /// Who was admitted.
    pub user: &'a Name,
    /// To which line.
    pub line: &'a Name,
    /// Which admission it is: the same when the pass is renewed.
    pub jti: Token,
    /// When the admission is over.
    pub until: Timestamp,
    /// What time it is.
    pub now: Timestamp,
}

/// The same, as it is written.
#[derive(serde::Serialize, serde::Deserialize)]
struct Claims {
    sub: String,
    line: String,
    jti: String,
    exp: u64,
    iat: u64,
}

/// A pass that was verified. There is no other way to get one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    user: Name,
    line: Name,
    jti: Token,
    expires_at: Timestamp,
}

impl Pass {
    /// Who was admitted.
    #[must_use]
    pub fn user(&self) -> &Name {
        &self.user
    }

    /// To which line.
    #[must_use]
    pub fn line(&self) -> &Name {
        &self.line
    }

    /// Which admission it is.
    #[must_use]
    pub fn jti(&self) -> Token {
        self.jti
    }

    /// From when on it is worth nothing.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

impl From<&Pass> for PassUse {
    fn from(pass: &Pass) -> Self {
        let Pass { user, line, jti, expires_at } = pass.clone();
        Self { line, user, jti, expires_at }
    }
}

/// Why a token is no pass, or why there can be none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// It is no pass, or none that can be believed: too long, garbled, of another kind, by an unknown key, or changed.
    #[error("the pass is not valid: {0}; show it as it was given out, or enter the line again")]
    Invalid(&'static str),
    /// It was a pass, and its time is over.
    #[error("the pass is over; renew it, or enter the line again")]
    Expired,
    /// It is a pass of another line.
    #[error("the pass is for the line {line:?}; enter this line to get one for it")]
    OtherLine {
        /// Of this one.
        line: Name,
    },
}

/// Keys or a key set that cannot be used for passes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PassKeyError(pub(crate) String);

/// Checks passes, without a store and without a network. Cheap to keep, and made for many threads.
#[derive(Clone)]
pub struct PassVerifier {
    keys: Vec<PublicKey>,
    leeway: Duration,
}

impl PassVerifier {
    fn new(keys: Vec<PublicKey>) -> Self {
        Self { keys, leeway: Duration::ZERO }
    }

    /// Forgives so much difference between this clock and the one by which a pass ends. What goes on to a campaign that demands
    /// the pass is judged once more there, by the store's clock and without leeway.
    ///
    /// # Errors
    ///
    /// When it is more than [`MAX_LEEWAY`].
    pub fn with_leeway(self, leeway: Duration) -> Result<Self, InvalidInput> {
        if leeway > MAX_LEEWAY {
            return Err(InvalidInput::new("leeway", "must be at most 60 s; set the clocks instead"));
        }
        Ok(Self { leeway, ..self })
    }

    /// The pass that this token is, of whichever line, and perhaps over: for whoever shows it to a campaign, which judges both
    /// itself, by the store's clock.
    ///
    /// # Errors
    ///
    /// When it is none that we have signed.
    pub fn authenticate(&self, token: &str) -> Result<Pass, PassError> {
        read(&self.claims_of(token)?).ok_or(PassError::Invalid("it does not say what a pass says"))
    }

    /// The pass that this token is, if it is one for `line` and not over.
    ///
    /// # Errors
    ///
    /// When it is none: see [`PassError`].
    pub fn verify(&self, token: &str, line: &Name, now: Timestamp) -> Result<Pass, PassError> {
        let pass = self.authenticate(token)?;
        if pass.line != *line {
            return Err(PassError::OtherLine { line: pass.line });
        }
        if now >= pass.expires_at + self.leeway {
            return Err(PassError::Expired);
        }
        Ok(pass)
    }

    /// What the token says, after its signature was found right.
    fn claims_of(&self, token: &str) -> Result<Claims, PassError> {
        if token.len() > MAX_PASS_BYTES {
            return Err(PassError::Invalid("it is too long"));
        }
        let (message, signature) = token.rsplit_once('.').ok_or(PassError::Invalid("it is garbled"))?;
        let key = self.key_for(token)?;
        let signature =
            URL_SAFE_NO_PAD.decode(signature).map_err(|_| PassError::Invalid("its signature is garbled"))?;
        if !key.has_signed(message, &signature) {
            return Err(PassError::Invalid("its signature is wrong"));
        }
        let claims = message.split_once('.').and_then(|(_, claims)| URL_SAFE_NO_PAD.decode(claims).ok());
        let claims = claims.and_then(|claims| serde_json::from_slice(&claims).ok());
        claims.ok_or(PassError::Invalid("it does not say what a pass says"))
    }

    /// The key that the header names; the header may say nothing else.
    fn key_for(&self, token: &str) -> Result<&PublicKey, PassError> {
        let header =
            decode_header(token).map_err(|_| PassError::Invalid("it has not the header of a pass"))?;
        let key = self.keys.iter().find(|key| header.kid.as_deref() == Some(key.kid()));
        let key = key.ok_or(PassError::Invalid("no key of that name is known"))?;
        if header != header_of(key.kid()) {
            return Err(PassError::Invalid("it has not the header of a pass"));
        }
        Ok(key)
    }
}

impl fmt::Debug for PassVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kids = self.keys.iter().map(PublicKey::kid).collect::<Vec<_>>();
        f.debug_struct("PassVerifier").field("kids", &kids).field("leeway", &self.leeway).finish()
    }
}

/// The one header that the passes of a key have.
fn header_of(kid: &str) -> Header {
    Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::EdDSA) }
}

/// What verified claims mean; `None` when they are not those of a pass.
fn read(claims: &Claims) -> Option<Pass> {
    let Claims { sub, line, jti, exp, .. } = claims;
    let token = Token::parse(jti).filter(|token| token.to_string() == *jti)?;
    let expires_at = exp.checked_mul(1_000_000).filter(|micros| *micros <= MAX_QUANTITY)?;
    Some(Pass {
        user: Name::new("sub", sub).ok()?,
        line: Name::new("line", line).ok()?,
        jti: token,
        expires_at: Timestamp::from_micros(expires_at),
    })
}

#[cfg(test)]
mod tests;
