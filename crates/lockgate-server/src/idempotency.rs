//! The header `Idempotency-Key`: what is asked twice under one key happens once.
//!
//! A key belongs to what is asked for: the same text sent to two lines, or for an order and for a purchase, is two keys. Nothing is
//! remembered here; the store remembers the [token](IdempotencyKey::token) with what was asked, in the same step that does it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use lockgate::store::Token;
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, Required};

use crate::problem::Problem;

const HEADER: &str = "Idempotency-Key";

const MAX_CHARACTERS: usize = 255;

/// The key of the request: demanded, and checked. To be taken after the id of the path and before the body.
#[derive(Debug)]
pub(crate) struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The token for this key within `scope`: what kind of request it is, and what it is about. Always the same for the same, and
    /// for nothing else.
    pub(crate) fn token(&self, scope: &[&str]) -> Token {
        let mut hash = Sha256::new();
        hash.update("lockgate idempotency key v1");
        for part in scope.iter().chain([&self.0.as_str()]) {
            // With its length, so that no two lists of parts read the same.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        Token::from_bits(digest[..16].iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
    }

    /// 422: this key was used before, to ask for something else.
    pub(crate) fn reused() -> Problem {
        let detail = "This Idempotency-Key was used before with another body; nothing has changed. Use a new key for a new request.";
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency-key-reused",
            "The key was used for something else",
            detail,
        )
    }
}

fn read(value: &HeaderValue) -> Option<String> {
    let key = value.to_str().ok()?;
    let fits = (1..=MAX_CHARACTERS).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| key.to_owned())
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given = parts.headers.get_all(HEADER).iter();
        let key = match (given.next(), given.next()) {
            (None, _) => {
                return Err(Problem::invalid(
                    HEADER,
                    "is required here: a header with a new value, such as a UUID, for every request that is not a repetition",
                ));
            }
            (Some(_), Some(_)) => return Err(Problem::invalid(HEADER, "must be given once")),
            (Some(value), None) => read(value),
        };
        key.map(Self).ok_or_else(|| {
            let message = format!("must be 1 to {MAX_CHARACTERS} visible ASCII characters");
            Problem::invalid(HEADER, message)
        })
    }
}

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let header = ParameterBuilder::new().name(HEADER).parameter_in(ParameterIn::Header);
        let header = header.required(Required::True).description(Some(
            "A new value for every request that is not a repetition: asking again with the same one, after an answer that got lost, \
             does nothing a second time and answers the same.",
        ));
        let key = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]+$"));
        let key = key.min_length(Some(1)).max_length(Some(MAX_CHARACTERS));
        vec![header.schema(Some(key)).build()]
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    async fn extracted(values: &[&[u8]]) -> Result<IdempotencyKey, Problem> {
        let mut request = Request::builder();
        for value in values {
            request = request.header("idempotency-key", *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        IdempotencyKey::from_request_parts(&mut parts, &()).await
    }

    #[tokio::test]
    async fn a_key_is_one_of_1_to_255_visible_characters() {
        for good in [&b"a"[..], b"8e03978e-40d5-43dd-bc93-6894a57f9324", b"\"!~\"", &[b'x'; 255]] {
            assert!(extracted(&[good]).await.is_ok(), "{good:?}");
        }
        for bad in [&b""[..], b"a b", b"a\tb", b"\xc3\xbc", b"\xff", &[b'x'; 256]] {
            let why = format!("{:?}", extracted(&[bad]).await.unwrap_err());
            assert!(why.contains("1 to 255"), "{bad:?}: {why}");
        }
        assert!(format!("{:?}", extracted(&[]).await.unwrap_err()).contains("is required"));
        assert!(format!("{:?}", extracted(&[b"a", b"a"]).await.unwrap_err()).contains("once"));
    }

    #[test]
    fn a_token_is_always_the_same_and_of_one_scope() {
        let token = |key: &str, scope: &[&str]| IdempotencyKey(key.to_owned()).token(scope);
        let one = token("key", &["admit", "tour"]);
        // Stores keep them: a version that computes others would do again what the one before has done.
        assert_eq!(one.to_string(), "23a54ad720a3e7b2a6c8d9b3a654ebef");
        let others = [
            token("key2", &["admit", "tour"]),
            token("key", &["admit", "tour2"]),
            token("key", &["order", "tour"]),
            token("key", &["admittour"]),
            token("key", &["admit", "", "tour"]),
            token("rkey", &["admit", "tou"]),
            token("tour", &["admit", "key"]),
        ];
        for other in others {
            assert_ne!(one, other);
        }
    }
}
