//! `lockgate deals`: so many in all, so many per user, on a running server.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use ureq::http::Method;

use super::Outcome;
use super::campaigns::{Kind, Replace};
use super::remote::{Call, On, Remote, ServerPlace, Who};
use super::wishes::{Once, Which, Window, object};

const DEALS: Kind = Kind {
    many: "deals",
    one: "deal",
    columns: &[
        "id",
        "state",
        "stock",
        "per_user",
        "sold",
        "held",
        "remaining",
        "opens_at",
        "closes_at",
        "line",
    ],
};

/// Look after deals on a running server.
#[derive(Debug, Args)]
pub(crate) struct Deals {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them, a hundred at the most
    List(ServerPlace),
    /// Tell how one stands
    Show(On<Which>),
    /// Make one
    Create(On<Create>),
    /// Change one; what is not said stays as it is
    Change(On<Change>),
    /// Sell none until it is resumed
    Pause(On<Which>),
    /// Go on after a pause
    Resume(On<Which>),
    /// Close one for ever
    Close(On<Which>),
    /// Sell to a user
    Purchase(On<Purchase>),
}

#[derive(Debug, Args)]
struct Create {
    /// What it is called
    id: String,

    /// How many there are
    #[arg(long, value_name = "N")]
    stock: u64,

    /// How many a user may have
    #[arg(long, value_name = "N", default_value_t = 1)]
    per_user: u64,

    #[command(flatten)]
    window: Window,

    #[command(flatten)]
    replace: Replace,
}

#[derive(Debug, Args)]
struct Change {
    /// What it is called
    id: String,

    /// How many there are, those that are sold among them
    #[arg(long, value_name = "N")]
    stock: Option<u64>,

    /// How many a user may have
    #[arg(long, value_name = "N")]
    per_user: Option<u64>,

    #[command(flatten)]
    window: Window,
}

#[derive(Debug, Args)]
struct Purchase {
    /// What the deal is called
    id: String,

    /// Who buys
    #[arg(long, value_name = "ID")]
    user: String,

    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    quantity: u64,

    #[command(flatten)]
    once: Once,

    /// The pass of the line that it demands
    #[arg(long, env = "LOCKGATE_PASS", hide_env_values = true, value_name = "PASS")]
    pass: Option<String>,
}

impl Deals {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::List(server) => DEALS.list(server),
            What::Show(on) => DEALS.show(on),
            What::Create(On { what, server }) => {
                let body = terms(Some(what.stock), Some(what.per_user), what.window, &Value::Null);
                DEALS.create(server, &what.id, &what.replace, body)
            }
            What::Change(On { what: Change { id, stock, per_user, window }, server }) => {
                DEALS.change(server, &id, |before| terms(stock, per_user, window, before))
            }
            What::Pause(on) => DEALS.turn(on, "pause"),
            What::Resume(on) => DEALS.turn(on, "resume"),
            What::Close(on) => DEALS.turn(on, "close"),
            What::Purchase(on) => purchase(on),
        }
    }
}

fn terms(stock: Option<u64>, per_user: Option<u64>, window: Window, before: &Value) -> Value {
    let [opens_at, closes_at, line] = window.members();
    let (stock, per_user) = (stock.map(Value::from), per_user.map(Value::from));
    object([("stock", stock), ("per_user", per_user), opens_at, closes_at, line], before)
}

fn purchase(On { what, server }: On<Purchase>) -> Outcome {
    let call = Call::new(Method::POST, Who::App, &["v1", "deals", &what.id, "purchases"]);
    let mut call =
        call.with_body(json!({ "user": what.user, "quantity": what.quantity })).once(what.once.key()?);
    if let Some(pass) = what.pass {
        call = call.with_pass(pass);
    }
    Remote::new(server)?.ask_and_tell(&call, has_bought)
}

fn has_bought(body: &Value) -> String {
    let (user, deal) = (body["user"].as_str().unwrap_or("?"), body["deal"].as_str().unwrap_or("?"));
    let before = if body["replayed"] == true { ", as before" } else { "" };
    format!(
        "{user} has bought {} of {deal}{before}: sale {}, {} in all; {} are left",
        body["quantity"], body["seq"], body["purchased"], body["remaining"]
    )
}
