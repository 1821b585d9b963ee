//! Where somebody stands, told whenever it changes: server-sent events.
//!
//! **Promise:** the first event comes at once, one more with each change, and the stream ends after the last one, when nothing will
//! change any more by waiting. As long as it is open its ticket is seen; when the client goes away, or the server stops, the watch
//! ends with it. A store that does not answer for a while ends no stream: browsers do not come back after an error.
//!
//! However many streams there are, the store is asked once per tick. Each holds its watch, and nothing of what it has told.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use lockgate::line::{TicketId, Watch, Whereabouts};

use super::{InLine, TicketBody, UnknownTicket, unknown_ticket};
use crate::api::PublicProblems;
use crate::app::AppState;
use crate::problem::Problem;

/// Something is sent at least this often, so that nobody on the way takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After how long a client whose stream was cut should come back.
const COME_BACK_AFTER: Duration = Duration::from_secs(3);

/// After how long the store is asked again when it did not answer, at the least.
const AFTER_AN_ERROR: Duration = Duration::from_secs(1);

/// The id of the last event. A browser comes back when a stream has ended, and says what it heard last.
const THE_END: &str = "end";

/// Tells where the holder of a ticket stands, whenever it changes, as server-sent events.
///
/// Each event is what `GET` of the ticket would answer. The stream ends after the last one (`admitted`, or how it ended), whose id
/// is `end`: who comes back with `Last-Event-ID: end` is told 204, which keeps browsers from asking for ever.
#[utoipa::path(
    get, path = "/v1/lines/{id}/tickets/{ticket}/events", tag = "lines",
    params(InLine),
    responses(
        (status = 200, description = "The stream.", content_type = "text/event-stream", body = TicketBody),
        (status = 204, description = "There is nothing more to tell."),
        UnknownTicket, PublicProblems,
    ),
)]
pub(crate) async fn watch_ticket(
    State(state): State<AppState>,
    InLine(ticket): InLine,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if headers.get("last-event-id").is_some_and(|id| id == THE_END) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut watch = ticket.watch();
    let first = watch.next().await?.unwrap_or(Whereabouts::Unknown);
    if first == Whereabouts::Unknown {
        return Err(unknown_ticket());
    }
    let watcher = Watcher { state, ticket: *ticket.id(), watch, first: Some(first) };
    let events = Sse::new(watcher.events()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies that gather what they pass on would keep the news to themselves.
    Ok(([(HeaderName::from_static("x-accel-buffering"), "no")], events).into_response())
}

struct Watcher {
    state: AppState,
    ticket: TicketId,
    watch: Watch,
    /// What is not told yet.
    first: Option<Whereabouts>,
}

impl Watcher {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
        let closing = self.state.closing.clone();
        let events = stream::unfold(self, async |mut watcher| {
            let event = watcher.next().await?;
            Some((Ok(event), watcher))
        });
        events.take_until(closing.cancelled_owned())
    }

    async fn next(&mut self) -> Option<Event> {
        match self.first.take() {
            Some(first) => Some(self.event(&first)?.retry(COME_BACK_AFTER)),
            None => {
                let news = self.news().await?;
                self.event(&news)
            }
        }
    }

    /// `None` after the end.
    async fn news(&mut self) -> Option<Whereabouts> {
        loop {
            match self.watch.next().await {
                Ok(news) => return news,
                Err(why) => {
                    tracing::debug!(%why, "a watcher waits for the store");
                    tokio::time::sleep(self.pause()).await;
                }
            }
        }
    }

    /// Not the same for all who watch, so that they do not all ask at the same moment.
    fn pause(&self) -> Duration {
        AFTER_AN_ERROR + Duration::from_millis(self.ticket.number() % 1_000)
    }

    /// `None`: it cannot be told, as nothing is known of the ticket any more.
    fn event(&self, whereabouts: &Whereabouts) -> Option<Event> {
        let body = TicketBody::new(&self.ticket, whereabouts, &self.state).ok()?;
        let event = Event::default().json_data(body).ok()?;
        Some(if whereabouts.is_final() { event.id(THE_END) } else { event })
    }
}
