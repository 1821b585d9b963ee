//! The limit: what HTTP and JSON alone cost. It reads what a coupon's call reads and answers what it answers, from one counter; it
//! checks, remembers and limits nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use super::caller::QUANTITY;
use crate::bench::Failure;

#[derive(Deserialize)]
struct Wish {
    user: String,
}

#[derive(Serialize)]
struct Issued {
    coupon: String,
    user: String,
    seq: u64,
    remaining: u64,
}

/// Serves until it is killed, and says where in the words of `lockgate serve`.
pub(in crate::bench) async fn serve() -> Result<(), Failure> {
    let router = Router::new()
        .route("/v1/coupons/{id}/issues", post(issue))
        .route("/readyz", axum::routing::get(async || "ready"))
        .with_state(Arc::new(AtomicU64::new(0)));
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    println!("a bare handler listens on http://{}", listener.local_addr()?);
    // As the server does: small answers are sent at once.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

async fn issue(
    State(issued): State<Arc<AtomicU64>>,
    Path(coupon): Path<String>,
    Json(Wish { user }): Json<Wish>,
) -> (StatusCode, Json<Issued>) {
    let seq = issued.fetch_add(1, Ordering::Relaxed) + 1;
    (StatusCode::CREATED, Json(Issued { coupon, user, seq, remaining: QUANTITY.saturating_sub(seq) }))
}
