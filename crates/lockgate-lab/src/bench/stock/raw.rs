//! The limit: the shipped batch script, its own bytes, sent from a plain socket as fast as Redis takes them.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::stock::{MAX_QUANTITY, Terms};
use lockgate::store::redis::RedisStore;
use lockgate::store::{Campaign, CampaignKind, IssueWish, Sending, Store};

use super::new_users;
use crate::bench::frame::{Contender, Doing, Role};
use crate::bench::tally::{Tallies, Tally};
use crate::bench::{Failure, NAMESPACE, remove_our_keys};

/// As many users as a thousand callers make one call of, with two calls under way.
const BATCH: u64 = 500;

/// How many calls are under way: Redis always has the next one.
const UNDER_WAY: usize = 4;

pub(super) struct BatchLimit {
    url: String,
    address: String,
}

impl BatchLimit {
    pub(super) async fn new(url: &str) -> Result<Self, Failure> {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let address = address.split('/').next().unwrap_or_default().to_owned();
        // So that the first call finds the script.
        let limit = Self { url: url.to_owned(), address };
        limit.prepare(1, Duration::ZERO).await?;
        Ok(limit)
    }

    async fn store(&self) -> Result<RedisStore, Failure> {
        let mut config = Config::default();
        config.namespace = NAMESPACE.into();
        Ok(RedisStore::connect(&self.url, &config).await?)
    }
}

fn coupon() -> Result<Campaign, Failure> {
    Ok(Campaign::new(CampaignKind::Coupon, Name::new("coupon", "limit")?))
}

fn wishes() -> Result<Vec<IssueWish>, Failure> {
    let coupon = coupon()?;
    new_users(BATCH)
        .map(|user| Ok(IssueWish { coupon: coupon.clone(), user: Name::new("user", user)?, pass: None }))
        .collect()
}

impl Contender for BatchLimit {
    fn name(&self) -> &'static str {
        "the batch script alone, 500 users a call, plain socket"
    }

    fn role(&self) -> Role {
        Role::Limit
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["eval", "evalsha"]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            remove_our_keys(&self.url).await?;
            let store = self.store().await?;
            store.campaign_open(&Sending::once(), &coupon()?, &Terms::new(MAX_QUANTITY)?).await?;
            store.coupon_issue(&Sending::once(), &wishes()?).await?;
            Ok(())
        })
    }

    fn turn(&self, _: usize, length: Duration) -> Doing<'_, Tallies> {
        Box::pin(async move {
            let (store, address) = (self.store().await?, self.address.clone());
            let tally = tokio::task::spawn_blocking(move || drive(&store, &address, length)).await??;
            let mut tallies = Tallies::new()?;
            tallies.add(&tally)?;
            Ok(tallies)
        })
    }
}

fn drive(store: &RedisStore, address: &str, length: Duration) -> Result<Tally, Failure> {
    let (clock, mut tally) = (Clock::system(), Tally::new()?);
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut replies = BufReader::new(socket.try_clone()?);
    let (mut sending, mut under_way) = (Sending::once(), 0);
    let end = clock.monotonic() + length;
    while clock.monotonic() < end {
        while under_way < UNDER_WAY {
            socket.write_all(&store.packed_coupon_issue(&sending, &wishes()?)?)?;
            (sending.number, under_way) = (sending.number + 1, under_way + 1);
        }
        let asked_at = clock.monotonic();
        tally.operations += read_issued(&mut replies)?;
        tally.latencies.record(u64::try_from(clock.monotonic().since(asked_at).as_nanos())?)?;
        under_way -= 1;
    }
    for _ in 0..under_way {
        tally.operations += read_issued(&mut replies)?;
    }
    Ok(tally)
}

fn read_issued(replies: &mut impl BufRead) -> Result<u64, Failure> {
    let mut header = String::new();
    replies.read_line(&mut header)?;
    let length: usize = header.trim_start_matches('$').trim_end().parse().map_err(|_| header.clone())?;
    let mut answer = vec![0; length + 2];
    replies.read_exact(&mut answer)?;
    if answer.starts_with(b"* issued ") {
        return Ok(BATCH);
    }
    Err(format!("not everybody got one: {}", String::from_utf8_lossy(&answer)).into())
}
