//! The store for many processes: Redis or Valkey, standalone, behind Sentinel, or as a Cluster.
//!
//! **Promise:** every operation is one script, so it happens on the server in one step, by the server's clock. A call
//! ends within its [timeout](crate::config::RedisConfig::call_timeout), with an answer or with an error that says
//! whether something may have happened. When the server comes back, the next calls work; nothing has to be restarted.
//! **Not promised:** more durability than the server's own; [`About::persistence`] says what that is.
//!
//! ```text
//! ear.rs               hears what the scripts publish for this process
//! mutex.rs permit.rs latch.rs line.rs line_tick.rs ticket.rs campaign.rs coupon.rs deal.rs hold.rs order.rs order_across.rs journal.rs
//!                      arguments in, answers out: one function per script
//!   batch.rs           what the calls on the stock have in common
//!   script.rs          EVALSHA, and EVAL when the server has forgotten
//!     link.rs          re-sends a call until it has an answer or its time is up
//!       lane.rs        one connection that comes back by itself, to whoever is the master now
//!         switches.rs  hears from the sentinels that it is another one
//!         url.rs       where that is
//! greeting.rs          what is checked before a server is trusted
//! guardian.rs          what is checked when it is another one than before
//! replicas.rs          waits until replicas have what it has done
//! ```

use std::sync::Arc;
use std::time::Duration;

use redis::ProtocolVersion;

use crate::clock::Clock;
use crate::config::Config;
use crate::error::{OpenError, StoreError};
use crate::key::{Keyspace, Name};
use crate::store::{
    About, Acquire, Answer, Arrivals, Attempt, Campaign, CampaignChange, CampaignChanged, CampaignForget,
    CampaignOpen, CampaignStatus, CommittedOrder, Draw, EarId, Enter, EnterWish, EpochSettle, EpochStatus,
    Fence, Hearing, HoldId, HoldPlace, HoldSettle, HoldStatus, HoldWish, Issue, IssueWish, JournalEntry,
    JournalPosition, JournalReader, JournalStanding, JournalTaken, LatchSet, LatchStatus, LineAdmit,
    LineChange, LineDraw, LineOpen, LineSecrets, LineState, LineStatus, LineTerms, LineTick, Listener, Lock,
    MutexStatus, OrderDecision, OrderPart, OrderPlace, OrderReserve, OrderSettle, OrderStatus, OrderVerdict,
    OrderWish, PermitRenewal, Pool, PoolStatus, Purchase, PurchaseWish, Rebuild, Rebuilt, Release, Renew,
    Renewal, Reopen, Revoke, RevokeWish, Seen, Sending, SettleWish, Settlement, Share, Shrink, Standing,
    Store, Terms, Tick, TicketAt, Token, Told, UserErase, UserShare,
};

mod batch;
mod campaign;
mod coupon;
mod deal;
mod ear;
mod epoch;
mod greeting;
mod guardian;
mod hold;
mod journal;
mod keeping;
mod lane;
mod latch;
mod line;
mod line_tick;
mod link;
mod mutex;
mod order;
mod order_across;
mod permit;
mod replicas;
mod script;
mod switches;
mod ticket;
mod url;

use self::ear::Stations;
use self::guardian::Guardian;
use self::lane::{Endpoint, trusted_certificates};
use self::link::{Link, explain_no_connection};
use self::replicas::Replicas;
use self::script::Scripts;
use self::switches::Switches;
use self::url::{Master, RedisUrl, Topology};

/// See the [module](self). Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    keys: Keyspace,
    scripts: Arc<Scripts>,
    stations: Arc<Stations>,
    guardian: Arc<Guardian>,
    caution: Arc<Caution>,
}

/// What is done about a master that may be replaced by one that knows less.
struct Caution {
    /// Who must have a lock before it counts, if anybody must.
    replicas: Option<Arc<Replicas>>,
    has_quarantine: bool,
    clock: Clock,
}

impl RedisStore {
    /// Connects to `url` (`redis://`, `rediss://`, `redis+sentinel://`, `redis+cluster://`) and checks that the server
    /// can be trusted with decisions.
    ///
    /// # Errors
    ///
    /// When the URL makes no sense, when nobody answers, or when the server is too old, may evict keys, or was set up
    /// with another layout. The message names the remedy.
    pub async fn connect(url: &str, config: &Config) -> Result<Self, OpenError> {
        let url = RedisUrl::parse(url)?;
        let partitions = match url.topology {
            Topology::Cluster { .. } => config.redis.cluster_partitions,
            Topology::OneMaster(_) => 1,
        };
        let keys =
            Keyspace::new(&config.namespace, partitions).map_err(|why| OpenError::Config(why.to_string()))?;
        link::choose_cryptography(&url);
        let switches = Switches::of(&url, &config.redis);
        let switches = switches.map_err(|why| explain_no_connection(&url.shown, &why.to_string()))?;
        let link = Link::open(&url, &config.redis, Clock::clone(&config.clock), &switches).await?;
        let runs = greeting::check_servers(&link, &config.redis).await?;
        greeting::agree_on_layout(&link, &keys).await?;
        greeting::check_channels(&link, &keys).await?;
        let scripts = Scripts::new(&mutex::house(config, &keys, link.is_cluster()));
        let stations = Arc::new(stations(&url, config, &switches)?);
        let guardian = Arc::new(Guardian::new(!config.ledger_decides, config.recovery_grace));
        let caution = Arc::new(Caution {
            replicas: Replicas::wanted(&url, &config.redis, &keys, config.clock.clone(), &switches).await?,
            has_quarantine: config.quarantine.is_some(),
            clock: config.clock.clone(),
        });
        let (link, scripts) = (Arc::new(link), Arc::new(scripts));
        let store = Self { link, keys, scripts, stations, guardian, caution };
        tokio::spawn(guardian::Watch::over(&store, runs).run());
        store.begin().await.map_err(|why| explain_no_connection(store.link.shown_url(), &why.to_string()))?;
        Ok(store)
    }

    /// Where there was never anything, nothing can be missing. Elsewhere it is looked at, unless that is the ledger's to do.
    async fn begin(&self) -> Result<(), StoreError> {
        for partition in 0..if self.guardian.decides { self.keys.partitions() } else { 0 } {
            if self.epoch_settle(partition, true).await? != EpochSettle::Settled {
                self.look_after(partition);
            }
        }
        Ok(())
    }
}

#[cfg(any(test, feature = "testing"))]
impl RedisStore {
    /// The bytes of a call of [`Store::coupon_issue`], for who wants to send them without this library: a bench, to see what
    /// the library costs.
    ///
    /// # Errors
    ///
    /// When the wishes do not belong to one partition.
    pub fn packed_coupon_issue(
        &self,
        sending: &crate::store::Sending,
        wishes: &[crate::store::IssueWish],
    ) -> Result<Vec<u8>, crate::error::StoreError> {
        coupon::packed(self, sending, wishes)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore")
            .field("link", &self.link)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// Where this store's processes can hear.
fn stations(url: &RedisUrl, config: &Config, switches: &Switches) -> Result<Stations, OpenError> {
    let masters = match &url.topology {
        Topology::OneMaster(master) => vec![master.clone()],
        Topology::Cluster { nodes } => nodes.iter().map(|node| Master::At(Box::new(node.clone()))).collect(),
    };
    let endpoint =
        |master: &Master| Endpoint::of(master, trusted_certificates(&config.redis)?, ProtocolVersion::RESP3);
    let endpoints = masters.iter().map(endpoint).collect::<redis::RedisResult<_>>();
    let endpoints = endpoints.map_err(|why| explain_no_connection(&url.shown, &why.to_string()))?;
    let is_cluster = matches!(url.topology, Topology::Cluster { .. });
    Ok(Stations::new(endpoints, is_cluster, switches.clone(), &config.redis))
}

impl Store for RedisStore {
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire> {
        Box::pin(mutex::mutex_acquire(self, mutex, attempt))
    }

    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>> {
        Box::pin(mutex::mutex_renew(self, renewals))
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(mutex::mutex_release(self, mutex, token))
    }

    fn mutex_yield<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        next: &'a Attempt,
    ) -> Answer<'a, Acquire> {
        Box::pin(mutex::mutex_yield(self, mutex, token, next))
    }

    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus> {
        Box::pin(mutex::mutex_read(self, mutex))
    }

    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence> {
        Box::pin(mutex::mutex_break(self, mutex))
    }

    fn mutex_acquire_all<'a>(&'a self, wishes: &'a [(Name, Attempt)]) -> Answer<'a, Option<Vec<Acquire>>> {
        Box::pin(mutex::mutex_acquire_all(self, wishes))
    }

    fn mutex_raise<'a>(&'a self, mutex: &'a Name, token: &'a Token, fence: Fence) -> Answer<'a, bool> {
        Box::pin(mutex::mutex_raise(self, mutex, token, fence))
    }

    fn permit_acquire<'a>(
        &'a self,
        pool: &'a Pool,
        attempt: &'a Attempt,
        share: Share,
    ) -> Answer<'a, Acquire> {
        Box::pin(permit::permit_acquire(self, pool, attempt, share))
    }

    fn permit_renew<'a>(&'a self, renewals: &'a [PermitRenewal]) -> Answer<'a, Vec<Renew>> {
        Box::pin(permit::permit_renew(self, renewals))
    }

    fn permit_release<'a>(&'a self, pool: &'a Pool, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(permit::permit_release(self, pool, token))
    }

    fn permit_shrink<'a>(&'a self, pool: &'a Pool, token: &'a Token, permits: u32) -> Answer<'a, Shrink> {
        Box::pin(permit::permit_shrink(self, pool, token, permits))
    }

    fn permit_resize<'a>(&'a self, pool: &'a Pool, total: Option<u32>) -> Answer<'a, ()> {
        Box::pin(permit::permit_resize(self, pool, total))
    }

    fn permit_read<'a>(&'a self, pool: &'a Pool) -> Answer<'a, PoolStatus> {
        Box::pin(permit::permit_read(self, pool))
    }

    fn permit_break<'a>(&'a self, pool: &'a Pool, token: Option<&'a Token>) -> Answer<'a, Fence> {
        Box::pin(permit::permit_break(self, pool, token))
    }

    fn latch_set<'a>(&'a self, latch: &'a Name, count: u32, round: &'a Token) -> Answer<'a, LatchSet> {
        Box::pin(latch::latch_set(self, latch, count, round))
    }

    fn latch_count_down<'a>(
        &'a self,
        latch: &'a Name,
        token: &'a Token,
        round: &'a Token,
    ) -> Answer<'a, Option<LatchStatus>> {
        Box::pin(latch::latch_count_down(self, latch, token, round))
    }

    fn latch_read<'a>(&'a self, latch: &'a Name) -> Answer<'a, Option<LatchStatus>> {
        Box::pin(latch::latch_read(self, latch))
    }

    fn line_open<'a>(
        &'a self,
        line: &'a Name,
        terms: &'a LineTerms,
        secrets: &'a LineSecrets,
    ) -> Answer<'a, LineOpen> {
        Box::pin(line::line_open(self, line, terms, secrets))
    }

    fn line_change<'a>(&'a self, line: &'a Name, change: LineChange) -> Answer<'a, Option<LineState>> {
        Box::pin(line::line_change(self, line, change))
    }

    fn line_admit<'a>(
        &'a self,
        line: &'a Name,
        count: u32,
        request: &'a Token,
    ) -> Answer<'a, Option<LineAdmit>> {
        Box::pin(line::line_admit(self, line, count, request))
    }

    fn line_read<'a>(&'a self, line: &'a Name) -> Answer<'a, Option<LineStatus>> {
        Box::pin(line::line_read(self, line))
    }

    fn line_list<'a>(
        &'a self,
        partition: u16,
        after: Option<&'a Name>,
        limit: usize,
    ) -> Answer<'a, Vec<Name>> {
        Box::pin(line::line_list(self, partition, after, limit))
    }

    fn line_forget<'a>(&'a self, line: &'a Name) -> Answer<'a, bool> {
        Box::pin(line::line_forget(self, line))
    }

    fn line_enter<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        wishes: &'a [EnterWish],
    ) -> Answer<'a, Option<Told<Enter>>> {
        Box::pin(ticket::line_enter(self, line, edition, wishes))
    }

    fn line_tick<'a>(&'a self, line: &'a Name, edition: u64, tick: &'a Tick) -> Answer<'a, Option<LineTick>> {
        Box::pin(line_tick::line_tick(self, line, edition, tick))
    }

    fn ticket_show<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        tickets: &'a [TicketAt],
    ) -> Answer<'a, Option<Told<Standing>>> {
        Box::pin(ticket::ticket_show(self, line, edition, tickets))
    }

    fn ticket_leave<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        Box::pin(ticket::ticket_leave(self, line, edition, ticket))
    }

    fn ticket_finish<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        Box::pin(ticket::ticket_finish(self, line, edition, ticket))
    }

    fn ticket_renew<'a>(
        &'a self,
        line: &'a Name,
        edition: u64,
        ticket: TicketAt,
    ) -> Answer<'a, Option<Standing>> {
        Box::pin(ticket::ticket_renew(self, line, edition, ticket))
    }

    fn line_arrivals<'a>(&'a self, line: &'a Name, from: u64, limit: usize) -> Answer<'a, Option<Arrivals>> {
        Box::pin(line::line_arrivals(self, line, from, limit))
    }

    fn line_draw<'a>(&'a self, line: &'a Name, draw: &'a Draw) -> Answer<'a, Option<LineDraw>> {
        Box::pin(line::line_draw(self, line, draw))
    }

    fn replicated<'a>(&'a self, lock: &'a Lock, token: &'a Token) -> Answer<'a, bool> {
        Box::pin(replicas::replicated(self, lock, token))
    }

    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        ear::listen(&self.stations, &self.keys, ear, listener)
    }

    fn partition_of(&self, home: &Name) -> u16 {
        self.keys.partition_of(home)
    }

    fn partitions(&self) -> u16 {
        self.keys.partitions()
    }

    fn campaign_open<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        terms: &'a Terms,
    ) -> Answer<'a, CampaignOpen> {
        Box::pin(campaign::campaign_open(self, sending, campaign, terms))
    }

    fn campaign_change<'a>(
        &'a self,
        sending: &'a Sending,
        campaign: &'a Campaign,
        change: CampaignChange,
    ) -> Answer<'a, CampaignChanged> {
        Box::pin(campaign::campaign_change(self, sending, campaign, change))
    }

    fn campaign_read<'a>(&'a self, campaign: &'a Campaign) -> Answer<'a, Option<CampaignStatus>> {
        Box::pin(campaign::campaign_read(self, campaign))
    }

    fn campaign_list<'a>(
        &'a self,
        partition: u16,
        after: Option<&'a Campaign>,
        limit: usize,
    ) -> Answer<'a, Vec<Campaign>> {
        Box::pin(campaign::campaign_list(self, partition, after, limit))
    }

    fn coupon_issue<'a>(&'a self, sending: &'a Sending, wishes: &'a [IssueWish]) -> Answer<'a, Vec<Issue>> {
        Box::pin(coupon::coupon_issue(self, sending, wishes))
    }

    fn deal_purchase<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [PurchaseWish],
    ) -> Answer<'a, Vec<Purchase>> {
        Box::pin(deal::deal_purchase(self, sending, wishes))
    }

    fn hold_place<'a>(&'a self, sending: &'a Sending, wishes: &'a [HoldWish]) -> Answer<'a, Vec<HoldPlace>> {
        Box::pin(hold::hold_place(self, sending, wishes))
    }

    fn hold_settle<'a>(
        &'a self,
        sending: &'a Sending,
        wishes: &'a [SettleWish],
    ) -> Answer<'a, Vec<HoldSettle>> {
        Box::pin(hold::hold_settle(self, sending, wishes))
    }

    fn grant_revoke<'a>(&'a self, sending: &'a Sending, wishes: &'a [RevokeWish]) -> Answer<'a, Vec<Revoke>> {
        Box::pin(deal::grant_revoke(self, sending, wishes))
    }

    fn order_place<'a>(
        &'a self,
        sending: &'a Sending,
        orders: &'a [OrderWish],
    ) -> Answer<'a, Vec<OrderPlace>> {
        Box::pin(order::order_place(self, sending, orders))
    }

    fn share_read<'a>(&'a self, campaign: &'a Campaign, user: &'a Name) -> Answer<'a, Option<UserShare>> {
        Box::pin(campaign::share_read(self, campaign, user))
    }

    fn hold_read<'a>(&'a self, campaign: &'a Campaign, id: &'a HoldId) -> Answer<'a, Option<HoldStatus>> {
        Box::pin(hold::hold_read(self, campaign, id))
    }

    fn order_read<'a>(&'a self, home: &'a Name, id: &'a Name) -> Answer<'a, Option<OrderStatus>> {
        Box::pin(order::order_read(self, home, id))
    }

    fn order_reserve<'a>(
        &'a self,
        sending: &'a Sending,
        part: &'a OrderPart,
        doubt_after: Option<Duration>,
    ) -> Answer<'a, OrderReserve> {
        Box::pin(order_across::order_reserve(self, sending, part, doubt_after))
    }

    fn order_decide<'a>(
        &'a self,
        sending: &'a Sending,
        id: &'a Name,
        attempt: Token,
        decision: &'a OrderDecision,
    ) -> Answer<'a, OrderVerdict> {
        Box::pin(order_across::order_decide(self, sending, id, attempt, decision))
    }

    fn order_settle<'a>(
        &'a self,
        sending: &'a Sending,
        part: &'a OrderPart,
        settlement: Settlement,
    ) -> Answer<'a, OrderSettle> {
        Box::pin(order_across::order_settle(self, sending, part, settlement))
    }

    fn order_doubts(&self, partition: u16, limit: usize) -> Answer<'_, Vec<OrderPart>> {
        Box::pin(order_across::order_doubts(self, partition, limit))
    }

    fn order_find<'a>(&'a self, id: &'a Name) -> Answer<'a, Option<CommittedOrder>> {
        Box::pin(order_across::order_find(self, id))
    }

    fn journal_read(
        &self,
        partition: u16,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'_, Vec<JournalEntry>> {
        Box::pin(journal::journal_read(self, partition, after, limit))
    }

    fn journal_take<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        after: JournalPosition,
        limit: usize,
    ) -> Answer<'a, Vec<JournalTaken>> {
        Box::pin(journal::journal_take(self, partition, reader, after, limit))
    }

    fn journal_claim<'a>(
        &'a self,
        partition: u16,
        reader: &'a JournalReader,
        idle: Duration,
    ) -> Answer<'a, u64> {
        Box::pin(journal::journal_claim(self, partition, reader, idle))
    }

    fn journal_acknowledge<'a>(
        &'a self,
        partition: u16,
        group: &'a Name,
        positions: &'a [JournalPosition],
    ) -> Answer<'a, u64> {
        Box::pin(journal::journal_acknowledge(self, partition, group, positions))
    }

    fn journal_standing<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, JournalStanding> {
        Box::pin(journal::journal_standing(self, partition, group))
    }

    fn journal_dismiss<'a>(&'a self, partition: u16, group: &'a Name) -> Answer<'a, bool> {
        Box::pin(journal::journal_dismiss(self, partition, group))
    }

    fn journal_trim(&self, partition: u16, through: JournalPosition) -> Answer<'_, u64> {
        Box::pin(journal::journal_trim(self, partition, through))
    }

    fn campaign_forget<'a>(&'a self, campaign: &'a Campaign, rev: u64) -> Answer<'a, CampaignForget> {
        Box::pin(keeping::campaign_forget(self, campaign, rev))
    }

    fn user_erase<'a>(
        &'a self,
        campaign: &'a Campaign,
        user: &'a Name,
        alias: &'a Name,
        seqs: &'a [u64],
    ) -> Answer<'a, UserErase> {
        Box::pin(keeping::user_erase(self, campaign, user, alias, seqs))
    }

    fn epoch_read(&self, partition: u16) -> Answer<'_, EpochStatus> {
        Box::pin(epoch::epoch_read(self, partition))
    }

    fn epoch_settle(&self, partition: u16, if_empty: bool) -> Answer<'_, EpochSettle> {
        Box::pin(epoch::epoch_settle(self, partition, if_empty))
    }

    fn campaign_reopen<'a>(&'a self, seen: &'a [Seen], decides: bool) -> Answer<'a, Vec<Reopen>> {
        Box::pin(epoch::campaign_reopen(self, seen, decides))
    }

    fn campaign_rebuild<'a>(&'a self, campaign: &'a Campaign, step: &'a Rebuild) -> Answer<'a, Rebuilt> {
        Box::pin(epoch::campaign_rebuild(self, campaign, step))
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(greeting::about(&self.link))
    }
}
