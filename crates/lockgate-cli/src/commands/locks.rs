//! `lockgate locks`: who may act now, on a running server.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use ureq::http::Method;

use super::Outcome;
use super::remote::{Call, Hidden, On, Remote, ServerPlace, Who};
use super::show::{members, table};
use super::wishes::{duration, millis, positive_millis};

const COLUMNS: &[&str] = &["key", "held", "waiting", "lease_left_ms", "fence"];

/// Look after locks on a running server.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List those that were asked for through this server lately
    List(ServerPlace),
    /// Tell how one stands
    Show(On<Which>),
    /// Take one, and print the token that renews and releases it
    Acquire(On<Acquire>),
    /// Let the lease begin anew
    Renew(On<Renew>),
    /// Give one back
    Release(On<Release>),
    /// Take one from whoever holds it, and give it to the next who waits
    ForceRelease(On<Which>),
}

#[derive(Debug, Args)]
struct Which {
    /// What it is called
    key: String,
}

#[derive(Debug, Args)]
struct Acquire {
    /// What it is called
    key: String,

    /// For whom; the same owner is told the same token as long as it holds the lock
    #[arg(long, value_name = "NAME")]
    owner: String,

    /// For how long, unless it is renewed
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_millis)]
    lease: u64,

    /// How long to wait while others have it, a minute at the most
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    wait: Duration,
}

/// What holds a lock.
#[derive(Debug, Args)]
struct Held {
    /// The token that it was given with
    #[arg(long, env = "LOCKGATE_LOCK_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    lock_token: Hidden,
}

#[derive(Debug, Args)]
struct Renew {
    /// What it is called
    key: String,

    #[command(flatten)]
    held: Held,

    /// For how long from now
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_millis)]
    lease: u64,
}

#[derive(Debug, Args)]
struct Release {
    /// What it is called
    key: String,

    #[command(flatten)]
    held: Held,
}

impl Locks {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::List(server) => {
                Remote::new(server)?.tell_all("locks", |all, more| table(all, COLUMNS, more))
            }
            What::Show(On { what, server }) => {
                let call = Call::get(&["v1", "locks", &what.key]);
                Remote::new(server)?.ask_and_tell(&call, |body| members(body, COLUMNS))
            }
            What::Acquire(on) => acquire(on),
            What::Renew(On { what, server }) => {
                let call = Call::new(Method::POST, Who::App, &["v1", "locks", &what.key, "renew"]);
                let body = json!({ "token": what.held.lock_token.reveal(), "lease_ms": what.lease });
                Remote::new(server)?.ask_and_tell(&call.with_body(body), |body| members(body, &[]))
            }
            What::Release(On { what, server }) => {
                let call = Call::new(Method::DELETE, Who::App, &["v1", "locks", &what.key]);
                let call = call.with_header("lockgate-token", what.held.lock_token.reveal().to_owned());
                Remote::new(server)?.ask_and_tell(&call, |_| format!("{:?} is given back", what.key))
            }
            What::ForceRelease(On { what, server }) => {
                let call = Call::new(Method::POST, Who::Admin, &["v1", "locks", &what.key, "break"]);
                Remote::new(server)?.ask_and_tell(&call, |body| {
                    let (key, fence) = (&what.key, &body["fence"]);
                    format!("{key:?} is taken away; whoever held it has a fence below {fence}")
                })
            }
        }
    }
}

fn acquire(On { what: Acquire { key, owner, lease, wait }, server }: On<Acquire>) -> Outcome {
    let call = Call::new(Method::POST, Who::App, &["v1", "locks", &key]).waiting_for(wait);
    let call = call.with_body(json!({ "owner": owner, "wait_ms": millis(wait), "lease_ms": lease }));
    Remote::new(server)?.ask_and_tell(&call, |body| members(body, &["token", "fence", "lease_ms"]))
}
