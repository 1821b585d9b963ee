//! The server on a real port: what no router can show, because it is about connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, http};
use lockgate::testing::eventually;
use lockgate_server::{Limits, ServeConfig, Server, Service, Stop, app};
use tokio::task::JoinHandle;

const ADMIN: &str = "the-admin";

/// A server in this process, until it is stopped.
struct Running {
    address: SocketAddr,
    stop: Stop,
    ended: JoinHandle<std::io::Result<()>>,
    _data: tempfile::TempDir,
}

impl Running {
    async fn start(change: impl FnOnce(&mut ServeConfig)) -> Self {
        Self::start_with(change, app).await
    }

    async fn start_with(
        change: impl FnOnce(&mut ServeConfig),
        router: impl FnOnce(Service) -> Router + Send + 'static,
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut config = ServeConfig::new("127.0.0.1:0".parse().unwrap(), data.path().to_owned());
        config.admin_token = Some(ADMIN.parse().unwrap());
        change(&mut config);
        let server = Server::start(config).await.unwrap();
        let (address, stop) = (server.address(), Stop::default());
        let ended = tokio::spawn(server.run_until(stop.clone(), router));
        Self { address, stop, ended, _data: data }
    }

    /// Whether it ends within that time once it is told to.
    async fn ends_within(self, bound: Duration) -> bool {
        self.stop.gently.cancel();
        tokio::time::timeout(bound, self.ended).await.is_ok()
    }
}

/// Does something that blocks, as clients do, beside the server.
async fn aside<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(what).await.unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Everything until the server closes the connection.
fn read_to_close(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(why) if why.kind() == ErrorKind::ConnectionReset => break,
            Err(why) => panic!("the connection is not closed: {why}; {:?}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn get_and_close(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    // A server that does not want to talk may have closed it already.
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_to_close(&mut stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_half_open_connections_keep_nobody_from_being_served_and_are_closed_in_time() {
    let running = Running::start(|config| config.limits.head_timeout = Duration::from_secs(2)).await;
    let address = running.address;
    let are_closed = aside(move || {
        let mut slow: Vec<_> = (0..2_000).map(|_| connect(address)).collect();
        for stream in &mut slow {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
        }
        for _ in 0..20 {
            assert!(get_and_close(address, "/healthz").starts_with("HTTP/1.1 200"));
        }
        // A drop now and then does not help: the time runs from the beginning of the head. If it ran from the last drop, none would
        // ever be closed.
        eventually(Duration::from_secs(20), || {
            slow.retain_mut(|stream| stream.write_all(b"a").is_ok());
            slow.is_empty()
        })
    })
    .await;
    assert!(are_closed);
    assert!(running.ends_within(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_says_nothing_is_closed_too() {
    let running = Running::start(|config| config.limits.head_timeout = Duration::from_millis(300)).await;
    let address = running.address;
    aside(move || {
        let mut silent = connect(address);
        assert_eq!(read_to_close(&mut silent), "");
        let mut idle = connect(address);
        idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(read_to_close(&mut idle).starts_with("HTTP/1.1 200"), "served first, closed when idle");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_too_many_is_closed_at_once_and_places_come_back() {
    let running =
        Running::start(|config| config.limits = Limits { connections: 8, ..Limits::default() }).await;
    let address = running.address;
    aside(move || {
        let mut held: Vec<_> = (0..8).map(|_| connect(address)).collect();
        for stream in &mut held {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut first = [0; 12];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");
        }
        for _ in 0..5 {
            let mut one_too_many = connect(address);
            // At once: sooner than the time that a head may take.
            one_too_many.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            assert_eq!(read_to_close(&mut one_too_many), "", "no place is left");
        }
        drop(held);
        let served = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let mut stream = connect(address);
            let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            asked.is_ok() && read_to_close(&mut stream).starts_with("HTTP/1.1 200")
        });
        assert!(served, "the places have not come back");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_comes_drop_by_drop_ends_in_time() {
    let running = Running::start(|config| config.edge.request_timeout = Duration::from_millis(500)).await;
    let address = running.address;
    aside(move || {
        let mut slow = connect(address);
        slow.write_all(b"POST /v1/coupons/w/issues HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{").unwrap();
        let answer = read_to_close(&mut slow);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("urn:lockgate:timeout"), "{answer}");
    }).await;
}

/// What this process keeps in memory, in bytes, as far as Linux knows.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_is_refused_early_whether_announced_or_not() {
    let running = Running::start(|_| {}).await;
    let address = running.address;
    aside(move || {
        let before = resident();
        for framing in ["Content-Length: 1073741824", "Transfer-Encoding: chunked"] {
            for path in ["/v1/coupons/w/issues", "/healthz", "/nothing"] {
                let mut stream = connect(address);
                write!(
                    stream,
                    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
                )
                .unwrap();
                let reader = stream.try_clone().unwrap();
                let answer = std::thread::spawn(move || read_to_close(&mut { reader }));
                let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000)).into_bytes();
                let mut sent = 0;
                while sent < 1 << 30 && stream.write_all(&chunk).is_ok() {
                    sent += chunk.len();
                }
                let answer = answer.join().unwrap();
                assert!(sent < 64 << 20, "{framing} {path}: {sent} bytes were taken");
                if path.contains("issues") || framing.contains("Length") {
                    assert!(answer.starts_with("HTTP/1.1 413"), "{framing} {path}: {answer:?}");
                }
            }
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < 64 << 20, "{grown} bytes more");
        assert!(get_and_close(address, "/healthz").starts_with("HTTP/1.1 200"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_without_end_is_refused() {
    let running = Running::start(|_| {}).await;
    let address = running.address;
    aside(move || {
        let mut stream = connect(address);
        let long = "x".repeat(40_000);
        let _ = write!(stream, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: {long}");
        let answer = read_to_close(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    })
    .await;
}

/// A coupon of so many, called `w`.
fn open_coupon(address: SocketAddr, quantity: u64) {
    let body = format!("{{\"quantity\": {quantity}}}");
    let mut stream = connect(address);
    write!(
        stream,
        "PUT /v1/coupons/w HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    assert!(read_to_close(&mut stream).starts_with("HTTP/1.1 201"));
}

fn issue_to(user: &str, more: &str) -> String {
    let body = format!("{{\"user\": \"{user}\"}}");
    let length = body.len();
    format!(
        "POST /v1/coupons/w/issues HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{more}\r\n{body}"
    )
}

/// All numbers that stand behind `name` in a text.
fn numbers_after(name: &str, text: &str) -> Vec<u64> {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    text.match_indices(name).filter_map(|(at, name)| digits(&text[at + name.len()..]).parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_one_go_are_done_and_answered_in_their_order() {
    let running = Running::start(|_| {}).await;
    let address = running.address;
    aside(move || {
        open_coupon(address, 1_000);
        let mut stream = connect(address);
        let mut all = String::new();
        for number in 1..=50 {
            all += &issue_to(&format!("u{number}"), "");
            all += &format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: n{number}\r\n\r\n");
        }
        all += &issue_to("u51", "Connection: close\r\n");
        stream.write_all(all.as_bytes()).unwrap();
        let answers = read_to_close(&mut stream);
        assert_eq!(numbers_after("x-request-id: n", &answers), (1..=50).collect::<Vec<_>>());
        assert_eq!(numbers_after("\"seq\":", &answers), (1..=51).collect::<Vec<_>>());
        assert_eq!(answers.matches("HTTP/1.1 201").count(), 51);
        assert_eq!(answers.matches("HTTP/1.1 200").count(), 50);
    })
    .await;
}

/// Everywhere: in the head, in the body, and after the last byte, when the call is in hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_away_in_the_middle_leave_nothing_behind() {
    const CLIENTS: usize = 300;
    let running = Running::start(|config| config.limits.connections = 20).await;
    let address = running.address;
    aside(move || {
        open_coupon(address, 1_000);
        for client in 0..CLIENTS {
            let request = issue_to(&format!("u{client:03}"), "");
            // Every other one sends all of it.
            let sent = if client % 2 == 0 { request.len() } else { 1 + client * 7 % (request.len() - 1) };
            // More than there are places: a connection may be closed before it is heard.
            for _ in 0..500 {
                if connect(address).write_all(&request.as_bytes()[..sent]).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let mut issued = None;
        let served = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let mut stream = connect(address);
            let asked = stream.write_all(issue_to("the-last", "Connection: close\r\n").as_bytes());
            let answer = asked.map(|()| read_to_close(&mut stream)).unwrap_or_default();
            issued = numbers_after("\"seq\":", &answer).first().copied();
            issued.is_some()
        });
        assert!(served, "their places have not come back");
        // Who went away without an answer has one or has none, and nobody has two.
        let whole = CLIENTS as u64 / 2;
        assert!(issued.is_some_and(|seq| (2..=whole + 1).contains(&seq)), "{issued:?} of at most {whole}");
        let status = get_and_close(address, "/v1/coupons/w");
        assert_eq!(numbers_after("\"issued\":", &status).first().copied(), issued, "{status}");
    })
    .await;
}

/// Events for ever, until the service closes, as streams of tickets are.
async fn events(service: Arc<Service>) -> impl IntoResponse {
    let ticks = futures_util::stream::unfold(service, |service| async move {
        let tick = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            () = service.closing.cancelled() => None,
            () = tick => Some((Ok::<_, std::io::Error>(Bytes::from_static(b"data: tick\n\n")), service)),
        }
    });
    ([(http::header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(ticks))
}

fn with_events(service: Service) -> Router {
    let shared = Arc::new(service.clone());
    let hanging = get(async || {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "late"
    });
    let slow = get(async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        "finished"
    });
    app(service)
        .route("/events", get(move || events(Arc::clone(&shared))))
        .route("/slow", slow)
        .route("/hang", hanging)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_server_ends_streams_finishes_requests_and_accepts_nobody() {
    let running = Running::start_with(|_| {}, with_events).await;
    let address = running.address;
    let stream = aside(move || {
        let mut stream = connect(address);
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("data: tick") {
            let mut buffer = [0; 512];
            let read = stream.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..read]);
        }
        stream
    })
    .await;
    let slow = tokio::task::spawn_blocking(move || get_and_close(address, "/slow"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    running.stop.gently.cancel();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let refused = aside(move || TcpStream::connect(address).is_err()).await;
    assert!(refused, "it still accepts connections");
    // The stream ends as a stream ought to, not in the middle; and the request is answered.
    let rest = aside(move || read_to_close(&mut { stream })).await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
    assert!(slow.await.unwrap().ends_with("finished"));
    assert!(running.ends_within(Duration::from_secs(3)).await, "neither stream nor idle connection keeps it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn being_told_twice_stops_at_once() {
    let running = Running::start_with(|_| {}, with_events).await;
    let (address, stop) = (running.address, running.stop.clone());
    let hanging = tokio::task::spawn_blocking(move || get_and_close(address, "/hang"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.gently.cancel();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!running.ended.is_finished(), "the first time it waits for what is under way");
    stop.at_once.cancel();
    assert!(running.ends_within(Duration::from_secs(2)).await);
    assert_eq!(hanging.await.unwrap(), "");
}

/// A certificate for 127.0.0.1 in that folder.
fn certificate(folder: &Path, name: &str) -> lockgate_server::TlsFiles {
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    let (certificate, key) = (file("crt"), file("key"));
    let mut openssl = std::process::Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    openssl.args(["-subj", &format!("/CN={name}"), "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    assert!(openssl.output().unwrap().status.success());
    lockgate_server::TlsFiles { certificate, key }
}

/// Asks over TLS, trusting that certificate only.
fn get_over_tls(address: SocketAddr, trusted: &Path) -> Result<String, String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = address.ip().into();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, connect(address));
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .map_err(|why| why.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|why| why.to_string())?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_certificate_it_speaks_tls_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let files = certificate(folder.path(), "one");
    let other = certificate(folder.path(), "other");
    let trusted = files.certificate.clone();
    let running = Running::start(|config| {
        config.tls = Some(files);
        config.limits = Limits { connections: 4, head_timeout: Duration::from_millis(500) };
    })
    .await;
    let address = running.address;
    aside(move || {
        let answer = get_over_tls(address, &trusted).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("nosniff"), "{answer}");
        assert!(get_over_tls(address, &other.certificate).is_err(), "another certificate is not trusted");
        assert!(!get_and_close(address, "/healthz").contains("200"));
        // Handshakes that never end take places, and give them back in time.
        let silent: Vec<_> = (0..4).map(|_| connect(address)).collect();
        for mut stream in silent {
            let _ = read_to_close(&mut stream);
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(get_over_tls(address, &trusted).is_ok());
    })
    .await;
    assert!(running.ends_within(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (certificate(folder.path(), "one"), certificate(folder.path(), "two"));
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "hunter2").unwrap();
    for (certificate, key, words) in [
        (&one.certificate, &two.key, &["the key that the certificate was made for"][..]),
        (&empty, &one.key, &["--tls-cert", "PEM"]),
        (&one.certificate, &empty, &["--tls-key", "PEM"]),
        (&one.certificate, &folder.path().join("nowhere"), &["--tls-key", "nowhere"]),
    ] {
        let mut config = ServeConfig::new("127.0.0.1:0".parse().unwrap(), folder.path().join("data"));
        config.tls = Some(lockgate_server::TlsFiles { certificate: certificate.clone(), key: key.clone() });
        let sentence = Server::start(config).await.unwrap_err().to_string();
        for word in words {
            assert!(sentence.contains(word), "{word:?} is missing in: {sentence}");
        }
        assert!(!sentence.contains("hunter2") && !sentence.contains("PRIVATE"), "{sentence}");
    }
}
