//! The ledger as operators meet it: written by the server, audited, exported, imported into, recovered from.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use lockgate::testing::eventually;
use lockgate::testing::services::{Persistence, Postgres, Redis};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{ServerProcess, run};

/// A server on Redis, with a ledger in a file.
struct Shop {
    redis: Redis,
    folder: TempDir,
    ledger: String,
}

impl Shop {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let ledger = format!("sqlite:{}/ledger.db", folder.path().display());
        Self { redis: Redis::start(Persistence::Off).unwrap(), folder, ledger }
    }

    fn serve(&self) -> ServerProcess {
        let server = ServerProcess::start(
            self.folder.path(),
            &["--store", &self.redis.url(), "--ledger", &self.ledger],
        );
        // Nothing opens before the ledger has vouched for the store.
        assert!(eventually(Duration::from_secs(20), || {
            server.put("/v1/coupons/summer", &json!({ "quantity": 100 })).0 != 503
        }));
        server
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let with_places = |places: &[&str]| run(&[arguments, places].concat());
        match arguments {
            ["audit" | "recover", ..] | ["ledger", "purge" | "erase", ..] => {
                with_places(&["--store", &self.redis.url(), "--ledger", &self.ledger])
            }
            ["ledger", "import", ..] => with_places(&["--store", &self.redis.url()]),
            _ => with_places(&["--ledger", &self.ledger]),
        }
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn audit(&self) -> Value {
        serde_json::from_slice(&self.run(&["audit", "--json"]).stdout).unwrap()
    }
}

fn issue(server: &ServerProcess, user: &str) -> (u16, Value) {
    server.post("/v1/coupons/summer/issues", &json!({ "user": user }))
}

#[test]
fn what_the_server_decides_is_written_down_audited_exported_and_erased() {
    let shop = Shop::new();
    let server = shop.serve();
    for user in ["alice", "bob", "carol"] {
        assert_eq!(issue(&server, user).0, 201);
    }
    let is_well = || {
        let ledger = server.get("/readyz").1["ledger"].clone();
        ledger["behind_ms"] == 0 && ledger["is_written"] == true && ledger["audit"] == "green"
    };
    assert!(eventually(Duration::from_secs(40), is_well), "{}", server.get("/readyz").1);
    assert_eq!(server.terminate(), Some(0));

    let audit = shop.audit();
    assert_eq!((&audit["light"], &audit["campaigns"][0]["persisted"]), (&json!("green"), &json!(3)));
    assert!(shop.text(&["audit"]).contains("green  coupon::summer: 3 granted = 3 persisted + 0 in flight"));
    let csv = shop.text(&["ledger", "export", "coupon", "summer"]);
    let lines: Vec<_> = csv.split("\r\n").collect();
    assert_eq!((lines[0], lines.len()), ("seq,user,quantity,granted_at", 5));
    assert!(lines[2].starts_with("2,bob,1,20"), "{csv}");
    assert!(shop.text(&["ledger", "erase", "bob"]).starts_with("1 rows"));
    let jsonl = shop.text(&["ledger", "export", "coupon", "summer", "--format", "jsonl"]);
    let second: Value = serde_json::from_str(jsonl.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&second["seq"], &second["user"]), (&json!(2), &Value::Null));
    assert_eq!(shop.text(&["ledger", "dead-letters"]), "");
}

#[test]
fn a_redis_that_has_forgotten_everything_gets_it_back() {
    let shop = Shop::new();
    let server = shop.serve();
    for user in ["alice", "bob"] {
        assert_eq!(issue(&server, user).0, 201);
    }
    assert!(eventually(Duration::from_secs(20), || shop.audit()["campaigns"][0]["persisted"] == 2));
    shop.redis.kill();
    shop.redis.restart().unwrap();
    assert!(eventually(Duration::from_secs(20), || issue(&server, "carol").1["code"] == "recovering"));
    let (status, problem) = server.put("/v1/coupons/summer", &json!({ "quantity": 100 }));
    assert_eq!((status, &problem["code"]), (503, &json!("recovering")));
    let red = shop.run(&["audit"]);
    assert_eq!(red.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&red.stderr).contains("docs/operations.md"), "{red:?}");

    let said: Value = serde_json::from_str(&shop.text(&["recover", "--json"])).unwrap();
    assert_eq!((&said["lost"], &said["recovered"][0]["found"]), (&json!(0), &json!(3)));
    let (status, again) = issue(&server, "bob");
    assert_eq!((status, &again["seq"]), (200, &json!(2)));
    assert_eq!(issue(&server, "carol").1["seq"], 3);
    assert!(shop.text(&["recover"]).ends_with("0 changes that somebody had seen are lost\n"));
}

#[test]
fn those_who_have_one_already_are_taken_over() {
    let shop = Shop::new();
    let server = shop.serve();
    for (score, user) in ["first", "second", "third"].iter().enumerate() {
        shop.redis.command(&["ZADD", "winners", &score.to_string(), user]).unwrap();
    }
    let redis = shop.redis.url();
    let import = |more: &[&str]| shop.text(&[&["ledger", "import", "summer"], more].concat());
    let from_key = ["--redis-key", "winners", "--redis", &redis];
    assert_eq!(import(&from_key), "3 users: 3 were given one, 0 had one before\n");
    assert_eq!(import(&from_key), "3 users: 0 were given one, 3 had one before\n", "twice changes nothing");
    assert_eq!(issue(&server, "second").1["seq"], 2, "in their order");

    let file = shop.folder.path().join("users.txt");
    std::fs::write(&file, "third\nfourth\n\nfifth\n").unwrap();
    assert_eq!(import(&["--file", file.to_str().unwrap()]), "3 users: 2 were given one, 1 had one before\n");
    assert!(eventually(Duration::from_secs(20), || shop.audit()["campaigns"][0]["persisted"] == 5));
    let query = "SELECT user_id || '-again' FROM lockgate_grants ORDER BY seq";
    assert_eq!(
        import(&["--query", query, "--db", &shop.ledger]),
        "5 users: 5 were given one, 0 had one before\n"
    );

    for (bad, remedy) in [
        (vec!["--redis-key", "nothing", "--redis", &redis], "there is no key nothing"),
        (vec!["--redis-key", "lg:layout", "--redis", &redis], "a set, a sorted set or a list"),
        (vec!["--file", "/no/such/file"], "cannot read"),
    ] {
        let refused = shop.run(&[&["ledger", "import", "summer"][..], &bad].concat());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(remedy), "{refused:?}");
    }
    let unknown = shop.run(&["ledger", "import", "winter", "--file", file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("open it first"), "{unknown:?}");
}

#[test]
fn an_embedded_server_can_have_a_ledger_too() {
    let folder = TempDir::new().unwrap();
    let ledger = format!("sqlite:{}/ledger.db", folder.path().display());
    let server = ServerProcess::start(folder.path(), &["--ledger", &ledger]);
    assert_eq!(server.put("/v1/coupons/summer", &json!({ "quantity": 2 })).0, 201);
    assert_eq!(issue(&server, "alice").0, 201);
    assert_eq!(server.terminate(), Some(0), "it flushes the ledger before it ends");
    let csv = run(&["ledger", "export", "coupon", "summer", "--ledger", &ledger]);
    assert!(String::from_utf8_lossy(&csv.stdout).contains("1,alice,1,"), "{csv:?}");
    let journal = format!("sqlite:{}", journal_in(folder.path()));
    // A file that was lost would be sold again; it is not served, but built anew.
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", journal_in(folder.path())));
    }
    let data = folder.path().to_str().unwrap();
    let refused = run(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--ledger", &ledger]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("lockgate recover"), "{refused:?}");
    let recovered = run(&["recover", "--store", &journal, "--ledger", &ledger]);
    assert!(
        String::from_utf8_lossy(&recovered.stdout).contains("1 campaigns are open; 0 changes"),
        "{recovered:?}"
    );
    let server = ServerProcess::start(folder.path(), &["--ledger", &ledger]);
    assert_eq!(issue(&server, "alice").1["seq"], 1);
    assert_eq!(server.terminate(), Some(0));
    let audit = run(&["audit", "--store", &journal, "--ledger", &ledger]);
    assert!(audit.status.success(), "{audit:?}");
}

fn journal_in(folder: &Path) -> String {
    folder.join("journal.db").display().to_string()
}

#[test]
fn a_ledger_that_cannot_be_had_is_said_at_once() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    for (ledger, remedy) in [
        ("nonsense", "sqlite:<file>, postgres://"),
        ("postgres://user:secret@127.0.0.1:1/x", "start the database there"),
    ] {
        let refused = run(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--ledger", ledger]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(remedy) && !said.contains("secret"), "{said}");
    }
}

#[test]
fn the_connection_to_the_database_is_encrypted_where_that_is_demanded() {
    let (encrypted, plain) = (Postgres::builder().encrypted().start().unwrap(), Postgres::start().unwrap());
    let data = TempDir::new().unwrap();
    let trusted = format!("sslmode=verify-full&sslrootcert={}", encrypted.certificate_file().display());
    let ledger = format!("{}?{trusted}", encrypted.url());
    let server = ServerProcess::start(data.path(), &["--ledger", &ledger]);
    assert_eq!(server.put("/v1/coupons/summer", &json!({ "quantity": 1 })).0, 201);
    assert_eq!(server.post("/v1/coupons/summer/issues", &json!({ "user": "ann" })).0, 201);
    let is_written = || {
        let export = run(&["ledger", "export", "coupon", "summer", "--ledger", &ledger]);
        String::from_utf8_lossy(&export.stdout).contains("1,ann,1")
    };
    assert!(eventually(Duration::from_secs(20), is_written));
    // A server that nobody vouches for, and one that cannot.
    let [unknown, plain] =
        [format!("{}?sslmode=verify-full", encrypted.url()), format!("{}?{trusted}", plain.url())];
    for refused in [unknown, plain] {
        let output = run(&["ledger", "dead-letters", "--ledger", &refused]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}
