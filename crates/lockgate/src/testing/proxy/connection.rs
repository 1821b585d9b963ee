//! One connection through the proxy: two pumps, one for each way.
//!
//! A pump reads, lets the bytes wait their delay, and then judges them by the faults in force *when they leave*: a
//! fault that is set while bytes are on their way still meets them.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};

use super::Direction;
use super::faults::{Doom, Faults};
use crate::clock::{Clock, Moment};

const CHUNK_BYTES: usize = 16 * 1024;
/// How much may be on its way; beyond, the sender has to wait, as with a real network.
const CHUNKS_ON_THEIR_WAY: usize = 1_024;
/// For a server to finish what was forwarded to it before its connection went.
const LAST_WORK_BOUND: Duration = Duration::from_secs(10);

/// For a peer to see the end of a connection that was cut, and to end its own side.
const LAST_WORDS_BOUND: Duration = Duration::from_secs(1);

/// How a connection ended when it was not both sides closing in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Closed by us in good order: what passed arrives.
    Cut,
    Reset,
    /// The client is reset; the server gets the time to do what it was asked.
    ReplyLost,
}

/// Forwards until one side or a fault ends it.
pub(super) async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    faults: &Faults,
    mut resets: watch::Receiver<u64>,
) {
    let _open = Open::count(faults);
    // A proxy that gathers small writes would itself be a delay.
    let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let doom = Mutex::new(None);
    let ending = {
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let requests = Pump { direction: Direction::ToServer, faults, doom: &doom };
        let replies = Pump { direction: Direction::ToClient, faults, doom: &doom };
        tokio::select! {
            ended = async {
                tokio::try_join!(requests.run(from_client, to_server), replies.run(from_server, to_client))
            } => ended.err(),
            _ = resets.changed() => Some(Ending::Reset),
        }
    };
    end(client, server, ending, faults).await;
}

async fn end(mut client: TcpStream, mut server: TcpStream, ending: Option<Ending>, faults: &Faults) {
    match ending {
        None => {}
        Some(Ending::Cut) => {
            let told = async { tokio::join!(let_it_finish(&mut client), let_it_finish(&mut server)) };
            let _ = tokio::time::timeout(LAST_WORDS_BOUND, told).await;
        }
        Some(Ending::Reset) => {
            reset(&client);
            reset(&server);
        }
        Some(Ending::ReplyLost) => {
            reset(&client);
            drop(client);
            // Only now: who waits for this number may rely on what the client meets.
            faults.replies_lost.add(1);
            let _ = tokio::time::timeout(LAST_WORK_BOUND, let_it_finish(&mut server)).await;
        }
    }
}

/// Closing a connection with something left unread is a reset, which overtakes what was sent before it. So a peer
/// that is to get all of it is told that no more will come, and is listened to until it has no more to say.
async fn let_it_finish(peer: &mut TcpStream) -> io::Result<()> {
    peer.shutdown().await?;
    let mut unheard = vec![0; CHUNK_BYTES];
    while peer.read(&mut unheard).await? > 0 {}
    Ok(())
}

/// Makes the closing of this stream a reset.
pub(super) fn reset(stream: &TcpStream) {
    // Fails only on a socket that is gone already.
    let _ = stream.set_zero_linger();
}

/// Counts a connection for as long as it lives, however it ends.
struct Open<'a>(&'a Faults);

impl<'a> Open<'a> {
    fn count(faults: &'a Faults) -> Self {
        faults.connections.add(1);
        Self(faults)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.connections_closed.add(1);
    }
}

/// What was read: some bytes, or (empty) the end of the stream.
struct Chunk {
    bytes: Vec<u8>,
    due: Moment,
}

struct Pump<'a> {
    direction: Direction,
    faults: &'a Faults,
    /// Set by a request that is to lose its reply, seen by the reply.
    doom: &'a Mutex<Option<Doom>>,
}

/// What becomes of a chunk.
struct Verdict {
    pass_bytes: usize,
    ending: Option<Ending>,
}

impl Pump<'_> {
    /// `Ok` when the stream ended in good order and the other side was told so.
    async fn run(&self, from: ReadHalf<'_>, to: WriteHalf<'_>) -> Result<(), Ending> {
        let (on_their_way, arriving) = mpsc::channel(CHUNKS_ON_THEIR_WAY);
        tokio::try_join!(self.read_all(from, on_their_way), self.deliver_all(arriving, to)).map(|_| ())
    }

    async fn read_all(
        &self,
        mut from: ReadHalf<'_>,
        on_their_way: mpsc::Sender<Chunk>,
    ) -> Result<(), Ending> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let count = from.read(&mut buffer).await.map_err(|_| Ending::Reset)?;
            let due = Clock::system().monotonic() + self.faults.get(|now| now.delay);
            let chunk = Chunk { bytes: buffer[..count].to_vec(), due };
            if on_their_way.send(chunk).await.is_err() || count == 0 {
                return Ok(());
            }
        }
    }

    async fn deliver_all(
        &self,
        mut arriving: mpsc::Receiver<Chunk>,
        mut to: WriteHalf<'_>,
    ) -> Result<(), Ending> {
        while let Some(chunk) = arriving.recv().await {
            let early = chunk.due.since(Clock::system().monotonic());
            if !early.is_zero() {
                tokio::time::sleep(early).await;
            }
            self.deliver(&chunk.bytes, &mut to).await?;
        }
        Ok(())
    }

    async fn deliver(&self, bytes: &[u8], to: &mut WriteHalf<'_>) -> Result<(), Ending> {
        if bytes.is_empty() {
            return self.deliver_the_end(to).await;
        }
        let verdict = self.judge(bytes.len());
        if verdict.pass_bytes > 0 {
            to.write_all(&bytes[..verdict.pass_bytes]).await.map_err(|_| Ending::Reset)?;
            let passed = u64::try_from(verdict.pass_bytes).unwrap_or(u64::MAX);
            self.faults.bytes.get(self.direction).add(passed);
        }
        verdict.ending.map_or(Ok(()), Err)
    }

    async fn deliver_the_end(&self, to: &mut WriteHalf<'_>) -> Result<(), Ending> {
        if self.faults.get(|now| *now.black_hole.get(self.direction)) {
            return Ok(());
        }
        to.shutdown().await.map_err(|_| Ending::Reset)
    }

    /// The order matters: what vanishes is no request and no reply, and a cut counts only what passes.
    fn judge(&self, length: usize) -> Verdict {
        let mut doom = self.doom.lock().unwrap_or_else(PoisonError::into_inner);
        self.faults.set(|now| {
            if *now.black_hole.get(self.direction) {
                return Verdict { pass_bytes: 0, ending: None };
            }
            match self.direction {
                Direction::ToServer => {
                    *doom = doom.filter(|doom| now.still_holds(*doom)).or_else(|| now.doom_next());
                }
                Direction::ToClient if doom.is_some_and(|doom| now.still_holds(doom)) => {
                    return Verdict { pass_bytes: 0, ending: Some(Ending::ReplyLost) };
                }
                Direction::ToClient => {}
            }
            cut(now.cut_after.of(self.direction), length)
        })
    }
}

fn cut(cut_after: &mut Option<usize>, length: usize) -> Verdict {
    let Some(left) = *cut_after else { return Verdict { pass_bytes: length, ending: None } };
    if length < left {
        *cut_after = Some(left - length);
        return Verdict { pass_bytes: length, ending: None };
    }
    *cut_after = None;
    Verdict { pass_bytes: left, ending: Some(Ending::Cut) }
}
