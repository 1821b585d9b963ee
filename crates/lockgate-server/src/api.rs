//! What the contract says of itself: who may call, and what every call may answer besides what it is for.
//!
//! A handler says what it takes and answers with `#[utoipa::path]`; what is common to many is here, so that it is said once.

use std::collections::BTreeMap;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, Info, InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Response};
use utoipa::{IntoResponses, PartialSchema as _, ToSchema};

/// The names of the security schemes.
pub(crate) const ADMIN: &str = "admin";
pub(crate) const APP: &str = "app";

/// What is not about one call.
pub(crate) fn about() -> OpenApi {
    let scheme = |who: &str| {
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        SecurityScheme::Http(token.description(Some(who)).build())
    };
    let mut components = Components::new();
    components.add_security_scheme(ADMIN, scheme("The admin token."));
    components.add_security_scheme(
        APP,
        scheme(
            "The app token, once one is set; the admin token does as well. Without one, app calls need none.",
        ),
    );
    let mut schemas = Vec::new();
    ProblemBody::schemas(&mut schemas);
    components.schemas.extend(schemas);
    components.schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    OpenApiBuilder::new().info(info()).components(Some(components)).build()
}

fn info() -> Info {
    InfoBuilder::new()
        .title("Lockgate")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Locks (who may act now), stock (who gets one of N) and lines (who is next).\n\n\
             Every error is problem details (RFC 9457) with a stable `code`. 429 and 503 carry `Retry-After`.",
        ))
        .build()
}

/// Problem details (RFC 9457).
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described; `Problem` writes it")]
pub(crate) struct ProblemBody {
    /// `urn:lockgate:` and the code.
    #[schema(example = "urn:lockgate:invalid")]
    r#type: String,
    /// The same for every problem of this code.
    title: String,
    status: u16,
    /// Stable; for programs.
    #[schema(example = "invalid")]
    code: String,
    /// For people; names the remedy.
    detail: String,
    /// With code `invalid`: what to correct.
    errors: Option<Vec<FieldError>>,
}

/// One thing to correct.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described; `Problem` writes it")]
pub(crate) struct FieldError {
    field: String,
    message: String,
}

/// A response whose body is problem details.
fn problem_response(description: &str) -> RefOr<Response> {
    use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder};
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemBody"))).build();
    let response = ResponseBuilder::new().description(description);
    response.content("application/problem+json", content).build().into()
}

/// Names sets of problems for `responses(…)`: `problems! { UnknownCoupon { 404: "`unknown-coupon`" } }`.
macro_rules! problems {
    ($($visible:vis $name:ident { $($status:literal : $description:literal),+ $(,)? })+) => {
        $(
            $visible struct $name;

            impl utoipa::IntoResponses for $name {
                fn responses() -> std::collections::BTreeMap<
                    String,
                    utoipa::openapi::RefOr<utoipa::openapi::Response>,
                > {
                    crate::api::problems_of(&[$((stringify!($status), $description)),+])
                }
            }
        )+
    };
}
pub(crate) use problems;

pub(crate) fn problems_of(some: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    some.iter().map(|(status, description)| ((*status).to_owned(), problem_response(description))).collect()
}

const STORE: [(&str, &str); 4] = [
    ("408", "It took too long, and may or may not have happened; ask again to find out."),
    ("429", "Too many callers; ask again after `Retry-After`."),
    ("500", "The store refused; nothing has changed, the server's log says why."),
    ("503", "The store does not answer or is recovering; ask again after `Retry-After`."),
];

const INVALID: (&str, &str) = ("400", "Malformed or invalid; `errors[].field` says what.");
const UNAUTHORIZED: (&str, &str) = ("401", "The token is missing or wrong.");
const BODY: [(&str, &str); 2] = [("413", "The body is too large."), ("415", "The body is not JSON.")];

/// What a call that reads may answer besides.
pub(crate) struct ReadProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems_of(&[&[INVALID, UNAUTHORIZED][..], &STORE].concat())
    }
}

/// What a call that needs no token may answer besides.
pub(crate) struct PublicProblems;

impl IntoResponses for PublicProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems_of(&[&[INVALID][..], &STORE].concat())
    }
}

/// What a call with a body may answer besides.
pub(crate) struct WriteProblems;

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems_of(&[&[INVALID, UNAUTHORIZED][..], &BODY, &STORE].concat())
    }
}
