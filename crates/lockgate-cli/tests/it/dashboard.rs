//! The dashboard in a real browser: Chromium, driven through WebDriver.
//!
//! With `UPDATE_SNAPSHOTS=1` the pictures in `docs/img` are taken anew.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use lockgate::testing::eventually_async;
use lockgate::testing::services::program::{CHROMEDRIVER, CHROMIUM};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::process::{ADMIN_TOKEN, ServerProcess};

const SOON: Duration = Duration::from_secs(20);

const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/img");

/// What goes wrong in the page, and what its policy forbids.
const LISTEN_FOR_COMPLAINTS: &str = "
    window.complaints = [];
    const note = (what) => window.complaints.push(String(what));
    addEventListener('error', (event) => note(event.message));
    addEventListener('unhandledrejection', (event) => note(event.reason));
    addEventListener('securitypolicyviolation', (event) => note(event.violatedDirective));
";

/// A browser with a driver of its own. Both end with this value.
struct Browser {
    driver: Child,
    client: Client,
    _profile: tempfile::TempDir,
}

impl Browser {
    async fn open(url: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let driver =
            Command::new(CHROMEDRIVER.find().expect("chromedriver: `cargo xtask setup` installs it"))
                .arg(format!("--port={port}"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        let profile = tempfile::tempdir().unwrap();
        let profile_flag = format!("--user-data-dir={}", profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            "--force-prefers-reduced-motion",
            &profile_flag,
        ];
        let options = json!({ "args": arguments, "binary": CHROMIUM.find().unwrap() });
        let wishes = json!({ "goog:chromeOptions": options });
        let Value::Object(wishes) = wishes else { panic!() };
        let driver_url = format!("http://127.0.0.1:{port}");
        let mut client = None;
        let connects = eventually_async(SOON, async || {
            client = ClientBuilder::new(HttpConnector::new())
                .capabilities(wishes.clone())
                .connect(&driver_url)
                .await
                .ok();
            client.is_some()
        });
        assert!(connects.await, "no browser");
        let browser = Self { driver, client: client.unwrap(), _profile: profile };
        browser.client.goto(url).await.unwrap();
        browser.client.execute(LISTEN_FOR_COMPLAINTS, Vec::new()).await.unwrap();
        browser.until_is("connection", "data-state", "live").await;
        browser
    }

    async fn find(&self, test: &str) -> Element {
        let selector = format!("[data-test=\"{test}\"]");
        let found = self.client.wait().at_most(SOON).for_element(Locator::Css(&selector)).await;
        found.unwrap_or_else(|why| panic!("{test}: {why}"))
    }

    async fn click(&self, test: &str) {
        // What is redrawn at that moment is looked for again.
        let clicked = async || self.find(test).await.click().await.is_ok();
        assert!(eventually_async(SOON, clicked).await, "{test} cannot be clicked");
    }

    async fn type_into(&self, test: &str, text: &str) {
        self.find(test).await.send_keys(text).await.unwrap();
    }

    async fn until(&self, test: &str, what: &str, is_so: impl Fn(&str) -> bool) {
        let mut seen = String::new();
        let came = eventually_async(SOON, async || {
            seen = self.find(test).await.text().await.unwrap_or_default();
            is_so(&seen)
        });
        assert!(came.await, "{test} never {what}: {seen:?}");
    }

    async fn until_reads(&self, test: &str, text: &str) {
        self.until(test, text, |seen| seen == text).await;
    }

    async fn until_is(&self, test: &str, attribute: &str, value: &str) {
        let mut seen = None;
        let came = eventually_async(SOON, async || {
            seen = self.find(test).await.attr(attribute).await.ok().flatten();
            seen.as_deref() == Some(value)
        });
        assert!(came.await, "{attribute} of {test} is never {value}: {seen:?}");
    }

    async fn picture(&self, name: &str) {
        let bytes = self.client.screenshot().await.unwrap();
        assert!(bytes.len() > 10_000, "{name} is empty");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::create_dir_all(PICTURES).unwrap();
            std::fs::write(Path::new(PICTURES).join(name), bytes).unwrap();
        }
    }

    /// Ends it; the page must not have complained.
    async fn close(self) {
        let said = self.client.execute("return window.complaints", Vec::new()).await.unwrap();
        assert_eq!(said, json!([]), "the page has complained");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A browser whose driver ends goes on without it: it is closed first, also when the test has failed.
        let closing = self.client.clone().close();
        let _ = tokio::task::block_in_place(|| Handle::current().block_on(closing));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_runs_a_sale_from_the_page() {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &[]);
    server.put("/v1/lines/tour", &json!({ "batch": 1, "every_ms": 60_000 }));
    for user in 0..5 {
        server.post("/v1/lines/tour/tickets", &json!({ "user": format!("u{user}") }));
    }
    let lock = json!({ "owner": "job", "wait_ms": 0, "lease_ms": 600_000 });
    assert_eq!(server.post("/v1/locks/report", &lock).0, 200);
    let browser = Browser::open(&server.url).await;

    // A coupon is created; a wrong token is refused, the right one is asked for once.
    browser.click("nav-create").await;
    browser.type_into("create-coupon-id", "welcome").await;
    browser.type_into("create-coupon-quantity", "100").await;
    browser.click("create-coupon-submit").await;
    browser.type_into("token-input", "wrong").await;
    browser.click("token-submit").await;
    browser.until("token-error", "says that it is wrong", |text| !text.is_empty()).await;
    assert_eq!(server.get("/v1/coupons/welcome").0, 404, "nothing was created");
    browser.find("token-input").await.clear().await.unwrap();
    browser.type_into("token-input", ADMIN_TOKEN).await;
    browser.click("token-submit").await;

    // It is issued elsewhere, and the number falls here.
    browser.click("nav-stock").await;
    browser.until_reads("coupon-welcome-remaining", "100").await;
    for user in 0..7 {
        assert_eq!(server.post("/v1/coupons/welcome/issues", &json!({ "user": format!("u{user}") })).0, 201);
    }
    browser.until_reads("coupon-welcome-remaining", "93").await;
    browser.picture("dashboard-stock.png").await;

    // The line stands still.
    browser.click("nav-lines").await;
    browser.click("line-tour-pause").await;
    browser.until_is("line-tour", "data-state", "paused").await;
    assert_eq!(server.get("/v1/lines/tour").1["state"], "paused");
    browser.picture("dashboard-lines.png").await;

    // The lock is taken away, after a question.
    browser.click("nav-locks").await;
    browser.click("lock-report-release").await;
    assert_eq!(server.get("/v1/locks/report").1["held"], true, "not before the answer");
    browser.click("confirm-yes").await;
    let is_free = async || server.get("/v1/locks/report").1["held"] == false;
    assert!(eventually_async(SOON, is_free).await);

    // All of it is in the log.
    browser.click("nav-log").await;
    browser.until("log-table", "tells of the lock", |text| text.contains("/v1/locks/report/break")).await;
    browser.click("nav-overview").await;
    browser.until("total-waiting", "counts who waits", |text| text.contains('4')).await;
    browser.picture("dashboard-overview.png").await;
    browser.close().await;
}

/// What reaches beyond the window, on the view that is shown, unless it can be scrolled by itself.
const TOO_WIDE: &str = "
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > width + 1)
        .map((one) => `${one.tagName} ${one.className} ${one.dataset.test ?? ''} ${one.getBoundingClientRect().right} of ${width}`);
";

/// How dark the page is: the sum of red, green and blue behind it.
const BRIGHTNESS: &str = "return getComputedStyle(document.documentElement).backgroundColor.match(/[0-9.]+/g).slice(0, 3)\
    .reduce((sum, part) => sum + Number(part), 0)";

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_opened_by_keyboard_looked_after_and_read_on_a_phone_in_the_dark() {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &[]);
    server.put("/v1/deals/socks", &json!({ "stock": 40, "per_user": 2 }));
    let browser = Browser::open(&server.url).await;
    let number =
        async |script: &str| browser.client.execute(script, Vec::new()).await.unwrap().as_f64().unwrap();

    // Without a mouse: the form has the focus, Enter sends it, and so it is with the question for the token.
    browser.client.goto(&format!("{}/#create/line", server.url)).await.unwrap();
    browser.client.refresh().await.unwrap();
    browser.client.execute(LISTEN_FOR_COMPLAINTS, Vec::new()).await.unwrap();
    browser.type_into("create-line-id", "tour").await;
    browser.find("create-line-batch").await.clear().await.unwrap();
    browser.type_into("create-line-batch", "1").await;
    browser.find("create-line-every_ms").await.clear().await.unwrap();
    browser.type_into("create-line-every_ms", "3600\u{e007}").await;
    browser.type_into("token-input", &format!("{ADMIN_TOKEN}\u{e007}")).await;
    let is_there = async || server.get("/v1/lines/tour").0 == 200;
    assert!(eventually_async(SOON, is_there).await, "the line was not created");
    for user in 0..9 {
        server.post("/v1/lines/tour/tickets", &json!({ "user": format!("u{user}") }));
    }

    // It is looked after: so many at once, then another rate.
    browser.click("nav-lines").await;
    browser.until_reads("line-tour-waiting", "8").await;
    browser.find("line-tour-admit-count").await.clear().await.unwrap();
    browser.type_into("line-tour-admit-count", "3").await;
    browser.click("line-tour-admit").await;
    browser.until_reads("line-tour-waiting", "5").await;
    browser.click("line-tour-edit").await;
    browser.find("edit-line-batch").await.clear().await.unwrap();
    browser.type_into("edit-line-batch", "4\u{e007}").await;
    let is_faster = async || server.get("/v1/lines/tour").1["batch"] == 4;
    assert!(eventually_async(SOON, is_faster).await, "the rate has not changed");

    // A deal burns down, and the page says when it will be gone, and why somebody got nothing.
    for user in 0..15 {
        let wish = json!({ "user": format!("u{user}"), "quantity": 2 });
        server.post_as(&format!("k{user}"), "/v1/deals/socks/purchases", &wish);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let too_much = json!({ "user": "u0", "quantity": 2 });
    assert_eq!(server.post_as("again", "/v1/deals/socks/purchases", &too_much).0, 409);
    browser.click("nav-stock").await;
    browser.until_reads("deal-socks-remaining", "10").await;
    browser.until("deal-socks-sellout", "says when", |text| text.chars().any(|c| c.is_ascii_digit())).await;
    browser.until("deal-socks-rejections", "says why", |text| text.to_lowercase().contains("limit")).await;
    let drawn =
        "return document.querySelector('[data-test=\"deal-socks-chart\"] path').getAttribute('d').length";
    assert!(number(drawn).await > 10.0, "nothing is drawn");

    // Dark, and on a phone: nothing is wider than the window.
    let bright = number(BRIGHTNESS).await;
    browser.click("theme-toggle").await;
    browser.click("theme-toggle").await;
    let dark = number(BRIGHTNESS).await;
    assert!(dark < 300.0 && bright > 450.0, "{bright} became {dark}");
    browser.client.set_window_size(390, 844).await.unwrap();
    for view in ["overview", "stock", "lines", "locks", "ledger", "log", "create"] {
        browser.client.execute(&format!("location.hash = '#{view}'"), Vec::new()).await.unwrap();
        browser.until_is(&format!("nav-{view}"), "aria-current", "page").await;
        let too_wide = browser.client.execute(TOO_WIDE, Vec::new()).await.unwrap();
        assert_eq!(too_wide, json!([]), "{view} is wider than a phone");
    }
    browser.client.execute("location.hash = '#stock'", Vec::new()).await.unwrap();
    browser.until_reads("deal-socks-remaining", "10").await;
    browser.picture("dashboard-phone.png").await;
    browser.close().await;
}

/// A database that refuses somebody, and an operator who mends it.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_replays_what_the_database_refused() {
    let data = tempfile::tempdir().unwrap();
    let ledger = format!("sqlite:{}/ledger.db", data.path().display());
    let server = ServerProcess::start(data.path(), &["--ledger", &ledger]);
    let database = sqlx::SqlitePool::connect(&ledger).await.unwrap();
    let run = async |sql: &'static str| sqlx::raw_sql(sql).execute(&database).await.unwrap();
    let refuse = "CREATE TRIGGER picky BEFORE INSERT ON lockgate_ledger WHEN NEW.user_id LIKE 'bad%' \
                  BEGIN SELECT RAISE(ABORT, 'we do not serve them'); END";
    run(refuse).await;
    server.put("/v1/coupons/w", &json!({ "quantity": 10 }));
    for user in ["bad-1", "bad-2", "bad-3"] {
        assert_eq!(server.post("/v1/coupons/w/issues", &json!({ "user": user })).0, 201);
    }
    let browser = Browser::open(&server.url).await;
    browser.click("nav-ledger").await;
    browser.until_reads("ledger-dead-letters", "3").await;
    browser.click("dead-letters-list").await;
    browser.type_into("token-input", ADMIN_TOKEN).await;
    browser.click("token-submit").await;
    let tells = |text: &str| text.contains("we do not serve them") && text.contains("bad-2");
    browser.until("dead-letters-table", "says why", tells).await;
    // Refused again, it stays.
    let second = browser.client.find(Locator::Css("[data-test^='dead-letter-'][data-test$='-replay']")).await;
    second.unwrap().click().await.unwrap();
    browser.until("toast-detail", "says why", |text| text.contains("we do not serve them")).await;
    run("DROP TRIGGER picky").await;
    // One is given up for good, after a question; the others are written.
    let first = browser.client.find(Locator::Css("[data-test^='dead-letter-'][data-test$='-discard']")).await;
    first.unwrap().click().await.unwrap();
    browser.click("confirm-yes").await;
    browser.until("dead-letters-table", "has two left", |text| !text.contains("bad-1")).await;
    browser.click("dead-letters-replay").await;
    browser.until_reads("ledger-dead-letters", "0").await;
    let kept = "SELECT GROUP_CONCAT(user_id) FROM lockgate_grants WHERE user_id LIKE 'bad%'";
    let kept: String = sqlx::query_scalar(kept).fetch_one(&database).await.unwrap();
    assert_eq!(kept, "bad-2,bad-3");
    browser.close().await;
}
