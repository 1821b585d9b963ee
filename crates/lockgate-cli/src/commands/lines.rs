//! `lockgate lines`: who is next, on a running server; and the proof of a draw, from a store.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use ureq::http::Method;

use super::Outcome;
use super::campaigns::{Kind, Replace};
use super::draw::{OfStore, Verify};
use super::remote::{Call, On, Remote, ServerPlace, Who};
use super::show::members;
use super::wishes::{Once, Which, millis_or_none, object, positive_millis, time_or_none};

const LINES: Kind = Kind {
    many: "lines",
    one: "line",
    columns: &[
        "id",
        "state",
        "waiting",
        "active",
        "batch",
        "every_ms",
        "max_active",
        "admitted",
        "abandoned",
    ],
};

const TICKET: &[&str] = &["ticket", "state", "position", "waiting", "eta_ms", "until", "pass"];

/// Look after lines on a running server; publish and verify the order in which those who came early were admitted.
#[derive(Debug, Args)]
pub(crate) struct Lines {
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
    /// Change one, also while it runs: a new rate holds from the next batch on; what is not said stays as it is
    Change(On<Change>),
    /// Admit nobody until it is resumed
    Pause(On<Which>),
    /// Go on after a pause
    Resume(On<Which>),
    /// Close one for ever
    Close(On<Which>),
    /// Forget one that is closed, with everybody in it
    Forget(On<Which>),
    /// Admit so many of those who wait now, beyond the rate
    Admit(On<Admit>),
    /// Let a user in at the end, and print the ticket
    Enter(On<Enter>),
    /// Tell where the holder of a ticket stands
    Ticket(On<Ticket>),
    /// Leave, or end the turn
    Leave(On<Ticket>),
    /// Print the commitment of a line, to be published before anybody comes; reads the store
    Commitment(OfStore),
    /// Print all that is needed to verify the order, to be published when the line is open; reads the store
    Audit(OfStore),
    /// Compute the order again from what was published, and say whether it is the one that was committed to; asks nobody
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Create {
    /// What it is called
    id: String,

    /// How many are admitted together
    #[arg(long, value_name = "N")]
    batch: u32,

    /// How often, as in 2s
    #[arg(long, value_name = "TIME", value_parser = positive_millis)]
    every: u64,

    #[command(flatten)]
    more: Terms,

    /// Let people come before it opens, and draw their order then
    #[arg(long, requires = "opens_at")]
    prequeue: bool,

    #[command(flatten)]
    replace: Replace,
}

#[derive(Debug, Args)]
struct Change {
    /// What it is called
    id: String,

    /// How many are admitted together
    #[arg(long, value_name = "N")]
    batch: Option<u32>,

    /// How often, as in 2s
    #[arg(long, value_name = "TIME", value_parser = positive_millis)]
    every: Option<u64>,

    #[command(flatten)]
    more: Terms,
}

#[derive(Debug, Args)]
struct Terms {
    /// How many may be admitted at once; none: however many
    #[arg(long, value_name = "N", value_parser = number_or_none)]
    max_active: Option<Value>,

    /// For how long somebody is admitted, as in 5m
    #[arg(long, value_name = "TIME", value_parser = positive_millis)]
    pass_ttl: Option<u64>,

    /// Who is not seen for so long is passed over; none: nobody is
    #[arg(long, value_name = "TIME", value_parser = millis_or_none)]
    grace: Option<Value>,

    /// When it opens, as in 2026-12-24T18:00:00Z; none: it is open
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    opens_at: Option<Value>,
}

#[derive(Debug, Args)]
struct Admit {
    /// What the line is called
    id: String,

    /// How many
    #[arg(long, value_name = "N")]
    count: u32,

    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Args)]
struct Enter {
    /// What the line is called
    id: String,

    /// Who enters
    #[arg(long, value_name = "ID")]
    user: String,
}

#[derive(Debug, Args)]
struct Ticket {
    /// What the line is called
    id: String,

    /// The ticket
    ticket: String,
}

impl Lines {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::List(server) => LINES.list(server),
            What::Show(on) => LINES.show(on),
            What::Create(On { what, server }) => {
                let rate = (Some(what.batch), Some(what.every));
                let body = terms(rate, what.more, Some(what.prequeue), &Value::Null);
                LINES.create(server, &what.id, &what.replace, body)
            }
            What::Change(On { what: Change { id, batch, every, more }, server }) => {
                LINES.change(server, &id, |before| terms((batch, every), more, None, before))
            }
            What::Pause(on) => LINES.turn(on, "pause"),
            What::Resume(on) => LINES.turn(on, "resume"),
            What::Close(on) => LINES.turn(on, "close"),
            What::Forget(On { what, server }) => {
                let call = Call::new(Method::DELETE, Who::Admin, &["v1", "lines", &what.id]);
                Remote::new(server)?
                    .ask_and_tell(&call, |_| format!("there is no line {:?} any more", what.id))
            }
            What::Admit(on) => admit(on),
            What::Enter(On { what, server }) => {
                let call = Call::new(Method::POST, Who::App, &["v1", "lines", &what.id, "tickets"]);
                let call = call.with_body(json!({ "user": what.user }));
                Remote::new(server)?.ask_and_tell(&call, |body| members(body, TICKET))
            }
            What::Ticket(on) => on_ticket(on, Method::GET),
            What::Leave(on) => on_ticket(on, Method::DELETE),
            What::Commitment(line) => line.print_commitment(),
            What::Audit(line) => line.print_audit(),
            What::Verify(verify) => verify.run(),
        }
    }
}

fn terms(rate: (Option<u32>, Option<u64>), more: Terms, prequeue: Option<bool>, before: &Value) -> Value {
    let members = [
        ("batch", rate.0.map(Value::from)),
        ("every_ms", rate.1.map(Value::from)),
        ("max_active", more.max_active),
        ("pass_ttl_ms", more.pass_ttl.map(Value::from)),
        ("grace_ms", more.grace),
        ("opens_at", more.opens_at),
        ("prequeue", prequeue.map(Value::from)),
    ];
    object(members, before)
}

fn number_or_none(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(Value::Null);
    }
    text.parse::<u32>().map(Value::from).map_err(|_| "write a number, or none".to_owned())
}

fn admit(On { what, server }: On<Admit>) -> Outcome {
    let call = Call::new(Method::POST, Who::Admin, &["v1", "lines", &what.id, "admit"]);
    let call = call.with_body(json!({ "count": what.count })).once(what.once.key()?);
    Remote::new(server)?.ask_and_tell(&call, |body| match body["noted"].as_u64() {
        Some(noted) => format!("{noted} of those who wait now are admitted because of it"),
        None => "this was asked for before, under the same key; nobody is admitted for it twice".to_owned(),
    })
}

fn on_ticket(On { what, server }: On<Ticket>, method: Method) -> Outcome {
    let call = Call::new(method, Who::App, &["v1", "lines", &what.id, "tickets", &what.ticket]);
    Remote::new(server)?.ask_and_tell(&call, |body| members(body, TICKET))
}
