//! What comes in: ids, times and JSON bodies, or a 400 that names the field.

use std::fmt;
use std::marker::PhantomData;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use lockgate::clock::Timestamp;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::error::Category;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, Required, Schema};
use utoipa::{IntoParams, ToSchema};

use crate::app::MAX_BODY_BYTES;
use crate::problem::Problem;

const MAX_ID_CHARACTERS: usize = 128;

/// Refuses ids that are not 1 to 128 of `A–Z a–z 0–9 . _ : @ -`.
pub(crate) fn check_id(field: &str, id: &str) -> Result<(), Problem> {
    let fits = (1..=MAX_ID_CHARACTERS).contains(&id.len());
    if fits && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte)) {
        return Ok(());
    }
    Err(Problem::invalid(field, "must be 1 to 128 of A-Z a-z 0-9 . _ : @ -"))
}

/// What an id looks like, for the contract.
fn id_schema() -> Schema {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[A-Za-z0-9._:@-]+$"));
    text.min_length(Some(1)).max_length(Some(MAX_ID_CHARACTERS)).into()
}

/// The `{id}` of the path, checked.
pub(crate) struct Id(pub(crate) String);

impl IntoParams for Id {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let id = ParameterBuilder::new().name("id").parameter_in(ParameterIn::Path).required(Required::True);
        vec![id.schema(Some(id_schema())).build()]
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(id) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("id", "is not UTF-8"))?;
        check_id("id", &id)?;
        Ok(Self(id))
    }
}

/// What stands in the path, as it is: for ids that we gave out.
pub(crate) struct TextOf(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for TextOf {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        text.map(|Path(text)| Self(text)).map_err(|_| Problem::invalid("id", "is not UTF-8"))
    }
}

/// The `{id}` and what follows it in the path, both checked: whose, or which one of it.
pub(crate) struct IdOf {
    pub(crate) id: String,
    pub(crate) of: String,
}

impl<S: Send + Sync> FromRequestParts<S> for IdOf {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((id, of)) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("id", "is not UTF-8"))?;
        check_id("id", &id)?;
        check_id("user", &of)?;
        Ok(Self { id, of })
    }
}

/// A JSON body.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        check_content_type(request.headers())?;
        let body = read(request.into_body()).await?;
        let Object(value) = serde_json::from_slice(&body).map_err(|why| what_is_wrong::<T>(&body, &why))?;
        Ok(Self(value))
    }
}

/// All of it. What was not announced and is too large is cut off on the way.
async fn read(body: Body) -> Result<Bytes, Problem> {
    let read = Limited::new(body, MAX_BODY_BYTES).collect().await;
    read.map(Collected::to_bytes).map_err(|why| {
        if why.is::<LengthLimitError>() {
            return Problem::too_large();
        }
        Problem::invalid("body", "could not be read to its end")
    })
}

/// Reads a body once more that could not be read, to name the field: to keep track of where one is costs those whose bodies are right.
fn what_is_wrong<T: DeserializeOwned>(body: &[u8], why: &serde_json::Error) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read: Result<Object<T>, _> = serde_path_to_error::deserialize(&mut reader);
    // What could be read has something behind it.
    read.err().map_or_else(|| Problem::invalid("body", why.to_string()), |why| misread_body(&why))
}

/// What is written as a JSON object. By itself a struct would be read from an array as well, field by field.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let media_type = given.split(';').next().unwrap_or("").trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "Send the body as JSON, with the header `Content-Type: application/json`.";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Not JSON", detail))
}

fn misread_body(why: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let message = why.inner().to_string();
    // "… at line 1 column 9" helps nobody who did not write the JSON by hand.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let path = why.path().to_string();
    // Missing and repeated fields are reported for the object around them; their names stand in backticks.
    let named = message.split('`').nth(1).filter(|_| message.contains(" field `"));
    let field = match (why.inner().classify(), named) {
        (Category::Syntax | Category::Eof | Category::Io, _) => "body".to_owned(),
        (Category::Data, None) if path == "." => "body".to_owned(),
        (Category::Data, Some(name)) if path == "." => name.to_owned(),
        (Category::Data, Some(name)) if path.rsplit('.').next() != Some(name) => format!("{path}.{name}"),
        (Category::Data, _) => path,
    };
    Problem::invalid(&field, message)
}

/// A time in JSON, as RFC 3339 writes it: `2026-11-15T09:00:00Z`.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub(crate) struct Rfc3339(pub(crate) Timestamp);

impl<'de> Deserialize<'de> for Rfc3339 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(|_| {
            D::Error::custom("must be a time as in 2026-11-15T09:00:00Z or 2026-11-15T18:00:00+09:00")
        })?;
        let micros =
            u64::try_from(time.as_microsecond()).map_err(|_| D::Error::custom("must be later than 1970"))?;
        Ok(Self(Timestamp::from_micros(micros)))
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.to_text())
    }
}

impl Rfc3339 {
    pub(crate) fn to_text(self) -> String {
        let micros = i64::try_from(self.0.as_micros()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX).to_string()
    }
}
