//! `lockgate recover`: the way back when the store has forgotten something.

use clap::Args;
use lockgate::ledger::{Recovered, Recovery};
use serde_json::{Value, json};

use super::places::{LedgerPlace, StorePlace};
use super::{Outcome, print, runtime};

/// Open every campaign that is recovering; where the store has forgotten something, build it anew from the ledger and the
/// journal, and say what is lost.
#[derive(Debug, Args)]
pub(crate) struct Recover {
    #[command(flatten)]
    store: StorePlace,

    #[command(flatten)]
    ledger: LedgerPlace,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Recover {
    pub(crate) fn run(self) -> Outcome {
        let recovery = runtime()?.block_on(async {
            let (gate, ledger) = (self.store.open().await?, self.ledger.open().await?);
            Ok::<_, super::Failure>(ledger.recover(gate.store().as_ref()).await?)
        })?;
        let text = if self.json { format!("{:#}\n", to_json(&recovery)) } else { to_text(&recovery) };
        print(&text);
        match recovery.failed.first() {
            Some((_, why)) => {
                Err(format!("{} campaigns stay as they are; the first: {why}", recovery.failed.len()).into())
            }
            None => Ok(()),
        }
    }
}

fn to_json(recovery: &Recovery) -> Value {
    let campaign = |one: &Recovered| {
        json!({
            "campaign": one.campaign.called(), "had": one.had, "known": one.known, "found": one.found,
            "lost": one.lost,
        })
    };
    json!({
        "open": recovery.open,
        "lost": recovery.lost(),
        "failed": recovery.failed.iter().map(|(campaign, why)| json!({ "campaign": campaign.called(), "why": why })).collect::<Vec<_>>(),
        "recovered": recovery.campaigns.iter().map(campaign).collect::<Vec<_>>(),
    })
}

fn to_text(recovery: &Recovery) -> String {
    let mut text = String::new();
    for one in &recovery.campaigns {
        text.push_str(&format!(
            "{}: the store had change {}, somebody has seen {}, found up to {}; {} lost\n",
            one.campaign.called().escape_debug(),
            one.had,
            one.known,
            one.found,
            one.lost
        ));
    }
    let (open, lost) = (recovery.open, recovery.lost());
    text.push_str(&format!("{open} campaigns are open; {lost} changes that somebody had seen are lost\n"));
    text
}
