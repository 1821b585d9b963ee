//! The scripts, each in a file of its own beside this one, and how they are called.
//!
//! `EVALSHA` sends forty bytes instead of the source. A server that has forgotten the script (restart, `SCRIPT FLUSH`,
//! failover, another node) says so without running anything, and gets the source by `EVAL`, which also makes it
//! remember. Nothing is loaded beforehand, so there is nothing to load again.

use std::borrow::Cow;

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, ErrorKind, RedisResult, ServerErrorKind, ToRedisArgs, Value};

use super::link::{Link, Request};
use crate::error::StoreError;
use crate::store::line::LONGEST_STEP;
use crate::store::{
    ADMITS_KEPT, COMMIT_WITHIN, MAX_ADMIT, MAX_EARLY, MAX_LOOKED_AT, MAX_PASSED, MAX_QUANTITY, MAX_STAY,
    MAX_SWEEP, OVER_KEPT, REQUEST_KEPT, SENDING_KEPT, UNSETTLED_KEPT,
};

/// What scripts may include, by the line that does it.
/// A file that includes another stands before it.
const SHARED: [(&str, &str); 26] = [
    ("-- include shared/positions.lua\n", include_str!("scripts/shared/positions.lua")),
    ("-- include shared/reading.lua\n", include_str!("scripts/shared/reading.lua")),
    ("-- include shared/batch.lua\n", include_str!("scripts/shared/batch.lua")),
    ("-- include shared/replay.lua\n", include_str!("scripts/shared/replay.lua")),
    ("-- include shared/load.lua\n", include_str!("scripts/shared/load.lua")),
    ("-- include shared/sweep.lua\n", include_str!("scripts/shared/sweep.lua")),
    ("-- include shared/epoch.lua\n", include_str!("scripts/shared/epoch.lua")),
    ("-- include shared/run.lua\n", include_str!("scripts/shared/run.lua")),
    ("-- include shared/beginning.lua\n", include_str!("scripts/shared/beginning.lua")),
    ("-- include shared/holds.lua\n", include_str!("scripts/shared/holds.lua")),
    ("-- include shared/shelf.lua\n", include_str!("scripts/shared/shelf.lua")),
    ("-- include shared/deny.lua\n", include_str!("scripts/shared/deny.lua")),
    ("-- include shared/pass_use.lua\n", include_str!("scripts/shared/pass_use.lua")),
    ("-- include shared/passes.lua\n", include_str!("scripts/shared/passes.lua")),
    ("-- include shared/put_aside.lua\n", include_str!("scripts/shared/put_aside.lua")),
    ("-- include shared/settling.lua\n", include_str!("scripts/shared/settling.lua")),
    ("-- include shared/standing.lua\n", include_str!("scripts/shared/standing.lua")),
    ("-- include shared/hand_over.lua\n", include_str!("scripts/shared/hand_over.lua")),
    ("-- include shared/take.lua\n", include_str!("scripts/shared/take.lua")),
    ("-- include shared/pass_on.lua\n", include_str!("scripts/shared/pass_on.lua")),
    ("-- include shared/pool_state.lua\n", include_str!("scripts/shared/pool_state.lua")),
    ("-- include shared/pool.lua\n", include_str!("scripts/shared/pool.lua")),
    ("-- include shared/latch.lua\n", include_str!("scripts/shared/latch.lua")),
    ("-- include shared/ticket.lua\n", include_str!("scripts/shared/ticket.lua")),
    ("-- include shared/line.lua\n", include_str!("scripts/shared/line.lua")),
    ("-- include shared/places.lua\n", include_str!("scripts/shared/places.lua")),
];

/// The line in whose place the [`House`]'s rules stand.
const HOUSE: &str = "-- include the house's rules\n";

/// The line in whose place the quarantine stands: where there is none, all that is left of it is that.
const QUARANTINE: (&str, &str) =
    ("-- include shared/quarantine.lua\n", include_str!("scripts/shared/quarantine.lua"));
const NO_QUARANTINE: &str = "local quarantine_us, quarantined_us = nil, 0\n";

/// The line in whose place the rules of the stock stand.
const STOCK: &str = "-- include the stock's rules\n";

/// How a campaign's state is packed into a string: nine numbers, a switch and a stamp, see `scripts/shared/shelf.lua`.
/// Behind them stands the name of the line whose pass it demands.
const PACKING: &str = ">dddddddddBd";

/// The rules of the stock, as lines of Lua.
fn stock_rules() -> String {
    let (sending_kept_ms, request_kept_us) = (SENDING_KEPT.as_millis(), REQUEST_KEPT.as_micros());
    let (commit_within_us, unsettled_kept_us) = (COMMIT_WITHIN.as_micros(), UNSETTLED_KEPT.as_micros());
    let max_stay_us = MAX_STAY.as_micros();
    format!(
        "local sending_kept_ms, request_kept_us, max_sweep, max_quantity, packing = {sending_kept_ms}, {request_kept_us}, {MAX_SWEEP}, {MAX_QUANTITY}, '{PACKING}'\n\
         local commit_within_us, unsettled_kept_us, max_stay_us = {commit_within_us}, {unsettled_kept_us}, {max_stay_us}\n"
    )
}

/// The line in whose place the rules of lines stand.
const LINE: &str = "-- include the line's rules\n";

/// How many numbers a line's state begins with: see `scripts/shared/line.lua`.
const LINE_NUMBERS: usize = 36;

/// How many of the recent waits and of the last eras of a line are kept.
const WAITS_KEPT: usize = 128;
const ERAS_KEPT: usize = 32;

/// How many places of a line are counted together: what is forgotten of it are whole blocks.
const BLOCK: usize = 32_768;

/// How many places have to be over before they are forgotten, and how many people are forgotten by one call.
const FORGOTTEN_AT_ONCE: usize = 65_536;
const PEOPLE_AT_ONCE: usize = 2_048;

/// The rules of lines, as lines of Lua.
fn line_rules() -> String {
    let (over_kept_us, max_stay_us) = (OVER_KEPT.as_micros(), MAX_STAY.as_micros());
    let longest_step_us = LONGEST_STEP.as_micros();
    format!(
        "local line_packing, no_line = '>' .. string.rep('d', {LINE_NUMBERS}), string.rep('\\0', 8 * {LINE_NUMBERS})\n\
         local over_kept_us, max_stay_us, longest_step_us = {over_kept_us}, {max_stay_us}, {longest_step_us}\n\
         local max_admit, max_looked_at, max_early, max_passed = {MAX_ADMIT}, {MAX_LOOKED_AT}, {MAX_EARLY}, {MAX_PASSED}\n\
         local admits_kept, waits_kept, eras_kept, block = {ADMITS_KEPT}, {WAITS_KEPT}, {ERAS_KEPT}, {BLOCK}\n\
         local forgotten_at_once, people_at_once = {FORGOTTEN_AT_ONCE}, {PEOPLE_AT_ONCE}\n"
    )
}

/// What is the same in every call to this store, written into the scripts: an argument less is a microsecond less.
#[derive(Clone, Debug)]
pub(super) struct House {
    /// For how long a waiter holds what it was given before it has said a word.
    pub(super) claim_ms: u128,
    /// How long a released mutex or pool is remembered.
    pub(super) kept_ms: u128,
    /// The channel of a process, without its ear.
    pub(super) ears: String,
    /// The channel on which all hear of a mutex that is free and of a latch that opens.
    pub(super) freed: String,
    /// Whether a waiter whose channel nobody hears is passed over: not on a cluster, where other nodes have subscribers too.
    pub(super) skips_absent: bool,
    /// For how long nobody is given a mutex after the server has changed, in microseconds.
    pub(super) quarantine_us: Option<u128>,
}

impl House {
    /// The rules as a line of Lua. The channels hold the namespace, which has neither quotes nor backslashes.
    fn rules(&self) -> String {
        let Self { claim_ms, kept_ms, ears, freed, skips_absent, .. } = self;
        format!(
            "local claim_ms, kept_ms, ears, freed, skips_absent = '{claim_ms}', '{kept_ms}', '{ears}', '{freed}', {skips_absent}\n"
        )
    }
}

impl House {
    /// What the scripts that may give a mutex away include.
    fn quarantine(&self) -> String {
        self.quarantine_us.map_or_else(
            || NO_QUARANTINE.to_owned(),
            |length| format!("local quarantine_us = {length}\n{}", QUARANTINE.1),
        )
    }
}

macro_rules! scripts {
    ($($script:ident = $file:literal),+ $(,)?) => {
        /// One atomic operation, as the server runs it.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Script { $($script),+ }

        const ALL: &[(&str, &str)] = &[$(($file, include_str!(concat!("scripts/", $file, ".lua")))),+];
    };
}

scripts! {
    CampaignChange = "campaign_change",
    CampaignForget = "campaign_forget",
    CampaignList = "campaign_list",
    CampaignOpen = "campaign_open",
    CampaignRead = "campaign_read",
    CampaignRebuild = "campaign_rebuild",
    CampaignReopen = "campaign_reopen",
    CouponIssue = "coupon_issue",
    DealPurchase = "deal_purchase",
    EpochRead = "epoch_read",
    EpochSettle = "epoch_settle",
    GrantRevoke = "grant_revoke",
    HoldPlace = "hold_place",
    HoldRead = "hold_read",
    HoldSettle = "hold_settle",
    JournalAcknowledge = "journal_acknowledge",
    JournalClaim = "journal_claim",
    JournalDismiss = "journal_dismiss",
    JournalRead = "journal_read",
    JournalStanding = "journal_standing",
    JournalTake = "journal_take",
    JournalTrim = "journal_trim",
    LatchCountDown = "latch_count_down",
    LatchRead = "latch_read",
    LatchSet = "latch_set",
    LineAdmit = "line_admit",
    LineArrivals = "line_arrivals",
    LineChange = "line_change",
    LineDraw = "line_draw",
    LineEnter = "line_enter",
    LineForget = "line_forget",
    LineList = "line_list",
    LineOpen = "line_open",
    LineRead = "line_read",
    LineTick = "line_tick",
    MutexAcquire = "mutex_acquire",
    MutexAcquireAll = "mutex_acquire_all",
    MutexBreak = "mutex_break",
    MutexRaise = "mutex_raise",
    MutexRead = "mutex_read",
    MutexRelease = "mutex_release",
    MutexRenew = "mutex_renew",
    MutexYield = "mutex_yield",
    OrderDecide = "order_decide",
    OrderDoubts = "order_doubts",
    OrderFind = "order_find",
    OrderPlace = "order_place",
    OrderRead = "order_read",
    OrderReserve = "order_reserve",
    OrderSettle = "order_settle",
    PermitAcquire = "permit_acquire",
    PermitBreak = "permit_break",
    PermitRead = "permit_read",
    PermitRelease = "permit_release",
    PermitRenew = "permit_renew",
    PermitResize = "permit_resize",
    PermitShrink = "permit_shrink",
    ShareRead = "share_read",
    TicketFinish = "ticket_finish",
    TicketLeave = "ticket_leave",
    TicketRenew = "ticket_renew",
    TicketShow = "ticket_show",
    UserErase = "user_erase",
}

/// All scripts, as one store's servers get them.
#[derive(Debug)]
pub(super) struct Scripts(Vec<Complete>);

/// A script with everything that it includes.
#[derive(Debug)]
struct Complete {
    source: String,
    sha: String,
}

impl Complete {
    fn new(file: &str, house: &House) -> Self {
        let source = file.replace(QUARANTINE.0, &house.quarantine());
        let source = SHARED.iter().fold(source, |source, (line, shared)| source.replace(line, shared));
        let source = source.replace(HOUSE, &house.rules()).replace(STOCK, &stock_rules());
        let source = source.replace(LINE, &line_rules());
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha }
    }
}

impl Scripts {
    pub(super) fn new(house: &House) -> Self {
        Self(ALL.iter().map(|(_, file)| Complete::new(file, house)).collect())
    }

    /// `script` on `keys`; all of them belong to one partition.
    pub(super) fn call(&self, script: Script, keys: &[String]) -> ScriptCall<'_> {
        let script = &self.0[script as usize];
        let mut evalsha = redis::cmd("EVALSHA");
        evalsha.arg(&script.sha).arg(keys.len()).arg(keys);
        ScriptCall { script, evalsha, tells_run: false }
    }
}

/// A script with its keys and arguments, ready to be sent as often as it takes.
pub(super) struct ScriptCall<'a> {
    script: &'a Complete,
    evalsha: Cmd,
    /// Whether the last argument is the run of the server: see [`Run`].
    tells_run: bool,
}

/// Which run of a server a connection leads to, as a number: another one after every restart, and another one on every server.
/// `None` when only the server knows, as on a cluster, where the client chooses the connection.
pub(super) type Run = Option<u64>;

impl ScriptCall<'_> {
    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.evalsha.arg(argument);
        self
    }

    /// Tells the script, as its last argument, to which run of the server it is sent. It is known when it is sent.
    pub(super) fn telling_the_run(mut self) -> Self {
        self.tells_run = true;
        self
    }

    /// The bytes that are sent to that run.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn packed(&self, run: Run) -> Vec<u8> {
        self.evalsha_to(run).get_packed_command()
    }

    fn evalsha_to(&self, run: Run) -> Cow<'_, Cmd> {
        if !self.tells_run {
            return Cow::Borrowed(&self.evalsha);
        }
        let mut evalsha = self.evalsha.clone();
        evalsha.arg(run.map_or_else(String::new, |run| run.to_string()));
        Cow::Owned(evalsha)
    }

    /// Sends the call and waits for its answer.
    pub(super) async fn send(self, link: &Link) -> Result<Reply, StoreError> {
        Reply::read(link.send(Request::Script(&self)).await?)
    }

    /// Sends the call and waits for its answer, which is a text.
    pub(super) async fn send_for_text(self, link: &Link) -> Result<String, StoreError> {
        match self.send_for_value(link).await? {
            Value::BulkString(bytes) => {
                String::from_utf8(bytes).map_err(|text| not_understood(&text.as_bytes().to_vec()))
            }
            other => Err(not_understood(&other)),
        }
    }

    /// Sends the call and waits for its answer, whatever it is.
    pub(super) async fn send_for_value(self, link: &Link) -> Result<Value, StoreError> {
        link.send(Request::Script(&self)).await
    }

    /// Runs the script once.
    pub(super) async fn run(&self, connection: &mut impl ConnectionLike, run: Run) -> RedisResult<Value> {
        let evalsha = self.evalsha_to(run);
        match evalsha.query_async(connection).await {
            Err(why) if why.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.eval(&evalsha).query_async(connection).await
            }
            answer => answer,
        }
    }

    /// The same call with the source in the place of its hash.
    fn eval(&self, evalsha: &Cmd) -> Cmd {
        let mut eval = redis::cmd("EVAL");
        eval.arg(&self.script.source);
        for argument in evalsha.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                eval.arg(bytes);
            }
        }
        eval
    }
}

/// What a script returns: a word that says what happened, then numbers, then perhaps texts.
#[derive(Debug)]
pub(super) struct Reply {
    word: String,
    numbers: Vec<i64>,
    texts: Vec<String>,
}

impl Reply {
    fn read(value: Value) -> Result<Self, StoreError> {
        let Value::Array(items) = value else { return Err(not_understood(&value)) };
        let mut items = items.into_iter();
        let word = match items.next() {
            Some(Value::BulkString(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            other => return Err(not_understood(&other)),
        };
        let (mut numbers, mut texts) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items {
            match item {
                Value::Int(number) => numbers.push(number),
                Value::BulkString(bytes) => texts.push(String::from_utf8_lossy(&bytes).into_owned()),
                other => return Err(not_understood(&other)),
            }
        }
        Ok(Self { word, numbers, texts })
    }

    /// The word and the numbers, for a `match`.
    pub(super) fn parts(&self) -> (&str, &[i64]) {
        (&self.word, &self.numbers)
    }

    /// The texts after the numbers.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The error for a reply that no arm of that `match` expects.
    pub(super) fn unexpected<T>(&self) -> Result<T, StoreError> {
        Err(not_understood(self))
    }
}

pub(super) fn not_understood(reply: &impl std::fmt::Debug) -> StoreError {
    StoreError::UnknownOutcome(format!(
        "the script's reply {reply:?} was not understood; do all processes run the same version?"
    ))
}

/// A number that cannot be negative; the scripts never return such a one where this is used.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
