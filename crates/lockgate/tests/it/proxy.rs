//! Every fault does what its name says, to present and to new connections, and goes when lifted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::testing::eventually_async;
use lockgate::testing::proxy::{Direction, FaultProxy};
use lockgate::testing::services::{Persistence, Redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const BOUND: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(200);

/// A server that says back whatever it hears.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

async fn proxied_echo() -> (FaultProxy, TcpStream) {
    let proxy = FaultProxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(say(&mut stream, b"hello").await.unwrap(), b"hello");
    (proxy, stream)
}

/// Sends bytes and returns as many that come back.
async fn say(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(bytes).await?;
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).await?;
    Ok(back)
}

async fn ends_with(stream: &mut TcpStream) -> io::ErrorKind {
    let mut rest = Vec::new();
    match timeout(BOUND, stream.read_to_end(&mut rest)).await.expect("the connection ends") {
        Ok(_) => io::ErrorKind::UnexpectedEof,
        Err(error) => error.kind(),
    }
}

#[tokio::test]
async fn bytes_pass_unchanged_in_any_amount_and_are_counted() {
    let (proxy, mut stream) = proxied_echo().await;
    let much: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[0]).collect();
    let (mut from, mut to) = stream.split();
    let mut back = vec![0; much.len()];
    let (sent, received) = tokio::join!(to.write_all(&much), from.read_exact(&mut back));
    sent.and(received).unwrap();
    assert!(back == much);
    let bytes = u64::try_from(much.len()).unwrap() + 5;
    assert_eq!((proxy.bytes(Direction::ToServer), proxy.bytes(Direction::ToClient)), (bytes, bytes));
    assert_eq!((proxy.connections(), proxy.open_connections()), (1, 1));

    stream.shutdown().await.unwrap();
    assert_eq!(ends_with(&mut stream).await, io::ErrorKind::UnexpectedEof);
    assert!(eventually_async(BOUND, async || proxy.open_connections() == 0).await);
}

#[tokio::test]
async fn a_delay_holds_bytes_back_in_each_direction_until_lifted() {
    let (proxy, mut stream) = proxied_echo().await;
    proxy.delay(Duration::from_millis(50));
    let clock = Clock::system();
    let start = clock.monotonic();
    say(&mut stream, b"slow").await.unwrap();
    assert!(clock.monotonic().since(start) >= Duration::from_millis(100));

    proxy.delay(Duration::from_secs(3600));
    assert!(
        timeout(SHORT, say(&mut TcpStream::connect(proxy.addr()).await.unwrap(), b"never")).await.is_err()
    );
    proxy.heal();
    assert_eq!(timeout(BOUND, say(&mut stream, b"fast")).await.unwrap().unwrap(), b"fast");
}

#[tokio::test]
async fn a_black_hole_swallows_one_direction_and_leaves_the_connection_open() {
    for direction in [Direction::ToServer, Direction::ToClient] {
        let (proxy, mut stream) = proxied_echo().await;
        proxy.black_hole(direction);
        assert!(timeout(SHORT, say(&mut stream, b"lost")).await.is_err());
        let to_server = if direction == Direction::ToServer { 5 } else { 9 };
        assert_eq!((proxy.bytes(Direction::ToServer), proxy.bytes(Direction::ToClient)), (to_server, 5));
        proxy.heal();
        assert_eq!(say(&mut stream, b"back").await.unwrap(), b"back");
    }
}

#[tokio::test]
async fn a_reset_hits_all_present_connections_and_no_later_one() {
    let (proxy, mut first) = proxied_echo().await;
    let mut second = TcpStream::connect(proxy.addr()).await.unwrap();
    say(&mut second, b"hello").await.unwrap();
    proxy.reset();
    assert_eq!(ends_with(&mut first).await, io::ErrorKind::ConnectionReset);
    assert_eq!(ends_with(&mut second).await, io::ErrorKind::ConnectionReset);
    let mut third = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(say(&mut third, b"hello").await.unwrap(), b"hello");
}

#[tokio::test]
async fn refusing_resets_new_connections_and_spares_present_ones() {
    let (proxy, mut present) = proxied_echo().await;
    proxy.refuse(true);
    // The kernel may show the reset already while it connects.
    if let Ok(mut new) = TcpStream::connect(proxy.addr()).await {
        assert_eq!(ends_with(&mut new).await, io::ErrorKind::ConnectionReset);
    }
    assert_eq!(say(&mut present, b"still").await.unwrap(), b"still");
    proxy.refuse(false);
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(say(&mut new, b"again").await.unwrap(), b"again");
}

#[tokio::test]
async fn a_cut_lets_exactly_so_many_bytes_pass() {
    let (proxy, mut stream) = proxied_echo().await;
    proxy.cut_after(Direction::ToClient, 3);
    stream.write_all(b"abcdef").await.unwrap();
    let mut heard = Vec::new();
    timeout(BOUND, stream.read_to_end(&mut heard)).await.unwrap().unwrap();
    assert_eq!(heard, b"abc");

    let mut next = TcpStream::connect(proxy.addr()).await.unwrap();
    proxy.cut_after(Direction::ToServer, 2);
    let before = proxy.bytes(Direction::ToServer);
    next.write_all(b"abcdef").await.unwrap();
    ends_with(&mut next).await;
    assert_eq!(proxy.bytes(Direction::ToServer) - before, 2);

    let mut last = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(say(&mut last, b"abcdef").await.unwrap(), b"abcdef", "it happens once");
}

#[tokio::test]
async fn healing_lifts_a_loss_that_has_not_happened_yet() {
    let (proxy, mut stream) = proxied_echo().await;
    proxy.lose_next_reply();
    proxy.heal();
    assert_eq!(say(&mut stream, b"kept").await.unwrap(), b"kept");
    proxy.lose_next_reply();
    assert_eq!(say(&mut stream, b"lost").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(proxy.replies_lost(), 1);
}

#[tokio::test]
async fn dropping_the_proxy_ends_its_connections_and_frees_its_port() {
    let (proxy, mut stream) = proxied_echo().await;
    let address = proxy.addr();
    drop(proxy);
    ends_with(&mut stream).await;
    assert!(eventually_async(BOUND, async || TcpStream::connect(address).await.is_err()).await);
}

#[tokio::test]
async fn a_server_that_is_not_there_resets_its_clients() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    let proxy = FaultProxy::start(nobody).await.unwrap();
    if let Ok(mut stream) = TcpStream::connect(proxy.addr()).await {
        assert_eq!(ends_with(&mut stream).await, io::ErrorKind::ConnectionReset);
    }
}

const INCR: &[u8] = b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";

async fn proxied_redis() -> (Redis, FaultProxy) {
    let redis = tokio::task::spawn_blocking(|| Redis::start(Persistence::Off)).await.unwrap().unwrap();
    let proxy = FaultProxy::start((Ipv4Addr::LOCALHOST, redis.port()).into()).await.unwrap();
    (redis, proxy)
}

#[tokio::test]
async fn a_lost_reply_is_of_a_request_that_was_executed_exactly_once() {
    let (redis, proxy) = proxied_redis().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    proxy.lose_next_reply();
    stream.write_all(INCR).await.unwrap();
    assert_eq!(ends_with(&mut stream).await, io::ErrorKind::ConnectionReset);
    timeout(BOUND, proxy.until_replies_lost(1)).await.unwrap();
    assert_eq!(redis.command(&["GET", "n"]).unwrap().as_int(), Some(1));

    let mut next = TcpStream::connect(proxy.addr()).await.unwrap();
    next.write_all(INCR).await.unwrap();
    let mut reply = [0; 4];
    next.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b":2\r\n");
    assert_eq!(proxy.replies_lost(), 1);
}

#[tokio::test]
async fn several_replies_can_be_lost_each_with_its_connection() {
    let (redis, proxy) = proxied_redis().await;
    proxy.lose_replies(3);
    for _ in 0..3 {
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        stream.write_all(INCR).await.unwrap();
        assert_eq!(ends_with(&mut stream).await, io::ErrorKind::ConnectionReset);
    }
    timeout(BOUND, proxy.until_replies_lost(3)).await.unwrap();
    assert_eq!(redis.command(&["GET", "n"]).unwrap().as_int(), Some(3));
}

#[tokio::test]
async fn all_of_a_pipeline_is_executed_when_its_first_reply_is_lost() {
    let (redis, proxy) = proxied_redis().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    proxy.lose_next_reply();
    stream.write_all(&INCR.repeat(100)).await.unwrap();
    assert_eq!(ends_with(&mut stream).await, io::ErrorKind::ConnectionReset);
    let all_done = async || redis.command(&["GET", "n"]).unwrap().as_int() == Some(100);
    assert!(eventually_async(BOUND, all_done).await);
}

#[tokio::test]
async fn a_server_can_still_read_what_it_was_sent_when_its_reply_is_lost() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let proxy = FaultProxy::start(listener.local_addr().unwrap()).await.unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();

    proxy.lose_next_reply();
    client.write_all(b"first and all that follows").await.unwrap();
    let mut first = [0; 5];
    server.read_exact(&mut first).await.unwrap();
    server.write_all(b"done").await.unwrap();
    timeout(BOUND, proxy.until_replies_lost(1)).await.unwrap();

    let mut rest = Vec::new();
    timeout(BOUND, server.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, b" and all that follows");
}
