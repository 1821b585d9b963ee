//! The servers that the strategies run on: ours, or somebody's own.
//!
//! **Promise:** what the lab starts goes with it. In somebody's own database it works in a schema (MySQL: a database) with a name
//! that nobody else has, in somebody's own Redis under a prefix that nobody else has, and removes both at the end; it never
//! touches anything else.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use lockgate::error::without_secrets;
use lockgate::testing::services::program::{POSTGRES, REDIS_SERVER};
use lockgate::testing::services::{MariaDb, Persistence, Postgres, Redis, ServiceError};
use tempfile::TempDir;

use super::actor::Places;
use super::report::Service;
use super::shop::{Address, Dialect, Shop};
use super::strategy::{Need, Strategy};
use super::{Failure, LabOptions};
use crate::bench::command_count::CommandCounter;
use crate::bench::{patient_connection, remove_keys};

/// How many connections are opened to the database, unless it has fewer.
const CONNECTIONS: u32 = 32;
/// What is left to whoever else uses the database.
const LEFT_TO_OTHERS: u32 = 10;

/// Everything that runs, for as long as it is needed.
pub(super) struct Stage {
    pub(super) shop: Shop,
    pub(super) database: Service,
    pub(super) redis: Option<Service>,
    /// Reads the statistics of every Redis.
    pub(super) counters: Vec<CommandCounter>,
    places: Places,
    dialect: Dialect,
    /// Why there is no Redis, if there is none.
    no_redis: String,
    no_quorum: String,
    own_database: OwnDatabase,
    own_redis: Vec<Redis>,
    /// What has to be removed in the end, as the user's own.
    made_file: bool,
}

/// What the lab has started or made, which goes when it is dropped.
enum OwnDatabase {
    Nothing,
    Postgres(Postgres),
    MariaDb(MariaDb),
    Folder(TempDir),
}

impl Stage {
    /// Starts or reaches everything; `say` is told what is missing.
    pub(super) async fn set(
        options: &LabOptions,
        wanted: &[&Strategy],
        say: &dyn Fn(String),
    ) -> Result<Self, Failure> {
        let mark = format!("lockgate_lab_{:012x}", RandomState::new().hash_one(0) >> 16);
        let (url, own_database) = database_url(options.database.as_deref(), say)?;
        let address = Address { url, schema: mark.clone() };
        let is_own = !matches!(own_database, OwnDatabase::Nothing);
        let (shop, database, made_file) = open_database(&address, is_own).await?;
        let connections = connections(&shop, &address).await?;
        let mut own_redis = Vec::new();
        let (redis_url, no_redis) = redis_url(options, wanted, &mut own_redis)?;
        let (quorum, no_quorum) = quorum_urls(wanted, &mut own_redis);
        let redis = match &redis_url {
            Some(url) => Some(redis_service(url, options.redis.is_none()).await?),
            None => None,
        };
        let mut counters = Vec::new();
        for url in redis_url.iter().chain(&quorum) {
            counters.push(CommandCounter::connect(url).await?);
        }
        let dialect = address.dialect()?;
        let places = Places { database: address, connections, redis: redis_url, quorum, mark };
        Ok(Self {
            shop,
            database,
            redis,
            counters,
            places,
            dialect,
            no_redis,
            no_quorum,
            own_database,
            own_redis,
            made_file,
        })
    }

    /// Where everything is, for one of so many processes.
    pub(super) fn places(&self, processes: usize) -> Places {
        let share = self.places.connections / u32::try_from(processes).unwrap_or(u32::MAX);
        Places { connections: share.max(1), ..self.places.clone() }
    }

    /// All connections to the database.
    pub(super) fn connections(&self) -> u32 {
        self.places.connections
    }

    pub(super) fn redis_url(&self) -> Option<&str> {
        self.places.redis.as_deref()
    }

    pub(super) fn mark(&self) -> &str {
        &self.places.mark
    }

    /// Why a strategy cannot run here, if so.
    pub(super) fn missing(&self, strategy: &Strategy) -> Option<String> {
        let is_sqlite = self.dialect == Dialect::Sqlite;
        strategy.needs.iter().find_map(|need| match need {
            Need::Redis => self.places.redis.is_none().then(|| self.no_redis.clone()),
            Need::Quorum => self.places.quorum.is_empty().then(|| self.no_quorum.clone()),
            Need::SelectForUpdate => {
                is_sqlite.then(|| "SQLite has no SELECT … FOR UPDATE; use --db postgres or --db mysql".to_owned())
            }
            Need::ConcurrentTransactions => is_sqlite.then(|| {
                "SQLite lets one transaction write at a time, so there is nothing to lose; use --db postgres or --db mysql"
                    .to_owned()
            }),
        })
    }

    /// Removes everything that the lab has made.
    pub(super) async fn clear(self) -> Result<(), Failure> {
        if let Some(url) =
            self.places.redis.as_deref().filter(|_| !self.redis.as_ref().is_some_and(|redis| redis.is_own))
        {
            remove_keys(url, &self.places.mark).await?;
        }
        let schema = &self.places.database.schema;
        match (self.dialect, &self.own_database) {
            (Dialect::Postgres, OwnDatabase::Nothing) => {
                self.shop.run(&format!("DROP SCHEMA {schema} CASCADE")).await?;
            }
            (Dialect::MySql, OwnDatabase::Nothing) => {
                self.shop.run(&format!("DROP DATABASE {schema}")).await?;
            }
            _ => {}
        }
        // Before the server goes, or the pool complains that it has.
        self.shop.close().await;
        if self.made_file {
            std::fs::remove_file(self.places.database.file())?;
        }
        match self.own_database {
            OwnDatabase::Postgres(server) => drop(server),
            OwnDatabase::MariaDb(server) => drop(server),
            OwnDatabase::Folder(folder) => folder.close()?,
            OwnDatabase::Nothing => {}
        }
        drop(self.own_redis);
        Ok(())
    }
}

/// Where the database is: what `--db` says, else PostgreSQL if it is installed, else SQLite.
fn database_url(wanted: Option<&str>, say: &dyn Fn(String)) -> Result<(String, OwnDatabase), Failure> {
    let wanted = match wanted {
        Some(wanted) => wanted,
        None if POSTGRES.find().is_some() => "postgres",
        None => {
            let why = ServiceError::NotInstalled(POSTGRES);
            say(format!("{why}. SQLite is used instead, on which some strategies make no sense."));
            "sqlite"
        }
    };
    Ok(match wanted {
        "postgres" | "postgresql" => {
            let server = Postgres::builder().fsync(true).setting("shared_buffers", "128MB").start()?;
            (server.url(), OwnDatabase::Postgres(server))
        }
        "mysql" | "mariadb" => {
            let server = MariaDb::builder().fsync(true).start()?;
            (server.url(), OwnDatabase::MariaDb(server))
        }
        "sqlite" => {
            let folder = TempDir::new()?;
            (format!("sqlite:{}", folder.path().join("lab.db").display()), OwnDatabase::Folder(folder))
        }
        url => (url.to_owned(), OwnDatabase::Nothing),
    })
}

/// Connects, and makes the tables in a place of their own. Says whether it made a file that is the user's to miss.
async fn open_database(address: &Address, is_own: bool) -> Result<(Shop, Service, bool), Failure> {
    let shown = without_secrets(&address.url);
    let unreachable = |why: Failure| {
        format!("cannot use {shown}: {why}; correct --db, or leave it out to start a database")
    };
    let dialect = address.dialect().map_err(unreachable)?;
    let makes_file = dialect == Dialect::Sqlite && !is_own;
    if makes_file && Path::new(address.file()).exists() {
        return Err(unreachable("the file exists; name one that does not".into()).into());
    }
    make_schema(address, dialect).await.map_err(unreachable)?;
    let shop = Shop::connect(address, 4).await.map_err(unreachable)?;
    shop.create_tables().await.map_err(unreachable)?;
    let (name, version) = version(&shop, dialect).await?;
    Ok((shop, Service { name, version, is_own }, makes_file))
}

async fn make_schema(address: &Address, dialect: Dialect) -> Result<(), Failure> {
    let Address { url, schema } = address;
    let (inside, sql) = match dialect {
        Dialect::Postgres => ("public".to_owned(), format!("CREATE SCHEMA {schema}")),
        Dialect::MySql => {
            let database = url.rsplit('/').next().and_then(|path| path.split('?').next()).unwrap_or_default();
            (database.to_owned(), format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"))
        }
        Dialect::Sqlite => return Ok(()),
    };
    let outside = Shop::connect(&Address { url: url.clone(), schema: inside }, 1).await?;
    outside.run(&sql).await?;
    outside.close().await;
    Ok(())
}

async fn version(shop: &Shop, dialect: Dialect) -> Result<(String, String), Failure> {
    let (name, question) = match dialect {
        Dialect::Postgres => ("PostgreSQL", "SHOW server_version"),
        Dialect::MySql => ("MySQL", "SELECT VERSION()"),
        Dialect::Sqlite => ("SQLite", "SELECT sqlite_version()"),
    };
    let version = shop.line(question).await?;
    let name = if version.contains("MariaDB") { "MariaDB" } else { name };
    Ok((name.to_owned(), version))
}

/// As many as it can have without others noticing.
async fn connections(shop: &Shop, address: &Address) -> Result<u32, Failure> {
    let question = match address.dialect()? {
        Dialect::Postgres => "SHOW max_connections",
        Dialect::MySql => "SELECT CAST(@@max_connections AS CHAR)",
        Dialect::Sqlite => return Ok(1),
    };
    let most: u32 = shop.line(question).await?.parse()?;
    Ok(CONNECTIONS.min(most.saturating_sub(LEFT_TO_OTHERS)).max(1))
}

/// The Redis that strategies use; or why there is none.
fn redis_url(
    options: &LabOptions,
    wanted: &[&Strategy],
    own: &mut Vec<Redis>,
) -> Result<(Option<String>, String), Failure> {
    if options.redis.is_some() || !wanted.iter().any(|strategy| strategy.needs.contains(&Need::Redis)) {
        return Ok((options.redis.clone(), "no strategy asked for it".to_owned()));
    }
    match Redis::start(Persistence::AofEverysec) {
        Ok(redis) => {
            let url = redis.url();
            own.push(redis);
            Ok((Some(url), String::new()))
        }
        Err(why @ ServiceError::NotInstalled(_)) => Ok((None, format!("{why}, or give --redis"))),
        Err(why) => Err(why.into()),
    }
}

/// Three of our own, also when somebody has given us one: nobody has three to spare.
fn quorum_urls(wanted: &[&Strategy], own: &mut Vec<Redis>) -> (Vec<String>, String) {
    if !wanted.iter().any(|strategy| strategy.needs.contains(&Need::Quorum)) {
        return (Vec::new(), "no strategy asked for it".to_owned());
    }
    if REDIS_SERVER.find().is_none() {
        return (
            Vec::new(),
            format!("it needs three Redis of its own, and {}", ServiceError::NotInstalled(REDIS_SERVER)),
        );
    }
    let mut urls = Vec::new();
    for _ in 0..3 {
        match Redis::start(Persistence::AofEverysec) {
            Ok(redis) => {
                urls.push(redis.url());
                own.push(redis);
            }
            Err(why) => return (Vec::new(), why.to_string()),
        }
    }
    (urls, String::new())
}

async fn redis_service(url: &str, is_own: bool) -> Result<Service, Failure> {
    let shown = without_secrets(url);
    let connection = patient_connection(url).await;
    let mut connection = connection.map_err(|why| {
        format!("cannot connect to {shown}: {why}; correct --redis, or leave it out to start a redis-server")
    })?;
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
    let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let (name, version) = match line("valkey_version:") {
        Some(version) => ("Valkey", Some(version)),
        None => ("Redis", line("redis_version:")),
    };
    Ok(Service { name: name.to_owned(), version: version.unwrap_or("unknown").to_owned(), is_own })
}
