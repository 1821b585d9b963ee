//! The pass of a line, in the header `Lockgate-Pass`.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use lockgate::line::pass::{Pass, PassKeys};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, Required};

const HEADER: &str = "lockgate-pass";

/// What stands in the header, if there is one.
pub(crate) struct PassHeader(Option<String>);

/// What came of looking at it. Of which line and whose it is, and whether it is over, the campaign judges.
pub(crate) enum ShownPass {
    /// There is none.
    None,
    /// One of ours.
    Signed(Pass),
    /// Something that we have not signed.
    Forged,
}

impl ShownPass {
    /// Whether a campaign that misses a pass was shown a wrong one.
    pub(crate) fn is_forged(&self) -> bool {
        matches!(self, ShownPass::Forged)
    }
}

impl PassHeader {
    pub(crate) fn read(&self, keys: &PassKeys) -> ShownPass {
        match &self.0 {
            None => ShownPass::None,
            Some(token) => keys.verifier().authenticate(token).map_or(ShownPass::Forged, ShownPass::Signed),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PassHeader {
    type Rejection = Infallible;

    /// An unreadable one is a wrong one, not a missing one.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get(HEADER);
        Ok(Self(header.map(|value| value.to_str().unwrap_or_default().trim().to_owned())))
    }
}

impl IntoParams for PassHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let header = ParameterBuilder::new().name("Lockgate-Pass").parameter_in(ParameterIn::Header);
        let token = ObjectBuilder::new().schema_type(Type::String);
        let header = header.required(Required::False).description(Some(
            "The pass of the line that the campaign demands one of; see `GET /v1/lines/{id}/tickets/{ticket}`.",
        ));
        vec![header.schema(Some(token)).build()]
    }
}
