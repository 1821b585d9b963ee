//! Public keys, and how they are published.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{
    AlgorithmParameters, CommonParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, OctetKeyPairParameters,
    OctetKeyPairType, PublicKeyUse,
};
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};

use super::{PassKeyError, PassVerifier};

/// A key by which passes are checked, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicKey {
    bytes: [u8; 32],
    kid: String,
}

impl PublicKey {
    /// Under the name that follows from it.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, PassKeyError> {
        let bytes =
            bytes.try_into().map_err(|_| PassKeyError("a public key of Ed25519 has 32 bytes".to_owned()))?;
        Ok(Self { bytes, kid: thumbprint(&bytes) })
    }

    pub(super) fn kid(&self) -> &str {
        &self.kid
    }

    pub(super) fn has_signed(&self, message: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(message.as_bytes(), signature).is_ok()
    }

    fn jwk(&self) -> Jwk {
        Jwk {
            common: CommonParameters {
                public_key_use: Some(PublicKeyUse::Signature),
                key_algorithm: Some(KeyAlgorithm::EdDSA),
                key_id: Some(self.kid.clone()),
                ..CommonParameters::default()
            },
            algorithm: AlgorithmParameters::OctetKeyPair(OctetKeyPairParameters {
                key_type: OctetKeyPairType::OctetKeyPair,
                curve: EllipticCurve::Ed25519,
                x: URL_SAFE_NO_PAD.encode(self.bytes),
            }),
        }
    }
}

/// By RFC 7638: the hash of the key's required members, in the order of the alphabet and without a space.
fn thumbprint(key: &[u8; 32]) -> String {
    let x = URL_SAFE_NO_PAD.encode(key);
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()))
}

pub(super) fn write(keys: &[PublicKey]) -> String {
    let set = JwkSet { keys: keys.iter().map(PublicKey::jwk).collect() };
    // Nothing in it can fail to be written.
    serde_json::to_string(&set).unwrap_or_default()
}

impl PassVerifier {
    /// The keys of a JSON Web Key Set, as [`PassKeys::jwks`](super::PassKeys::jwks) publishes it. Keys of other kinds in it are
    /// for others, and are passed over.
    ///
    /// # Errors
    ///
    /// When it is no key set, when none of its keys is an Ed25519 key for signatures, when one of those is no key, or when two
    /// have the same name.
    pub fn from_jwks(jwks: &str) -> Result<Self, PassKeyError> {
        let set: JwkSet = serde_json::from_str(jwks).map_err(|why| {
            PassKeyError(format!("this is no JSON Web Key Set: {why}; give the whole document"))
        })?;
        let mut keys: Vec<PublicKey> = Vec::new();
        for jwk in set.keys.iter().filter(|jwk| may_sign(jwk)) {
            let key = read(jwk)?;
            if keys.iter().any(|known| known.kid == key.kid && *known != key) {
                let kid = key.kid;
                return Err(PassKeyError(format!(
                    "two keys are called {kid:?}; give each a name of its own"
                )));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(PassKeyError("there is no Ed25519 key for signatures in this key set".to_owned()));
        }
        Ok(Self::new(keys))
    }
}

/// Whether passes may be signed by it: the key says so, never the pass.
fn may_sign(jwk: &Jwk) -> bool {
    let CommonParameters { public_key_use, key_algorithm, .. } = &jwk.common;
    let is_ed25519 = matches!(&jwk.algorithm, AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519);
    is_ed25519
        && public_key_use.as_ref().is_none_or(|its| *its == PublicKeyUse::Signature)
        && key_algorithm.is_none_or(|its| its == KeyAlgorithm::EdDSA)
}

fn read(jwk: &Jwk) -> Result<PublicKey, PassKeyError> {
    let AlgorithmParameters::OctetKeyPair(pair) = &jwk.algorithm else {
        return Err(PassKeyError("this is no Ed25519 key".to_owned()));
    };
    let bytes = URL_SAFE_NO_PAD.decode(&pair.x);
    let bytes = bytes.map_err(|_| PassKeyError("the x of an Ed25519 key is not base64url".to_owned()))?;
    let key = PublicKey::new(&bytes)?;
    Ok(match &jwk.common.key_id {
        Some(kid) => PublicKey { kid: kid.clone(), ..key },
        None => key,
    })
}
