//! The keys that sign passes, and the files they are kept in.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::jwks::{self, PublicKey};
use super::{Claims, MAX_PASS_BYTES, PassClaims, PassError, PassKeyError, PassVerifier, header_of};

/// What stands before the 32 secret bytes in a PKCS#8 file of an Ed25519 key (RFC 8410).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

const NEW_KEY: &str = "make a new key with `openssl genpkey -algorithm ed25519`";

/// The key that signs passes, and all keys whose passes are accepted: this one, those before it while their passes last, and
/// the one that comes next, so that everybody knows it before it signs.
///
/// ```
/// # use lockgate::line::pass::{PassKeyError, PassKeys};
/// # fn main() -> Result<(), PassKeyError> {
/// let old = PassKeys::generate();
/// let file = old.to_pkcs8_pem(); // to be kept where nobody else reads it
///
/// // The next year: the old key does not sign any more, but its passes are good while they last.
/// let keys = PassKeys::generate().and_accept(&PassKeys::from_pkcs8_pem(&file)?.verifier());
/// assert_eq!(keys.jwks().matches("\"kid\"").count(), 2);
/// # Ok(())
/// # }
/// ```
pub struct PassKeys {
    pair: Ed25519KeyPair,
    /// As it is kept in a file.
    pkcs8: Vec<u8>,
    /// The first is the one that signs.
    accepted: Vec<PublicKey>,
}

impl PassKeys {
    /// A new key that nobody can guess.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "without randomness no key is safe, and no caller can put it right"
    )]
    pub fn generate() -> Self {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the operating system gives random bytes");
        Self::from_pkcs8([&PKCS8_HEAD[..], &secret].concat()).expect("any 32 bytes are an Ed25519 key")
    }

    /// The key in a PEM file with `BEGIN PRIVATE KEY`, as [`to_pkcs8_pem`](Self::to_pkcs8_pem) and OpenSSL write it.
    ///
    /// # Errors
    ///
    /// When it is something else; the message says what, and what to do.
    pub fn from_pkcs8_pem(pem: &str) -> Result<Self, PassKeyError> {
        Self::from_pkcs8(read_pem(pem)?)
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Result<Self, PassKeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(|why| {
            match why.to_string().as_str() {
                "WrongAlgorithm" => problem(format!("the key is not an Ed25519 key; {NEW_KEY}")),
                why => problem(format!(
                    "the key is damaged or cut short ({why}); restore its file, or {NEW_KEY}"
                )),
            }
        })?;
        let public = PublicKey::new(pair.public_key().as_ref())?;
        Ok(Self { pair, pkcs8, accepted: vec![public] })
    }

    /// The key that signs, for a file that only its owner may read (mode 0600). Whoever reads it can admit anybody.
    #[must_use]
    pub fn to_pkcs8_pem(&self) -> String {
        let text = STANDARD.encode(&self.pkcs8);
        let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        pem + "-----END PRIVATE KEY-----\n"
    }

    /// Accepts, and publishes, the keys of those as well: the ones before, or the one that comes next. This one signs.
    #[must_use]
    pub fn and_accept(mut self, others: &PassVerifier) -> Self {
        let new = others.keys.iter().filter(|key| !self.accepted.contains(key)).cloned().collect::<Vec<_>>();
        self.accepted.extend(new);
        self
    }

    /// The name of the key that signs: its thumbprint by RFC 7638.
    #[must_use]
    pub fn kid(&self) -> &str {
        self.accepted[0].kid()
    }

    /// All accepted keys as a JSON Web Key Set (RFC 7517), to be published.
    #[must_use]
    pub fn jwks(&self) -> String {
        jwks::write(&self.accepted)
    }

    /// Checks what these keys have signed.
    #[must_use]
    pub fn verifier(&self) -> PassVerifier {
        PassVerifier::new(self.accepted.clone())
    }

    /// The pass that says this. It ends at a whole second, and never after the admission.
    ///
    /// # Errors
    ///
    /// [`PassError::Expired`] when the admission is over before the next whole second, so that nothing is left to sign for;
    /// [`PassError::Invalid`] when it lasts beyond the year 2255, or when the names are so long that
    /// nobody would look at the pass.
    pub fn sign(&self, claims: &PassClaims<'_>) -> Result<String, PassError> {
        let PassClaims { user, line, jti, until, now } = claims;
        let [exp, iat] = [until, now].map(|time| time.as_micros() / 1_000_000);
        if exp <= iat {
            return Err(PassError::Expired);
        }
        let (sub, line) = (user.as_str().to_owned(), line.as_str().to_owned());
        let claims = Claims { sub, line, jti: jti.to_string(), exp, iat };
        if super::read(&claims).is_none() {
            return Err(PassError::Invalid("it would last beyond the year 2255"));
        }
        let message = format!("{}.{}", encoded(&header_of(self.kid()))?, encoded(&claims)?);
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(self.signature_of(&message)));
        if token.len() > MAX_PASS_BYTES {
            return Err(PassError::Invalid("it would be too long; use shorter names for users and lines"));
        }
        Ok(token)
    }

    pub(super) fn signature_of(&self, message: &str) -> impl AsRef<[u8]> + use<> {
        self.pair.sign(message.as_bytes())
    }
}

impl fmt::Debug for PassKeys {
    /// Of the secret nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kids = self.accepted.iter().map(PublicKey::kid).collect::<Vec<_>>();
        f.debug_struct("PassKeys").field("kids", &kids).finish_non_exhaustive()
    }
}

fn encoded(part: &impl serde::Serialize) -> Result<String, PassError> {
    let json = serde_json::to_vec(part).map_err(|_| PassError::Invalid("it cannot be written"))?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

fn problem(text: String) -> PassKeyError {
    PassKeyError(text)
}

/// The bytes of the first private key in a PEM file.
fn read_pem(pem: &str) -> Result<Vec<u8>, PassKeyError> {
    let Some((label, rest)) = pem.split_once("-----BEGIN ").and_then(|(_, rest)| rest.split_once("-----"))
    else {
        return Err(problem(format!(
            "the key is not in a PEM file (-----BEGIN PRIVATE KEY-----); {NEW_KEY}"
        )));
    };
    check_label(label)?;
    let Some((text, _)) = rest.split_once("-----END PRIVATE KEY-----") else {
        return Err(problem("the key's file is cut short: its end is missing; restore the file".to_owned()));
    };
    let text: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(text).map_err(|_| problem("the key's file is damaged; restore the file".to_owned()))
}

/// Only an unencrypted PKCS#8 key will do; of the others it is said how to get there.
fn check_label(label: &str) -> Result<(), PassKeyError> {
    let why = match label {
        "PRIVATE KEY" => return Ok(()),
        "ENCRYPTED PRIVATE KEY" => "is encrypted; decrypt it with `openssl pkey`",
        "PUBLIC KEY" => "is a public key; give the private one",
        "CERTIFICATE" => "is a certificate; give a private key",
        "OPENSSH PRIVATE KEY" => "is in the format of OpenSSH; convert it to PKCS#8",
        _ => "is not in the format PKCS#8 (-----BEGIN PRIVATE KEY-----)",
    };
    Err(problem(format!("the key {why}, or {NEW_KEY}")))
}
