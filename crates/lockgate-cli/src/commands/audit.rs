//! `lockgate audit`: is everything that was decided written down?

use clap::Args;
use lockgate::ledger::{Audit as Found, CampaignAudit, Light};
use serde_json::{Value, json};

use super::places::{LedgerPlace, StorePlace};
use super::{Outcome, print, runtime};

/// Compare the store with the ledger: granted = persisted + in flight + dead letters, for every campaign. Ends with 1 when
/// something is missing or was decided twice.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    store: StorePlace,

    #[command(flatten)]
    ledger: LedgerPlace,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub(crate) fn run(self) -> Outcome {
        let found = runtime()?.block_on(async {
            let (gate, ledger) = (self.store.open().await?, self.ledger.open().await?);
            Ok::<_, super::Failure>(ledger.audit(gate.store().as_ref()).await?)
        })?;
        let text = if self.json { format!("{:#}\n", to_json(&found)) } else { to_text(&found) };
        print(&text);
        match found.light() {
            Light::Red => {
                Err("the audit is red; docs/operations.md says what to do about each column".into())
            }
            Light::Green | Light::Yellow => Ok(()),
        }
    }
}

fn to_json(found: &Found) -> Value {
    let campaign = |one: &CampaignAudit| {
        json!({
            "campaign": one.campaign.called(), "light": one.light().as_str(), "rev": one.rev,
            "granted": one.granted, "persisted": one.persisted, "in_flight": one.in_flight,
            "dead_lettered": one.dead_lettered, "dead_letters": one.dead_letters, "missing": one.missing,
            "conflicts": one.conflicts, "forgotten": one.forgotten, "is_in_store": one.is_in_store,
        })
    };
    json!({
        "light": found.light().as_str(),
        "unreadable": found.unreadable,
        "campaigns": found.campaigns.iter().map(campaign).collect::<Vec<_>>(),
    })
}

fn to_text(found: &Found) -> String {
    let mut text = String::new();
    for one in &found.campaigns {
        text.push_str(&format!(
            "{:6} {}: {} granted = {} persisted + {} in flight + {} dead-lettered",
            one.light().as_str(),
            one.campaign.called().escape_debug(),
            one.granted,
            one.persisted,
            one.in_flight,
            one.dead_lettered
        ));
        for (count, what) in [
            (one.missing, "changes are nowhere"),
            (one.conflicts, "changes came with two contents"),
            (one.forgotten, "changes the store has forgotten"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {count} {what}"));
            }
        }
        text.push('\n');
    }
    if found.unreadable > 0 {
        text.push_str(&format!("{} dead letters could not be read\n", found.unreadable));
    }
    text.push_str(&format!("{} campaigns: {}\n", found.campaigns.len(), found.light().as_str()));
    text
}
