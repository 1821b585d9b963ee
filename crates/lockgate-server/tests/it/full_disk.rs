//! The disk of an embedded server is full, and there is room again.

use std::sync::Arc;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::eventually_async;
use serde_json::json;

use crate::client::Client;

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_that_was_answered_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::open(folder.path().join("journal.db"), &Config::default()).unwrap());
    let client = Client::on(Arc::clone(&store) as _, Clock::system(), None);
    assert_eq!(client.put("/v1/coupons/c", json!({ "quantity": 1_000_000 })).await.status, 201);

    store.limit_journal_pages(Some(8));
    let (mut granted, mut refused) = (Vec::new(), 0);
    for user in 0..20_000 {
        // Long names fill pages.
        let user = format!("{user}-{}", "x".repeat(100));
        let answer = client.post("/v1/coupons/c/issues", json!({ "user": user })).await;
        match answer.status.as_u16() {
            201 => granted.push((user, answer.body["seq"].clone())),
            503 => refused += 1,
            other => panic!("{other}: {}", answer.body),
        }
        if refused > 3 {
            break;
        }
    }
    assert!(!granted.is_empty() && refused > 3, "{} granted, {refused} refused", granted.len());

    store.limit_journal_pages(None);
    let is_back = async || {
        let issued = client.post("/v1/coupons/c/issues", json!({ "user": "after" })).await.status;
        issued == 201 || issued == 200
    };
    assert!(eventually_async(Duration::from_secs(20), is_back).await, "not back");
    assert_eq!(client.get("/readyz").await.status, 200);
    for (user, seq) in granted {
        let again = client.post("/v1/coupons/c/issues", json!({ "user": user })).await;
        assert_eq!((again.status.as_u16(), &again.body["seq"]), (200, &seq), "{}", again.body);
    }
}
