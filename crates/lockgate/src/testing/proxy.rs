//! A network that fails on command: a TCP proxy between a client and a server.
//!
//! Bytes pass unchanged until a fault is set. Faults can be set and lifted while connections are open, and hold for
//! those and for new ones:
//!
//! | call | what the client meets |
//! | --- | --- |
//! | [`FaultProxy::delay`] | a slow network |
//! | [`FaultProxy::black_hole`] | a network that swallows one direction; the connection stays open |
//! | [`FaultProxy::reset`] | every connection reset, once |
//! | [`FaultProxy::refuse`] | new connections reset at once |
//! | [`FaultProxy::cut_after`] | a connection that ends in the middle of a message |
//! | [`FaultProxy::lose_next_reply`] | the server did it, and the client will never know |
//!
//! The last is the one that finds bugs. A client that meets it cannot tell it from a request that never arrived:
//!
//! ```text
//! client                    proxy                     server
//!   | --- INCR stock -------> | --- INCR stock -------> |   executed
//!   |                         | <--------- :1 --------- |
//!   | <------ reset --------- |                         |   "did it work?"
//! ```
//!
//! Dropping the proxy ends its connections and its tasks.

mod connection;
mod faults;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use faults::Faults;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Replies.
    ToClient,
}

/// A proxy in front of one server. See the table in the [module's documentation](self).
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    faults: Arc<Faults>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1 and forwards to `upstream`, which need not be there yet.
    ///
    /// # Errors
    ///
    /// When there is no port to listen on.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let faults = Arc::new(Faults::default());
        let accepting = tokio::spawn(accept_all(listener, upstream, Arc::clone(&faults)));
        Ok(Self { address, faults, accepting })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`FaultProxy::addr`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// From now on, bytes take this much longer in each direction; a round trip takes twice as much. Bytes that
    /// arrive together leave together, so the throughput stays.
    pub fn delay(&self, delay: Duration) {
        self.faults.set(|now| now.delay = delay);
    }

    /// From now on, whatever goes this way vanishes, the end of a connection included. The connection stays open.
    pub fn black_hole(&self, direction: Direction) {
        self.faults.set(|now| *now.black_hole.of(direction) = true);
    }

    /// Resets all present connections, on both sides. New ones are welcome.
    pub fn reset(&self) {
        self.faults.reset_all();
    }

    /// From now on, new connections are reset at once; or no longer. Present ones stay.
    pub fn refuse(&self, refuse: bool) {
        self.faults.set(|now| now.refuse = refuse);
    }

    /// Lets the next `bytes` of this direction pass, whichever connections they are on, and then closes the
    /// connection that carried the last of them. Happens once.
    pub fn cut_after(&self, direction: Direction, bytes: usize) {
        self.faults.set(|now| *now.cut_after.of(direction) = Some(bytes));
    }

    /// Executes, then drops the reply: the next request reaches the server in full, and where the first bytes come
    /// back, they are swallowed and the client's connection is reset. [`FaultProxy::replies_lost`] tells when.
    ///
    /// The proxy does not know the protocol. "Request" is whatever the client sends next, on any connection, and
    /// "reply" whatever the server sends next on that one; so on a connection with several requests under way, the
    /// swallowed reply may be that of an earlier one. The server executes all that had been forwarded by then.
    pub fn lose_next_reply(&self) {
        self.lose_replies(1);
    }

    /// [`FaultProxy::lose_next_reply`], for the next `count` requests that arrive on different connections.
    pub fn lose_replies(&self, count: usize) {
        self.faults.set(|now| now.replies_to_lose = count);
    }

    /// How many replies [`FaultProxy::lose_next_reply`] and [`FaultProxy::lose_replies`] have swallowed so far.
    #[must_use]
    pub fn replies_lost(&self) -> u64 {
        self.faults.replies_lost.get()
    }

    /// Waits until [`FaultProxy::replies_lost`] is at least `count`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn until_replies_lost(&self, count: u64) {
        self.faults.replies_lost.reaches(count).await;
    }

    /// Lifts all faults, also that of a reply still to be lost. What was lost stays lost.
    pub fn heal(&self) {
        self.faults.heal();
    }

    /// How many connections were accepted and forwarded so far; refused ones do not count.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.faults.connections.get()
    }

    /// How many of these are open now.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        // In this order: one that opens and closes in between must not make it less than none.
        let closed = self.faults.connections_closed.get();
        self.faults.connections.get() - closed
    }

    /// How many bytes were handed over in this direction so far; swallowed ones do not count.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.faults.bytes.get(direction).get()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // The connections belong to this task and go with it.
        self.accepting.abort();
    }
}

async fn accept_all(listener: TcpListener, upstream: SocketAddr, faults: Arc<Faults>) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Keeps the set from growing with every connection that ever was.
            Some(_) = open.join_next() => continue,
        };
        match accepted {
            Ok((client, _)) if faults.get(|now| now.refuse) => connection::reset(&client),
            Ok((client, _)) => {
                open.spawn(serve(client, upstream, Arc::clone(&faults)));
            }
            // Out of file descriptors, or the client is gone already: the next one may have more luck.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn serve(client: TcpStream, upstream: SocketAddr, faults: Arc<Faults>) {
    // Subscribed first: a reset that comes while we connect is for this connection too.
    let resets = faults.resets();
    match TcpStream::connect(upstream).await {
        Ok(server) => connection::forward(client, server, &faults, resets).await,
        Err(_) => connection::reset(&client),
    }
}
