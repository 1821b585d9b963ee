//! The contract itself: for programs at `/openapi.json`, for people at `/docs`. Nothing is fetched from elsewhere.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_SECURITY_POLICY;
use tower::ServiceBuilder;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::SwaggerUi;

use crate::app::AppState;

/// The page styles itself as it goes, and shows pictures that it carries in itself; everything else comes from here.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(crate) fn routes(contract: OpenApi) -> Router<AppState> {
    let policy = SetResponseHeaderLayer::overriding(CONTENT_SECURITY_POLICY, POLICY);
    Router::from(SwaggerUi::new("/docs").url("/openapi.json", contract))
        .layer(ServiceBuilder::new().layer(policy))
}
