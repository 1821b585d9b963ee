//! `lockgate ledger import`: those who have one already, from wherever they were kept.
//!
//! They get their numbers in the order in which they come: that of a list or of a sorted set's scores, of the query, of the
//! file. A plain set has no order. Doing it again changes nothing, so an import that was interrupted is done again.

use std::path::PathBuf;

use clap::Args;
use lockgate::key::Name;
use lockgate::stock::{Coupon, Issue};
use lockgate::store::MAX_BATCH;
use serde_json::json;
use sqlx::Row;

use super::places::StorePlace;
use super::{Failure, Outcome, print};

#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    store: StorePlace,

    /// The coupon; it must be open
    coupon: String,

    #[command(flatten)]
    source: Source,

    /// The Redis of --redis-key, unless it is the store's
    #[arg(long, requires = "redis_key", value_name = "URL")]
    redis: Option<String>,

    /// The database of --query: sqlite:<file>, postgres://… or mysql://…
    #[arg(long, requires = "query", value_name = "URL")]
    db: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// A set, a sorted set or a list of users in Redis
    #[arg(long, value_name = "KEY", requires = "redis")]
    redis_key: Option<String>,

    /// A query whose first column is the user
    #[arg(long, value_name = "SQL", requires = "db")]
    query: Option<String>,

    /// A file with a user in each line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What became of those who came.
#[derive(Debug, Default)]
struct Tally {
    issued: u64,
    had_one: u64,
}

impl Import {
    pub(crate) async fn run(self) -> Outcome {
        let users = match (&self.source, &self.redis, &self.db) {
            (Source { redis_key: Some(key), .. }, Some(redis), _) => from_redis(redis, key).await?,
            (Source { query: Some(query), .. }, _, Some(db)) => from_sql(db, query).await?,
            (Source { file: Some(file), .. }, ..) => from_file(file)?,
            _ => return Err("name a Redis key, a query or a file".into()),
        };
        let gate = self.store.open().await?;
        let coupon = gate.coupon(&self.coupon)?;
        let Some(status) = coupon.status().await? else {
            return Err(format!("there is no coupon {}; open it first", self.coupon).into());
        };
        if status.remaining() < users.len() as u64 {
            eprintln!(
                "{} users, and {} are left: those who have one already need none",
                users.len(),
                status.remaining()
            );
        }
        let tally = issue_all(&coupon, &users).await?;
        let (users, Tally { issued, had_one }) = (users.len(), tally);
        print(&match self.json {
            true => format!("{}\n", json!({ "users": users, "issued": issued, "had_one": had_one })),
            false => format!("{users} users: {issued} were given one, {had_one} had one before\n"),
        });
        Ok(())
    }
}

async fn issue_all(coupon: &Coupon, users: &[Name]) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for some in users.chunks(MAX_BATCH) {
        for (user, answer) in some.iter().zip(coupon.issue_to_all(some).await?) {
            match answer {
                Issue::Issued { .. } => tally.issued += 1,
                Issue::AlreadyIssued { .. } => tally.had_one += 1,
                denied => {
                    let done = tally.issued + tally.had_one;
                    return Err(format!(
                        "{user:?} was denied ({denied:?}) after {done} others; correct the coupon and import again"
                    )
                    .into());
                }
            }
        }
    }
    Ok(tally)
}

async fn from_redis(url: &str, key: &str) -> Result<Vec<Name>, Failure> {
    let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    let kind: String = redis::cmd("TYPE").arg(key).query_async(&mut connection).await?;
    let question = match kind.as_str() {
        "set" => redis::cmd("SMEMBERS").arg(key).take(),
        "zset" => redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).take(),
        "list" => redis::cmd("LRANGE").arg(key).arg(0).arg(-1).take(),
        "none" => return Err(format!("there is no key {key} at that Redis").into()),
        other => {
            return Err(
                format!("{key} is a {other}; users can be read from a set, a sorted set or a list").into()
            );
        }
    };
    let users: Vec<String> = question.query_async(&mut connection).await?;
    named(&users)
}

async fn from_sql(url: &str, query: &str) -> Result<Vec<Name>, Failure> {
    use sqlx::Connection as _;
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await?;
    let rows = sqlx::query(sqlx::AssertSqlSafe(query.to_owned())).fetch_all(&mut connection).await?;
    let user = |row: &sqlx::any::AnyRow| {
        row.try_get::<String, _>(0).or_else(|_| row.try_get::<i64, _>(0).map(|number| number.to_string()))
    };
    named(&rows.iter().map(user).collect::<Result<Vec<_>, _>>()?)
}

fn from_file(file: &std::path::Path) -> Result<Vec<Name>, Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|why| format!("cannot read {}: {why}", file.display()))?;
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    named(&lines)
}

fn named(users: &[String]) -> Result<Vec<Name>, Failure> {
    Ok(users.iter().map(|user| Name::new("user", user)).collect::<Result<_, _>>()?)
}
