//! `lockgate lines commitment|audit|verify`: the proof of a draw, and its verification by anybody.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use lockgate::key::Name;
use lockgate::line::Audit;
use lockgate::line::draw::{Hash256, leaf};
use serde_json::{Value, json};

use super::places::StorePlace;
use super::{Failure, Outcome, print, runtime};

#[derive(Debug, Args)]
pub(crate) struct OfStore {
    #[command(flatten)]
    store: StorePlace,

    /// The line
    line: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl OfStore {
    pub(crate) fn print_commitment(self) -> Outcome {
        runtime()?.block_on(self.commitment())
    }

    pub(crate) fn print_audit(self) -> Outcome {
        runtime()?.block_on(self.audit())
    }

    async fn commitment(self) -> Outcome {
        let gate = self.store.open().await?;
        let commitment = gate.line(&self.line)?.commitment().await?;
        let commitment = commitment.ok_or_else(|| {
            format!("there is no line {} with a pre-queue; open it with one first", self.line)
        })?;
        print(&match self.json {
            true => format!("{}\n", json!({ "line": self.line, "commitment": commitment.to_string() })),
            false => format!("{commitment}\n"),
        });
        Ok(())
    }

    async fn audit(self) -> Outcome {
        let gate = self.store.open().await?;
        let audit = gate.line(&self.line)?.audit().await?.ok_or_else(|| {
            format!(
                "there is nothing to verify of the line {}: it was not drawn yet, or those who came early are forgotten",
                self.line
            )
        })?;
        let mut out = BufWriter::new(std::io::stdout());
        serde_json::to_writer(&mut out, &published(&audit))?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }
}

fn published(audit: &Audit) -> Value {
    let arrivals: Vec<_> = audit.arrivals.iter().map(ToString::to_string).collect();
    json!({
        "line": audit.line.as_str(),
        "commitment": audit.commitment.to_string(),
        "secret": audit.secret.to_string(),
        "arrivals_hash": audit.arrivals_hash.to_string(),
        "seed": audit.seed.to_string(),
        "arrivals": arrivals,
    })
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// What `lockgate lines audit` has printed; in the place of `arrivals`, it may have the `users` themselves
    file: PathBuf,

    /// The commitment as it was published before: without it, the file is only compared with itself
    #[arg(long, value_name = "HASH")]
    commitment: Option<String>,

    /// Say which place was drawn for this user; may be repeated
    #[arg(long = "user", value_name = "ID")]
    users: Vec<String>,

    /// Print JSON: the order, as numbers of arrival from 0 on
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(crate) fn run(self) -> Outcome {
        let shown = self.file.display();
        let text =
            std::fs::read_to_string(&self.file).map_err(|why| format!("cannot read {shown}: {why}"))?;
        let audit =
            read(&text).map_err(|why| format!("{shown} is not what `lockgate lines audit` prints: {why}"))?;
        let commitment = self.commitment.as_deref().map(|text| hash("--commitment", text)).transpose()?;
        let order =
            audit.verify(commitment.as_ref()).map_err(|why| format!("the order does not hold: {why}"))?;
        let places = self.users.iter().map(|user| Ok((user.as_str(), audit.find(&Name::new("user", user)?))));
        let places = places.collect::<Result<Vec<_>, Failure>>()?;
        if self.json {
            println!("{}", as_json(&order, &places, commitment.is_some()));
            return Ok(());
        }
        println!("{} people came early to {:?}; the order holds", order.len(), audit.line.as_str());
        if commitment.is_none() {
            println!(
                "give --commitment, as it was published before, to see that it is the one that was committed to"
            );
        }
        for (user, place) in places {
            match place {
                Some((number, place)) => {
                    println!("{user}: came as number {}, stood at place {}", number + 1, place + 1);
                }
                None => println!("{user}: did not come early"),
            }
        }
        Ok(())
    }
}

fn as_json(order: &[u64], places: &[(&str, Option<(u64, u64)>)], is_committed: bool) -> Value {
    let users: serde_json::Map<_, _> = places
        .iter()
        .map(|(user, place)| {
            let place = place.map(|(number, place)| json!({ "number": number, "place": place }));
            ((*user).to_owned(), json!(place))
        })
        .collect();
    json!({ "holds": true, "commitment_compared": is_committed, "order": order, "users": users })
}

fn read(text: &str) -> Result<Audit, Failure> {
    let value: Value = serde_json::from_str(text)?;
    let text = |field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .ok_or_else(|| Failure::from(format!("it has no text {field:?}")))
    };
    let line = Name::new("line", text("line")?)?;
    let arrivals = match (value.get("arrivals"), value.get("users")) {
        (Some(Value::Array(leaves)), None) => {
            leaves.iter().map(|leaf| hash("arrivals", leaf.as_str().unwrap_or_default())).collect()
        }
        (None, Some(Value::Array(users))) => users
            .iter()
            .map(|user| Ok(leaf(&line, &Name::new("users", user.as_str().unwrap_or_default())?)))
            .collect(),
        _ => Err("it needs a list, \"arrivals\" or \"users\"".into()),
    };
    Ok(Audit::new(
        line,
        hash("commitment", text("commitment")?)?,
        hash("secret", text("secret")?)?,
        hash("arrivals_hash", text("arrivals_hash")?)?,
        hash("seed", text("seed")?)?,
        arrivals?,
    ))
}

fn hash(field: &str, text: &str) -> Result<Hash256, Failure> {
    Hash256::parse(text)
        .ok_or_else(|| format!("{field} has {text:?}, which is not 64 hexadecimal digits").into())
}
