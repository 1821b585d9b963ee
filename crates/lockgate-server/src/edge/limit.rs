//! How often one may ask.
//!
//! | who | counted | when it is too often |
//! | --- | --- | --- |
//! | a client address | every request, if `rate_per_address` is set | 429 until there is room again |
//! | holders of a right token | every request, all of them together, if `rate_per_token` is set | the same |
//! | a client address that shows wrong tokens | each of them, always | 429 for everything with a token from there, right or wrong |
//!
//! The last line is why guessing does not pay: while an address has guessed too often, it does not learn whether a guess was
//! right. A wrong token is never a key, so guesses neither get budgets of their own nor are they kept anywhere.
//!
//! `/healthz` is not counted: a server must not be restarted because somebody at the same address asks a lot.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::Request;
use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::{Quota, RateLimiter};
use lockgate::clock::Clock;

use super::Edge;
use super::address::{Client, Network, client};
use super::bounded::Bounded;
use crate::auth::{Tokens, Whose};
use crate::problem::Problem;

/// How many clients are remembered at a time: some 4 MB per kind of limit.
const MOST_CLIENTS: usize = 65_536;

/// How often an address may show wrong tokens. A program with an old token is told what is wrong; a guesser gets nowhere.
const WRONG_TOKENS: Rate = Rate(NonZeroU32::MIN.saturating_add(9));

/// So many a second, and for a moment twice as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(NonZeroU32);

impl Rate {
    fn quota(self) -> Quota {
        Quota::per_second(self.0).allow_burst(self.0.saturating_mul(NonZeroU32::MIN.saturating_add(1)))
    }
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        number.parse().map(Self).map_err(|_| "must be a number of requests per second, as in 100/s")
    }
}

/// What is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Admin,
    App,
}

/// The service's clock, as the limiter wants to see it.
#[derive(Clone, Debug)]
struct LimiterClock(Clock);

impl governor::clock::Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.monotonic().as_nanos())
    }
}

type Buckets<K> = RateLimiter<K, Bounded<K, Nanos>, LimiterClock, NoOpMiddleware<Duration>>;

/// Too often, by this count, for so long.
#[derive(Debug)]
struct TooOften {
    by: &'static str,
    wait: Duration,
}

#[derive(Debug)]
pub(super) struct Limiter {
    clock: LimiterClock,
    tokens: Tokens,
    trusted_proxies: Vec<Network>,
    per_address: Option<Buckets<Client>>,
    per_token: Option<Buckets<Holder>>,
    wrong_tokens: Buckets<Client>,
    /// Who has shown too many wrong tokens, and until when nothing with a token is taken from there.
    barred_until: Bounded<Client, Duration>,
}

impl Limiter {
    pub(super) fn new(edge: &Edge, tokens: Tokens) -> Self {
        let clock = LimiterClock(edge.clock.clone());
        Self {
            tokens,
            trusted_proxies: edge.trusted_proxies.clone(),
            per_address: edge.rate_per_address.map(|rate| buckets(rate, &clock)),
            per_token: edge.rate_per_token.map(|rate| buckets(rate, &clock)),
            wrong_tokens: buckets(WRONG_TOKENS, &clock),
            barred_until: Bounded::new(MOST_CLIENTS),
            clock,
        }
    }

    /// Counts the request; refuses it if that was too often.
    pub(super) fn admit(&self, request: &Request) -> Result<(), Problem> {
        if request.uri().path() == "/healthz" {
            return Ok(());
        }
        self.count(request).map_err(|TooOften { by, wait }| {
            metrics::counter!("lockgate_http_rate_limited_total", "by" => by).increment(1);
            Problem::rate_limited(wait)
        })
    }

    fn count(&self, request: &Request) -> Result<(), TooOften> {
        let client = client(request.extensions(), request.headers(), &self.trusted_proxies);
        if let Some(buckets) = &self.per_address {
            self.take("address", buckets, client)?;
        }
        let whose = self.tokens.whose(request.headers());
        if whose != Whose::Nobodys {
            self.refuse_if_barred(client)?;
        }
        match (whose, &self.per_token) {
            (Whose::Wrong, _) => self.count_wrong_token(client),
            (Whose::Admins, Some(buckets)) => self.take("token", buckets, Holder::Admin),
            (Whose::Apps, Some(buckets)) => self.take("token", buckets, Holder::App),
            (Whose::Nobodys, _) | (Whose::Admins | Whose::Apps, None) => Ok(()),
        }
    }

    fn take<K: Copy + Eq + std::hash::Hash>(
        &self,
        by: &'static str,
        buckets: &Buckets<K>,
        key: K,
    ) -> Result<(), TooOften> {
        buckets.check_key(&key).map_err(|until| TooOften { by, wait: until.wait_time_from(self.clock.now()) })
    }

    fn count_wrong_token(&self, client: Client) -> Result<(), TooOften> {
        let counted = self.take("wrong-token", &self.wrong_tokens, client);
        if let Err(too_often) = &counted {
            self.barred_until.insert(client, self.clock.now() + too_often.wait);
        }
        counted
    }

    fn refuse_if_barred(&self, client: Client) -> Result<(), TooOften> {
        let until = self.barred_until.get(&client).unwrap_or_default();
        let wait = until.saturating_sub(self.clock.now());
        if wait.is_zero() { Ok(()) } else { Err(TooOften { by: "wrong-token", wait }) }
    }
}

fn buckets<K: Copy + Eq + std::hash::Hash>(rate: Rate, clock: &LimiterClock) -> Buckets<K> {
    RateLimiter::new(rate.quota(), Bounded::new(MOST_CLIENTS), clock.clone())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn limiter(edge: &Edge) -> Limiter {
        let tokens = Tokens { admin: "a".parse().unwrap(), app: None };
        Limiter::new(edge, tokens)
    }

    #[test]
    fn many_addresses_do_not_take_more_memory() {
        let clock = Clock::fake();
        let rate = Some("1/s".parse().unwrap());
        let limiter = limiter(&Edge { rate_per_address: rate, clock, ..Edge::default() });
        let buckets = limiter.per_address.as_ref().unwrap();
        for number in 0..200_000_u32 {
            let client = Client::from(IpAddr::V4(Ipv4Addr::from_bits(number)));
            let _ = limiter.take("address", buckets, client);
            let _ = limiter.count_wrong_token(client);
        }
        let buckets = limiter.per_address.unwrap().into_state_store();
        let most = [buckets.len(), limiter.wrong_tokens.into_state_store().len(), limiter.barred_until.len()];
        assert!(most.iter().all(|&most| most <= MOST_CLIENTS), "{most:?}");
    }

    #[test]
    fn rates_are_read_or_refused() {
        assert_eq!("100/s".parse::<Rate>(), "100".parse::<Rate>());
        for wrong in ["", "0/s", "-1", "1/m", "many"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong:?}");
        }
    }
}
