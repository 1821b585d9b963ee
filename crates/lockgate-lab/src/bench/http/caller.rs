//! A client on one connection that stays open.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::bench::Failure;

pub(super) const ADMIN_TOKEN: &str = "bench-admin-token";

/// More than any bench asks for.
pub(super) const QUANTITY: u64 = 1_000_000_000;

const COUPON: &str = "bench";

/// See the [module](self).
pub(super) struct Caller {
    host: String,
    sender: SendRequest<Full<Bytes>>,
    _connection: AbortOnDropHandle<()>,
}

impl Caller {
    pub(super) async fn connect(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let driven = tokio::spawn(async {
            // How it ended, the next call says.
            let _ = connection.await;
        });
        Ok(Self { host: address.to_owned(), sender, _connection: AbortOnDropHandle::new(driven) })
    }

    pub(super) async fn is_ready(&mut self) -> Result<(), Failure> {
        self.call(Method::GET, "/readyz", None).await.map(drop)
    }

    /// Opens the coupon that everybody asks for.
    pub(super) async fn open_coupon(&mut self) -> Result<(), Failure> {
        let terms = json!({ "quantity": QUANTITY });
        self.call(Method::PUT, &format!("/v1/coupons/{COUPON}"), Some(&terms)).await.map(drop)
    }

    /// One coupon for somebody who has none.
    pub(super) async fn issue(&mut self, user: &str) -> Result<(), Failure> {
        let (path, wish) = (format!("/v1/coupons/{COUPON}/issues"), json!({ "user": user }));
        let response = self.send(Method::POST, &path, Some(&wish)).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if status != StatusCode::CREATED {
            return Err(format!("no coupon for {user}: {status} {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(())
    }

    /// A call that must go well; its answer.
    pub(super) async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Bytes, Failure> {
        let response = self.send(method, path, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            return Err(format!("{path}: {status} {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(body)
    }

    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(&method).uri(path).header(HOST, &self.host);
        if method == Method::PUT {
            request = request.header(AUTHORIZATION, format!("Bearer {ADMIN_TOKEN}"));
        }
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(serde_json::to_vec(body)?)
            }
            None => Bytes::new(),
        };
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(body))?).await?)
    }
}
