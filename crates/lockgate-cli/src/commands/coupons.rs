//! `lockgate coupons`: one per user, so many in all, on a running server.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use ureq::http::Method;

use super::Outcome;
use super::campaigns::{Kind, Replace};
use super::remote::{Call, On, Remote, ServerPlace, Who};
use super::wishes::{Which, Window, object};

const COUPONS: Kind = Kind {
    many: "coupons",
    one: "coupon",
    columns: &["id", "state", "quantity", "issued", "held", "remaining", "opens_at", "closes_at", "line"],
};

/// Look after coupons on a running server.
#[derive(Debug, Args)]
pub(crate) struct Coupons {
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
    /// Issue none until it is resumed
    Pause(On<Which>),
    /// Go on after a pause
    Resume(On<Which>),
    /// Close one for ever
    Close(On<Which>),
    /// Issue one to a user, who gets it once however often this is done
    Issue(On<Issue>),
    /// Tell whether a user has one
    Issued(On<Issue>),
}

#[derive(Debug, Args)]
struct Create {
    /// What it is called
    id: String,

    /// How many there are
    #[arg(long, value_name = "N")]
    quantity: u64,

    #[command(flatten)]
    window: Window,

    #[command(flatten)]
    replace: Replace,
}

#[derive(Debug, Args)]
struct Change {
    /// What it is called
    id: String,

    /// How many there are, those that are issued among them
    #[arg(long, value_name = "N")]
    quantity: Option<u64>,

    #[command(flatten)]
    window: Window,
}

#[derive(Debug, Args)]
struct Issue {
    /// What the coupon is called
    id: String,

    /// Who gets it
    #[arg(long, value_name = "ID")]
    user: String,

    /// The pass of the line that it demands
    #[arg(long, env = "LOCKGATE_PASS", hide_env_values = true, value_name = "PASS")]
    pass: Option<String>,
}

impl Coupons {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::List(server) => COUPONS.list(server),
            What::Show(on) => COUPONS.show(on),
            What::Create(On { what, server }) => {
                let body = terms(Some(what.quantity), what.window, &Value::Null);
                COUPONS.create(server, &what.id, &what.replace, body)
            }
            What::Change(On { what: Change { id, quantity, window }, server }) => {
                COUPONS.change(server, &id, |before| terms(quantity, window, before))
            }
            What::Pause(on) => COUPONS.turn(on, "pause"),
            What::Resume(on) => COUPONS.turn(on, "resume"),
            What::Close(on) => COUPONS.turn(on, "close"),
            What::Issue(on) => issue(on),
            What::Issued(On { what, server }) => {
                let call = Call::get(&["v1", "coupons", &what.id, "issues", &what.user]);
                Remote::new(server)?.ask_and_tell(&call, has_one)
            }
        }
    }
}

fn terms(quantity: Option<u64>, window: Window, before: &Value) -> Value {
    let [opens_at, closes_at, line] = window.members();
    object([("quantity", quantity.map(Value::from)), opens_at, closes_at, line], before)
}

fn issue(On { what, server }: On<Issue>) -> Outcome {
    let call = Call::new(Method::POST, Who::App, &["v1", "coupons", &what.id, "issues"]);
    let mut call = call.with_body(json!({ "user": what.user }));
    if let Some(pass) = what.pass {
        call = call.with_pass(pass);
    }
    Remote::new(server)?.ask_and_tell(&call, has_one)
}

fn has_one(body: &Value) -> String {
    let (user, coupon) = (body["user"].as_str().unwrap_or("?"), body["coupon"].as_str().unwrap_or("?"));
    let before = if body["replayed"] == true { ", as before" } else { "" };
    let left = body["remaining"].as_u64().map(|left| format!("; {left} are left")).unwrap_or_default();
    format!("{user} has number {} of {coupon}{before}{left}", body["seq"])
}
