//! Spans of requests, as a collector gets them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate::testing::eventually;

use crate::process::{ServerProcess, lockgate};

/// The first line of a request, and its body.
type Received = (String, Vec<u8>);

/// Takes whatever is sent, and keeps it.
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let taken = take(stream.unwrap());
                kept.lock().unwrap().push(taken);
            }
        });
        Self { url, received }
    }

    fn has(&self, bytes: &[u8]) -> bool {
        let received = self.received.lock().unwrap();
        received.iter().any(|(_, body)| body.windows(bytes.len()).any(|window| window == bytes))
    }
}

/// Takes one request.
fn take(mut stream: TcpStream) -> Received {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(said) = line.to_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    (first, body)
}

fn serve(data: &Path, endpoint: &str) -> ServerProcess {
    let mut command = lockgate(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    ServerProcess::launch(command)
}

#[test]
fn a_request_becomes_a_span_of_the_callers_trace_and_names_nobody() {
    let (collector, data) = (Collector::start(), tempfile::tempdir().unwrap());
    let server = serve(data.path(), &collector.url);
    let request = ureq::get(format!("{}/v1/coupons/hunter2?user=hunter2", server.url));
    let request = request.header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert!(request.call().is_err(), "there is no such coupon");
    assert_eq!(server.terminate(), Some(0), "what is there is sent first");
    assert!(eventually(Duration::from_secs(20), || collector.has(b"GET /v1/coupons/{id}")), "no span came");
    let (first, _) = collector.received.lock().unwrap()[0].clone();
    assert!(first.starts_with("POST /v1/traces "), "{first}");
    let trace = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    let parent = 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes();
    assert!(collector.has(&trace) && collector.has(&parent), "it is not part of the caller's trace");
    assert!(collector.has(b"http.response.status_code") && collector.has(b"lockgate"));
    assert!(!collector.has(b"hunter2"), "a path names users");
}

#[test]
fn a_collector_that_is_away_costs_no_answer_and_does_not_keep_it_from_stopping() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path(), "http://127.0.0.1:1");
    assert_eq!(server.get("/healthz").0, 200);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn an_endpoint_that_is_none_is_refused_with_the_remedy() {
    let data = tempfile::tempdir().unwrap();
    let mut command =
        lockgate(&["serve", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()]);
    let refused = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "not a url").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && said.contains("http://ADDRESS:4318"), "{said}");
}
