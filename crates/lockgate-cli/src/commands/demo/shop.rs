//! The shop: a real server in this process, and what is left on disk when it has closed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::ledger::{Ledger, Light};
use lockgate::store::{Campaign, CampaignKind};
use lockgate_server::{ServeConfig, Server, Stop, app};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::http::Http;
use super::shoppers;
use super::tally::{Story, Tally};
use crate::commands::wishes::{millis, random_key};
use crate::commands::{Failure, Outcome};

pub(super) const LINE: &str = "door";
pub(super) const COUPON: &str = "summer";

/// How often the server tells where people stand, at the least.
pub(super) const TICK: Duration = Duration::from_millis(250);

/// Who is not seen for so long is passed over.
const GRACE: Duration = Duration::from_secs(5);

/// What is sold, and how.
#[derive(Clone, Debug)]
pub(super) struct Sale {
    pub(super) shoppers: u32,
    pub(super) stock: u32,
    pub(super) batch: u32,
    pub(super) every: Duration,
    pub(super) seed: u32,
}

impl Sale {
    /// How long it takes to admit everybody.
    pub(super) fn length(&self) -> Duration {
        self.every * self.shoppers.div_ceil(self.batch)
    }
}

impl fmt::Display for Sale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shoppers, stock, batch, every, seed } = self;
        write!(
            f,
            "{shoppers} shoppers want {stock} coupons; {batch} are admitted every {every:?} (seed {seed})"
        )
    }
}

/// A shop that is open.
#[derive(Debug)]
pub(super) struct Shop {
    folder: TempDir,
    address: SocketAddr,
    token: String,
    stop: Stop,
    serving: JoinHandle<std::io::Result<()>>,
}

/// What the shoppers tell, and what the server says in the end.
#[derive(Clone, Debug)]
pub(super) struct Sold {
    pub(super) stories: Vec<Story>,
    pub(super) coupon: Value,
    pub(super) line: Value,
}

/// How long those who went away without a word may hold up the end.
const TO_EMPTY_THE_LINE: Duration = Duration::from_secs(60);

impl Shop {
    pub(super) async fn open(listen: SocketAddr) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("lockgate-demo-").tempdir()?;
        Self::open_in(folder, listen, random_key()?).await
    }

    async fn open_in(folder: TempDir, listen: SocketAddr, token: String) -> Result<Self, Failure> {
        let mut config = ServeConfig::new(listen, folder.path().to_owned());
        config.ledger = Some(ledger_in(&folder));
        config.admin_token = Some(token.parse()?);
        config.gate.line_tick = TICK;
        let server = Server::start(config).await?;
        let (address, stop) = (server.address(), Stop::default());
        let serving = tokio::spawn(server.run_until(stop.clone(), app));
        Ok(Self { folder, address, token, stop, serving })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.token
    }

    /// Opens the sale, lets everybody come, and waits until the line is empty.
    pub(super) async fn sell(&self, sale: &Sale, tally: &Arc<Tally>) -> Result<Sold, Failure> {
        let admin = Http::new(&self.url(), Some(&self.token));
        let line = json!({
            "batch": sale.batch, "every_ms": millis(sale.every), "max_active": sale.batch.saturating_mul(10),
            "pass_ttl_ms": 60_000, "grace_ms": millis(GRACE),
        });
        created(admin.put(&format!("/v1/lines/{LINE}"), &line).await?.status)?;
        let coupon = json!({ "quantity": sale.stock, "line": LINE });
        created(admin.put(&format!("/v1/coupons/{COUPON}"), &coupon).await?.status)?;
        let stories = shoppers::shop(sale, &Arc::new(Http::new(&self.url(), None)), tally).await?;
        let line = tokio::time::timeout(TO_EMPTY_THE_LINE, when_empty(&admin)).await;
        let line = line.map_err(|_| "everybody has gone, and the line is not empty")??;
        Ok(Sold { stories, coupon: admin.get(&format!("/v1/coupons/{COUPON}")).await?.body, line })
    }

    /// Stops the server in good order.
    pub(super) async fn close(self) -> Result<Closed, Failure> {
        self.stop.gently.cancel();
        self.serving.await??;
        Ok(Closed { folder: self.folder, address: self.address, token: self.token })
    }

    /// The same, and reads what it has left.
    pub(super) async fn close_and_read(self) -> Result<(Closed, Books), Failure> {
        let closed = self.close().await?;
        let books = Books::read(&closed.folder).await?;
        Ok((closed, books))
    }
}

fn created(status: u16) -> Outcome {
    if status == 201 { Ok(()) } else { Err(format!("the sale could not be opened: {status}").into()) }
}

async fn when_empty(admin: &Http) -> Result<Value, Failure> {
    loop {
        let line = admin.get(&format!("/v1/lines/{LINE}")).await?.body;
        if line["waiting"] == 0 {
            return Ok(line);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn ledger_in(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().join("ledger.db").display())
}

/// A shop that is closed, with all that it wrote.
#[derive(Debug)]
pub(super) struct Closed {
    folder: TempDir,
    address: SocketAddr,
    token: String,
}

impl Closed {
    /// Under its old address, from what is on disk.
    pub(super) async fn open_again(self) -> Result<Shop, Failure> {
        Shop::open_in(self.folder, self.address, self.token).await
    }
}

/// What is on disk: the journal of the store, and the ledger.
#[derive(Clone, Debug)]
pub(super) struct Books {
    /// Who has what, by the ledger.
    pub(super) rows: Vec<Row>,
    /// The two compared.
    pub(super) audit: Audited,
    /// By the journal.
    pub(super) line: Counted,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) seq: u64,
    pub(super) user: String,
    pub(super) quantity: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Audited {
    pub(super) light: Light,
    pub(super) granted: i64,
    pub(super) persisted: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) arrived: u64,
    pub(super) admitted: u64,
    pub(super) left: u64,
    pub(super) abandoned: u64,
    /// How many turns are over that somebody had come for.
    pub(super) ended: u64,
}

impl Books {
    async fn read(folder: &TempDir) -> Result<Self, Failure> {
        let mut config = Config::default();
        config.ledger_decides = true;
        let journal = format!("sqlite:{}", folder.path().join("journal.db").display());
        let gate = Gate::open_with(&journal, &config).await?;
        let ledger = Ledger::open(&ledger_in(folder)).await?;
        let campaign = Campaign::new(CampaignKind::Coupon, Name::new("coupon", COUPON)?);
        let audit = ledger.audit(gate.store().as_ref()).await?.campaigns;
        let audit = audit.into_iter().find(|one| one.campaign == campaign);
        let audit = audit.ok_or("neither the journal nor the ledger knows the coupon")?;
        let line = gate.line(LINE)?.status().await?.ok_or("the journal does not know the line")?;
        gate.shutdown().await;
        Ok(Self {
            rows: rows(&ledger, &campaign).await?,
            audit: Audited { light: audit.light(), granted: audit.granted, persisted: audit.persisted },
            line: Counted {
                arrived: line.arrived,
                admitted: line.admitted,
                left: line.left,
                abandoned: line.abandoned,
                ended: line.finished + line.expired,
            },
        })
    }
}

async fn rows(ledger: &Ledger, campaign: &Campaign) -> Result<Vec<Row>, Failure> {
    let (mut pages, mut rows) = (ledger.winners(campaign).await?, Vec::new());
    while let Some(page) = pages.next_page().await? {
        rows.extend(page.into_iter().map(|winner| Row {
            seq: winner.seq,
            user: winner.user.map(|user| user.to_string()).unwrap_or_default(),
            quantity: winner.quantity,
        }));
    }
    Ok(rows)
}
