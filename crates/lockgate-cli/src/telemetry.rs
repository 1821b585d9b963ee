//! What the program tells while it runs: log lines, and (feature `otel`) the server's requests as spans.
//!
//! **Promise:** log lines go to standard error. With the feature, and with `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment, each request
//! that the server answers is sent there as a span by OTLP over HTTP: method, *template* of the route and status, never a path, a
//! query or a header, which name users and may carry tokens. A request with a `traceparent` is part of that trace. A collector that is
//! away costs spans, never an answer; what is there when the server stops is sent first, for five seconds at the most.

use std::io::IsTerminal;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::commands::serve::LogFormat;

#[cfg(feature = "otel")]
pub(crate) use self::otel::{Spans, traced};
#[cfg(not(feature = "otel"))]
pub(crate) use self::without::{Spans, traced};

/// Where the spans of requests come from. They are no part of log lines, which have the same in other words.
const REQUESTS: &str = "lockgate_cli::requests";

/// Begins to log: from `level` on, unless `LOCKGATE_LOG` says more: `debug`, or `lockgate=trace,warn`.
pub(crate) fn begin(format: LogFormat, level: Level, spans: &Spans) {
    let wanted = std::env::var("LOCKGATE_LOG").ok().and_then(|wanted| wanted.parse().ok());
    let filter: Targets = wanted.unwrap_or_else(|| Targets::new().with_default(level));
    let filter = filter.with_target(REQUESTS, LevelFilter::OFF);
    let stderr = std::io::stderr;
    let lines = tracing_subscriber::fmt::layer().with_ansi(stderr().is_terminal()).with_writer(stderr);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(spans.layer()).init();
}

#[cfg(not(feature = "otel"))]
mod without {
    use tracing::Subscriber;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::Identity;

    use crate::commands::Failure;

    /// There are none.
    #[derive(Debug)]
    pub(crate) struct Spans;

    impl Spans {
        pub(crate) fn of_server() -> Result<Self, Failure> {
            Ok(Self)
        }

        pub(crate) fn none() -> Self {
            Self
        }

        /// None, rather than one that does nothing: that would want to hear of every span.
        pub(super) fn layer<S: Subscriber>(&self) -> Option<impl Layer<S> + use<S>> {
            None::<Identity>
        }

        pub(crate) fn flush(self) {}
    }

    pub(crate) fn traced<R>(router: R) -> R {
        router
    }
}

#[cfg(feature = "otel")]
mod otel {
    use std::fmt::Debug;
    use std::pin::Pin;
    use std::time::Duration;

    use axum::Router;
    use axum::extract::{MatchedPath, Request};
    use axum::middleware::{Next, from_fn};
    use axum::response::Response;
    use opentelemetry::propagation::TextMapPropagator as _;
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError};
    use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::field::Empty;
    use tracing::level_filters::LevelFilter;
    use tracing::{Instrument as _, Subscriber, info_span};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::registry::LookupSpan;

    use super::REQUESTS;
    use crate::commands::{Failure, trusting};

    const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

    /// How long a stopping server waits until its last spans are sent.
    const FLUSH_BOUND: Duration = Duration::from_secs(5);

    /// How long the collector may take for one batch: less than the bound above.
    const PATIENCE: Duration = Duration::from_secs(4);

    /// Where spans go; nowhere if nobody said where.
    #[derive(Debug)]
    pub(crate) struct Spans(Option<SdkTracerProvider>);

    impl Spans {
        pub(crate) fn of_server() -> Result<Self, Failure> {
            let said = |variable| std::env::var(variable).ok().filter(|url| !url.is_empty());
            let Some(endpoint) = ENDPOINTS.into_iter().find_map(said) else { return Ok(Self::none()) };
            let refused = |why: &dyn Debug| {
                let [variable, _] = ENDPOINTS;
                format!(
                    "{variable}: {endpoint:?} cannot be used ({why:?}); write http://ADDRESS:4318, or unset it"
                )
            };
            let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new(&endpoint)?);
            let exporter = exporter.build().map_err(|why| refused(&why))?;
            let mut resource = Resource::builder();
            if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
                resource = resource.with_service_name("lockgate");
            }
            let provider =
                SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter);
            Ok(Self(Some(provider.build())))
        }

        pub(crate) fn none() -> Self {
            Self(None)
        }

        pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
        where
            S: Subscriber + for<'a> LookupSpan<'a>,
        {
            let tracer = self.0.as_ref()?.tracer("lockgate");
            let layer =
                tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
            Some(layer.with_filter(Targets::new().with_target(REQUESTS, LevelFilter::INFO)))
        }

        /// Sends what is there.
        pub(crate) fn flush(self) {
            let Some(provider) = self.0 else { return };
            if let Err(why) = provider.shutdown_with_timeout(FLUSH_BOUND) {
                tracing::warn!(%why, "the last spans could not be sent");
            }
        }
    }

    /// Sends with what the rest of the program asks with, from the thread of the exporter.
    #[derive(Debug)]
    struct Sender(ureq::Agent);

    impl Sender {
        fn new(endpoint: &str) -> Result<Self, Failure> {
            let mut config =
                ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
            if endpoint.starts_with("https://") {
                config = config.tls_config(trusting(None)?);
            }
            Ok(Self(config.build().into()))
        }

        fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
            let (head, body) = request.into_parts();
            let (head, mut body) = self.0.run(Request::from_parts(head, &body[..]))?.into_parts();
            Ok(Response::from_parts(head, body.read_to_vec()?.into()))
        }
    }

    type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

    impl HttpClient for Sender {
        fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sent<'b>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async move { self.send(request) })
        }
    }

    /// With a span around each request.
    pub(crate) fn traced(router: Router) -> Router {
        router.layer(from_fn(trace))
    }

    async fn trace(request: Request, next: Next) -> Response {
        let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
        let span = info_span!(
            target: REQUESTS, "request", otel.name = format!("{} {route}", request.method()), otel.kind = "server",
            otel.status_code = Empty, http.request.method = %request.method(), http.route = route,
            http.response.status_code = Empty,
        );
        let from_afar = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
        // It fails where nobody wants spans.
        let _ = span.set_parent(from_afar);
        let answer = next.run(request).instrument(span.clone()).await;
        span.record("http.response.status_code", answer.status().as_u16());
        if answer.status().is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
        answer
    }
}
