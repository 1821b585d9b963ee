//! Who gets a connection: everybody, up to a limit.
//!
//! A connection beyond the limit is closed at once rather than kept waiting, so that a load balancer goes elsewhere, and a
//! flood takes the memory and the open files of so many connections and no more. A connection counts from the moment it is
//! accepted, so those that never finish their TLS handshake count as well.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use axum_server::{Address, Server};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use crate::alarm::Alarms;

/// What one connection may keep in memory of a request's head: some 30 KiB, and 100 headers by hyper's own limit.
const MOST_HEAD_BYTES: usize = 32 * 1024;

/// Lets connections in. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Doorman {
    places: Arc<Semaphore>,
}

/// The place of one connection, given back when the connection is over.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Doorman {
    pub(super) fn new(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))) }
    }

    fn place(&self) -> io::Result<Place> {
        let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() else {
            metrics::counter!("lockgate_http_refused_connections_total").increment(1);
            return Err(io::Error::other("too many connections"));
        };
        metrics::gauge!("lockgate_http_connections").increment(1.0);
        Ok(Place { _permit: permit })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::gauge!("lockgate_http_connections").decrement(1.0);
    }
}

/// The service of one connection, with its place: it lives exactly as long as the connection.
#[derive(Clone, Debug)]
pub(super) struct Seated<S> {
    service: S,
    _place: Arc<Place>,
}

impl<R, S: Service<R>> Service<R> for Seated<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.service.call(request)
    }
}

impl<S> Accept<TcpStream, S> for Doorman {
    type Stream = TcpStream;
    type Service = Seated<S>;
    type Future = Ready<io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(self.place().map(|place| {
            // Answers are small; held back for an acknowledgement they would be late, so best effort will do.
            let _ = stream.set_nodelay(true);
            (stream, Seated { service, _place: Arc::new(place) })
        }))
    }
}

/// HTTP/1.1 only, which is what proxies speak to those behind them. `head` is how long a connection may take until the head of
/// its next request is there, so it is also how long an idle one is kept.
pub(super) fn bound_connections<A: Address, B>(server: &mut Server<A, B>, head: Duration) {
    let mut builder = server.http_builder().http1();
    builder.timer(Alarms::default()).header_read_timeout(head).max_buf_size(MOST_HEAD_BYTES);
    // Head and body of an answer are copied into one piece: they are small, and two pieces cost the system more than that.
    builder.writev(false);
}
