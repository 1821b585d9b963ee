//! The operator's commands, against a real server.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{ADMIN_TOKEN, ServerProcess, lockgate, run};

/// A server, and somebody who looks after it.
struct Operator {
    server: ServerProcess,
    _data: TempDir,
}

impl Operator {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self { server: ServerProcess::start(data.path(), &[]), _data: data }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(&[arguments, &["--server", &self.server.url, "--token", ADMIN_TOKEN]].concat())
    }

    /// What it prints for people.
    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one document that it prints for machines.
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// The code of the problem, which has to be the same for people and for machines.
    fn refusal(&self, arguments: &[&str]) -> String {
        let plain = self.run(arguments);
        assert_eq!((plain.status.code(), plain.stdout.len()), (Some(1), 0), "{arguments:?}: {plain:?}");
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let problem: Value = serde_json::from_slice(&output.stdout).unwrap();
        let code = problem["code"].as_str().unwrap().to_owned();
        for said in [&plain.stderr, &output.stderr] {
            let said = String::from_utf8_lossy(said);
            assert!(said.starts_with(&format!("lockgate: {code}: ")) && said.lines().count() == 1, "{said}");
        }
        code
    }
}

#[test]
fn coupons_are_made_changed_paused_issued_and_listed() {
    let operator = Operator::new();
    let window = ["--opens-at", "2020-01-01T00:00:00Z", "--closes-at", "2099-01-01T00:00:00Z"];
    let made = operator.json(&[&["coupons", "create", "summer", "--quantity", "2"], &window[..]].concat());
    assert_eq!(made, operator.server.get("/v1/coupons/summer").1, "exactly what the server says");
    assert_eq!((&made["quantity"], &made["state"]), (&json!(2), &json!("open")));

    let again = operator.run(&["coupons", "create", "summer", "--quantity", "9"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("coupons change"), "{again:?}");
    assert_eq!(operator.server.get("/v1/coupons/summer").1, made, "nothing is replaced unasked");

    let changed = operator.json(&["coupons", "change", "summer", "--quantity", "3", "--closes-at", "none"]);
    assert_eq!(
        (&changed["quantity"], &changed["opens_at"]),
        (&json!(3), &made["opens_at"]),
        "the rest stays"
    );
    assert_eq!(changed.get("closes_at"), None);
    assert_eq!(operator.refusal(&["coupons", "change", "winter", "--quantity", "3"]), "unknown-coupon");

    assert_eq!(
        operator.text(&["coupons", "issue", "summer", "--user", "alice"]),
        "alice has number 1 of summer; 2 are left\n"
    );
    assert!(
        operator
            .text(&["coupons", "issue", "summer", "--user", "alice"])
            .contains("number 1 of summer, as before")
    );
    assert_eq!(operator.json(&["coupons", "issued", "summer", "--user", "alice"])["seq"], 1);
    assert_eq!(operator.refusal(&["coupons", "issued", "summer", "--user", "bob"]), "not-issued");

    assert_eq!(operator.json(&["coupons", "pause", "summer"])["state"], "paused");
    assert_eq!(operator.refusal(&["coupons", "issue", "summer", "--user", "bob"]), "paused");
    assert_eq!(operator.json(&["coupons", "resume", "summer"])["state"], "open");
    assert!(operator.text(&["coupons", "show", "summer"]).contains("remaining  2\n"));
    let all = operator.json(&["coupons", "list"]);
    assert_eq!((&all["coupons"][0]["id"], &all["more"]), (&json!("summer"), &json!(0)));
    let table = operator.text(&["coupons", "list"]);
    assert!(table.starts_with("id      state  quantity") && table.contains("\nsummer  open   3"), "{table}");
    assert_eq!(operator.json(&["coupons", "close", "summer"])["state"], "closed");

    let replaced = operator.json(&["coupons", "create", "summer", "--quantity", "4", "--replace"]);
    assert_eq!((&replaced["quantity"], replaced.get("opens_at")), (&json!(4), None));
    assert_eq!(operator.refusal(&["coupons", "change", "summer", "--quantity", "0"]), "below-issued");
    assert_eq!(operator.refusal(&["coupons", "show", "a/../b"]), "invalid", "an id is no path");

    let actions = operator.text(&["actions"]);
    assert!(actions.contains("pause-coupon") && actions.contains("close-coupon"), "{actions}");
}

#[test]
fn deals_are_sold_once_per_key() {
    let operator = Operator::new();
    operator.text(&["deals", "create", "tv", "--stock", "5", "--per-user", "3"]);
    let buy = ["deals", "purchase", "tv", "--user", "alice", "--quantity", "2"];
    let keyed = [&buy[..], &["--idempotency-key", "k1"]].concat();
    assert_eq!(operator.json(&keyed)["purchased"], 2);
    let again = operator.json(&keyed);
    assert_eq!((&again["purchased"], &again["replayed"]), (&json!(2), &json!(true)));
    assert_eq!(operator.refusal(&buy), "limit-exceeded", "another key is another purchase");
    assert_eq!(operator.json(&["deals", "change", "tv", "--per-user", "4"])["stock"], 5);
    assert!(operator.text(&buy).contains("alice has bought 2 of tv: sale 2, 4 in all; 1 are left"));
    assert_eq!(
        operator.refusal(&["deals", "purchase", "tv", "--user", "bob", "--quantity", "2"]),
        "sold-out"
    );
    assert_eq!(operator.json(&["deals", "pause", "tv"])["state"], "paused");
    assert_eq!(operator.json(&["deals", "list"])["deals"][0]["sold"], 4);
}

#[test]
fn a_line_is_made_slowed_down_and_let_in_and_its_passes_open_a_coupon() {
    let operator = Operator::new();
    let rate = ["--batch", "5", "--every", "1h", "--max-active", "9", "--grace", "none", "--pass-ttl", "10m"];
    operator.text(&[&["lines", "create", "door"], &rate[..]].concat());
    let pause = operator.json(&["lines", "pause", "door"]);
    assert_eq!((&pause["state"], &pause["grace_ms"]), (&json!("paused"), &Value::Null));
    let ticket = operator.json(&["lines", "enter", "door", "--user", "alice"])["ticket"].clone();
    let ticket = ticket.as_str().unwrap();
    assert_eq!(operator.json(&["lines", "ticket", "door", ticket])["position"], 1);

    let slower = operator.json(&["lines", "change", "door", "--every", "2h", "--max-active", "none"]);
    let kept = [&slower["batch"], &slower["pass_ttl_ms"], &slower["grace_ms"], &slower["state"]];
    assert_eq!(
        kept,
        [&json!(5), &json!(600_000), &Value::Null, &json!("paused")],
        "the rest stays: {slower}"
    );
    assert_eq!((&slower["every_ms"], slower.get("max_active")), (&json!(7_200_000), None));

    let admit = ["lines", "admit", "door", "--count", "1", "--idempotency-key", "k"];
    assert!(operator.text(&admit).starts_with("1 of those who wait"));
    assert!(operator.text(&admit).contains("nobody is admitted for it twice"));
    operator.text(&["coupons", "create", "vip", "--quantity", "1", "--line", "door"]);
    assert_eq!(operator.refusal(&["coupons", "issue", "vip", "--user", "alice"]), "pass-required");
    let admitted = lockgate::testing::eventually(std::time::Duration::from_secs(20), || {
        operator.json(&["lines", "ticket", "door", ticket])["state"] == "admitted"
    });
    assert!(admitted);
    let pass = operator.json(&["lines", "ticket", "door", ticket])["pass"].clone();
    let issue = ["coupons", "issue", "vip", "--user", "alice", "--pass", pass.as_str().unwrap()];
    assert_eq!(operator.json(&issue)["seq"], 1);

    assert_ne!(operator.json(&["lines", "leave", "door", ticket])["state"], "admitted");
    assert_eq!(operator.refusal(&["lines", "forget", "door"]), "not-closed");
    assert_eq!(operator.json(&["lines", "close", "door"])["state"], "closed");
    assert!(operator.text(&["lines", "list"]).contains("\ndoor  closed"));
    assert_eq!(operator.text(&["lines", "forget", "door", "--json"]), "", "what the server says: nothing");
    assert_eq!(operator.refusal(&["lines", "show", "door"]), "unknown-line");
}

#[test]
fn locks_are_taken_renewed_given_back_and_taken_away() {
    let operator = Operator::new();
    let taken = operator.json(&["locks", "acquire", "job", "--owner", "a", "--lease", "5m"]);
    assert_eq!(taken["lease_ms"], 300_000);
    assert_eq!(operator.refusal(&["locks", "acquire", "job", "--owner", "b", "--wait", "1ms"]), "locked");
    let token = taken["token"].as_str().unwrap();
    let holding = |word: &'static str| ["locks", word, "job", "--lock-token", token];
    assert_eq!(operator.json(&[&holding("renew")[..], &["--lease", "1m"]].concat())["lease_ms"], 60_000);
    assert_eq!(operator.json(&["locks", "show", "job"])["held"], true);
    assert_eq!(operator.text(&holding("release")), "\"job\" is given back\n");
    assert_eq!(operator.refusal(&holding("renew")), "not-held");

    let taken = operator.json(&["locks", "acquire", "job", "--owner", "a"]);
    let broken = operator.json(&["locks", "force-release", "job"]);
    assert!(broken["fence"].as_u64() > taken["fence"].as_u64(), "{broken} {taken}");
    let table = operator.text(&["locks", "list"]);
    assert!(table.starts_with("key  held") && table.contains("\njob  no"), "{table}");
}

/// Runs it with these in its environment, in a folder of its own.
fn run_with(arguments: &[&str], environment: &[(&str, &str)], folder: &Path) -> Output {
    lockgate(arguments).envs(environment.iter().copied()).current_dir(folder).output().unwrap()
}

#[test]
fn a_token_comes_from_a_file_the_environment_or_the_data_folder_and_is_shown_to_nobody() {
    let (data, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = ServerProcess::start_without_token(data.path(), &["--app-token", "for-apps"]);
    let kept = data.path().join("admin-token");
    let admin = std::fs::read_to_string(&kept).unwrap().trim().to_owned();
    let (kept, folder) = (kept.to_str().unwrap(), data.path().to_str().unwrap());
    let on = |what: &[&str], more: &[&str], environment: &[(&str, &str)]| {
        let output = run_with(&[what, &["--server", &server.url], more].concat(), environment, empty.path());
        let said = format!("{output:?}");
        assert!(!said.contains(&admin) && !said.contains("for-apps") && !said.contains("guess"), "{said}");
        (output.status.code(), said)
    };
    let create = |id: &'static str| ["coupons", "create", id, "--quantity", "1"];
    let list = ["coupons", "list"];
    assert_eq!(on(&create("a"), &["--token-file", kept], &[]).0, Some(0));
    assert_eq!(on(&create("b"), &["--data", folder], &[]).0, Some(0));
    assert_eq!(on(&create("c"), &[], &[("LOCKGATE_ADMIN_TOKEN", &admin)]).0, Some(0));
    assert_eq!(on(&list, &[], &[("LOCKGATE_APP_TOKEN", "for-apps")]).0, Some(0));
    assert_eq!(on(&list, &[], &[("LOCKGATE_ADMIN_TOKEN", &admin)]).0, Some(0));
    for (what, more, environment) in [
        (&create("d")[..], vec![], vec![]),
        (&create("d")[..], vec![], vec![("LOCKGATE_APP_TOKEN", "for-apps")]),
        (&list[..], vec!["--token", "guess"], vec![("LOCKGATE_APP_TOKEN", "for-apps")]),
    ] {
        let (code, said) = on(what, &more, &environment);
        assert!(code == Some(1) && said.contains("LOCKGATE_ADMIN_TOKEN"), "{said}");
    }
    let (code, said) = on(&list, &["--token", "guess what"], &[]);
    assert!(code == Some(1) && said.contains("--token: a token is"), "{said}");
    let (code, said) = on(&list, &["--token-file", "/no/such/file"], &[]);
    assert!(code == Some(1) && said.contains("cannot read the token in /no/such/file"), "{said}");
    let (code, said) = on(&list, &["--data", "/no/such/folder"], &[]);
    assert!(code == Some(1) && said.contains("/no/such/folder/admin-token"), "{said}");
}

#[test]
fn beside_its_data_folder_a_local_server_needs_no_token_to_be_given() {
    let home = tempfile::tempdir().unwrap();
    let server = ServerProcess::start_without_token(&home.path().join("lockgate-data"), &[]);
    let create = ["coupons", "create", "a", "--quantity", "1", "--server", &server.url];
    let output = run_with(&create, &[], home.path());
    assert!(output.status.success(), "{output:?}");
}

/// A certificate for 127.0.0.1, signed by itself.
fn certificate(folder: &Path) -> [String; 2] {
    let [key, certificate] =
        ["tls.key", "tls.crt"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let mut openssl = Command::new("openssl");
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
    openssl.args(["-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &key, "-out", &certificate]);
    assert!(openssl.output().unwrap().status.success());
    [certificate, key]
}

#[test]
fn a_server_with_a_certificate_is_trusted_when_it_is_named_and_not_before() {
    let (data, tls) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [certificate, key] = certificate(tls.path());
    let server = ServerProcess::start(data.path(), &["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let list = |more: &[&str]| run(&[&["coupons", "list", "--server", &server.url], more].concat());
    let trusted = list(&["--ca", &certificate]);
    assert_eq!(String::from_utf8_lossy(&trusted.stdout), "none\n", "{trusted:?}");
    let refused = list(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--ca"), "{refused:?}");
    let wrong = list(&["--ca", &key]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("has no certificate"), "{wrong:?}");
}

#[test]
fn a_server_that_is_not_there_or_is_another_one_is_named_with_the_remedy() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = run(&["coupons", "list", "--server", &format!("http://{gone}")]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{said}");
    assert!(
        said.contains(&format!("nobody listens at http://{gone}")) && said.contains("lockgate serve"),
        "{said}"
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asks = ["deals", "purchase", "tv", "--user", "a", "--server", &format!("http://{address}")];
    let asked = lockgate(&asks).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // It hears the question, and hangs up.
    drop(listener.accept().unwrap());
    let output = asked.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("may have happened: repeat it with --idempotency-key "), "{said}");
}

#[test]
fn a_token_is_not_sent_on_to_where_a_server_points() {
    let [server, elsewhere] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [url, other] =
        [&server, &elsewhere].map(|listener| format!("http://{}", listener.local_addr().unwrap()));
    let asks = ["coupons", "list", "--server", &url, "--token", ADMIN_TOKEN];
    let asked = lockgate(&asks).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stream, _) = server.accept().unwrap();
    let answer = format!("HTTP/1.1 307 Elsewhere\r\nLocation: {other}/\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).unwrap();
    let output = asked.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("answered 307"), "{said}");
    elsewhere.set_nonblocking(true).unwrap();
    assert!(elsewhere.accept().is_err(), "somebody came");
}
