//! `lockgate ledger`: what is in it, and what should not be.

use std::io::{BufWriter, Write};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use lockgate::clock::Timestamp;
use lockgate::key::Name;
use lockgate::ledger::{DeadLetter, Ledger, Winner};
use lockgate::store::Campaign;
use serde_json::json;

use super::import::Import;
use super::places::{CampaignPlace, LedgerPlace, StorePlace};
use super::{Failure, Outcome, print, runtime};

/// Export winners, import, erase users, apply retention, look after dead letters.
#[derive(Debug, Args)]
pub(crate) struct LedgerCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print who has what of a campaign
    Export(Export),
    /// Give a coupon to everybody in a Redis key, an SQL query or a file
    Import(Import),
    /// Erase a user: what the user was granted stays granted, to nobody
    Erase(Erase),
    /// Remove the rows of a campaign that is over; its sums stay
    Purge(Purge),
    /// List what could not be written, and why
    DeadLetters(DeadLetters),
    /// Write what dead letters hold, all or those of one campaign
    Replay(Letters),
    /// Remove dead letters for good
    Discard(Letters),
}

impl LedgerCommand {
    pub(crate) fn run(self) -> Outcome {
        runtime()?.block_on(async {
            match self.what {
                What::Export(export) => export.run().await,
                What::Import(import) => import.run().await,
                What::Erase(erase) => erase.run().await,
                What::Purge(purge) => purge.run().await,
                What::DeadLetters(letters) => letters.run().await,
                What::Replay(letters) => {
                    letters.run(async |ledger, letter| ledger.replay(letter).await).await
                }
                What::Discard(letters) => {
                    letters.run(async |ledger, letter| ledger.discard(letter).await).await
                }
            }
        })
    }
}

#[derive(Debug, Args)]
struct Export {
    #[command(flatten)]
    ledger: LedgerPlace,

    #[command(flatten)]
    campaign: CampaignPlace,

    /// How
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Csv,
    /// JSON lines
    Jsonl,
}

impl Export {
    async fn run(self) -> Outcome {
        let ledger = self.ledger.open().await?;
        let mut winners = ledger.winners(&self.campaign.campaign()?).await?;
        let mut out = BufWriter::new(std::io::stdout());
        if matches!(self.format, Format::Csv) {
            out.write_all(b"seq,user,quantity,granted_at\r\n")?;
        }
        while let Some(page) = winners.next_page().await? {
            for winner in &page {
                out.write_all(self.format.line(winner).as_bytes())?;
            }
        }
        Ok(out.flush()?)
    }
}

impl Format {
    /// Whoever was erased has no name.
    fn line(self, winner: &Winner) -> String {
        let (seq, quantity, at) = (winner.seq, winner.quantity, rfc3339(winner.at));
        let user = winner.user.as_ref().map(Name::as_str);
        match self {
            Format::Csv => format!("{seq},{},{quantity},{at}\r\n", quoted(user.unwrap_or_default())),
            Format::Jsonl => {
                format!("{}\n", json!({ "seq": seq, "user": user, "quantity": quantity, "granted_at": at }))
            }
        }
    }
}

/// A field of CSV (RFC 4180): quoted where it has to be.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}

fn rfc3339(time: Timestamp) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[derive(Debug, Args)]
struct Erase {
    #[command(flatten)]
    store: StorePlace,

    #[command(flatten)]
    ledger: LedgerPlace,

    /// The user's id
    user: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Erase {
    async fn run(self) -> Outcome {
        let (gate, ledger) = (self.store.open().await?, self.ledger.open().await?);
        let erasure = ledger.erase(gate.store().as_ref(), &Name::new("user", &self.user)?).await?;
        for campaign in &erasure.kept {
            eprintln!("{campaign:?}: the embedded store keeps the user in its journal");
        }
        let called = |campaigns: &[Campaign]| campaigns.iter().map(Campaign::called).collect::<Vec<_>>();
        let (kept, held) = (called(&erasure.kept), called(&erasure.held));
        if self.json {
            print(&format!("{}\n", json!({ "rows": erasure.rows, "kept": kept, "held": held })));
        }
        if let Some(held) = erasure.held.first() {
            return Err(
                format!("something of {held:?} is held for the user; settle it, and erase again").into()
            );
        }
        if !self.json {
            print(&format!("{} rows have no user any more\n", erasure.rows));
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
struct Purge {
    #[command(flatten)]
    store: StorePlace,

    #[command(flatten)]
    ledger: LedgerPlace,

    #[command(flatten)]
    campaign: CampaignPlace,

    /// Only if it has not changed for so many days
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    older_than_days: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Purge {
    async fn run(self) -> Outcome {
        let (gate, ledger) = (self.store.open().await?, self.ledger.open().await?);
        let age = Duration::from_secs(u64::from(self.older_than_days) * 24 * 60 * 60);
        let rows = ledger.purge(gate.store().as_ref(), &self.campaign.campaign()?, age).await?;
        print(&match self.json {
            true => format!("{}\n", json!({ "rows": rows })),
            false => format!("{rows} rows are removed\n"),
        });
        Ok(())
    }
}

#[derive(Debug, Args)]
struct DeadLetters {
    #[command(flatten)]
    ledger: LedgerPlace,

    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

impl DeadLetters {
    async fn run(self) -> Outcome {
        let ledger = self.ledger.open().await?;
        let mut out = BufWriter::new(std::io::stdout());
        for letter in all_letters(&ledger).await? {
            let DeadLetter { partition, position, rev, reason, content, is_conflict, .. } = &letter;
            let campaign = letter.campaign.as_ref().map(Campaign::called);
            if self.json {
                let line = json!({
                    "partition": partition, "position": position.to_string(), "campaign": campaign, "rev": rev,
                    "is_conflict": is_conflict, "reason": reason, "content": content, "at": rfc3339(letter.at),
                });
                writeln!(out, "{line}")?;
                continue;
            }
            let campaign = campaign.as_deref().unwrap_or("?").escape_debug();
            writeln!(
                out,
                "{partition} {position} {campaign} change {rev}: {reason}\n    {}",
                content.escape_debug()
            )?;
        }
        Ok(out.flush()?)
    }
}

#[derive(Debug, Args)]
struct Letters {
    #[command(flatten)]
    ledger: LedgerPlace,

    /// Only of the campaign that `dead-letters` calls so, as in coupon::summer
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: Option<String>,

    /// All of them
    #[arg(long, conflicts_with = "campaign", required_unless_present = "campaign")]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Letters {
    async fn run(
        self,
        deal_with: impl AsyncFn(&Ledger, &DeadLetter) -> Result<bool, lockgate::ledger::LedgerError>,
    ) -> Outcome {
        let ledger = self.ledger.open().await?;
        let (mut done, mut refused) = (0, 0);
        for letter in all_letters(&ledger).await? {
            let called = letter.campaign.as_ref().map(Campaign::called);
            if self.campaign.is_some() && self.campaign != called {
                continue;
            }
            match deal_with(&ledger, &letter).await {
                Ok(_) => done += 1,
                Err(why) => {
                    refused += 1;
                    eprintln!("{} {}: {why}", letter.partition, letter.position);
                }
            }
        }
        print(&match self.json {
            true => format!("{}\n", json!({ "gone": done, "stay": refused })),
            false => format!("{done} dead letters are gone, {refused} stay\n"),
        });
        if refused > 0 { Err("some dead letters stay".into()) } else { Ok(()) }
    }
}

async fn all_letters(ledger: &Ledger) -> Result<Vec<DeadLetter>, Failure> {
    let mut all: Vec<DeadLetter> = Vec::new();
    loop {
        let page = ledger.dead_letters(all.last(), 1_000).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn csv_quotes_what_would_break_it() {
        assert_eq!(quoted("a b"), "a b");
        assert_eq!(quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
    }
}
