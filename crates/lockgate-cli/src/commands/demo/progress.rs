//! How it goes, while it goes: bars on a terminal, a line a second elsewhere. On standard error, so that standard output has the result.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use super::shop::Sale;
use super::tally::Tally;

/// Ends when it is dropped.
pub(super) struct Progress {
    task: JoinHandle<()>,
    bars: Option<Bars>,
    tally: Arc<Tally>,
}

impl Progress {
    pub(super) fn show(sale: &Sale, tally: &Arc<Tally>) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| Bars::new(sale));
        let (shown, counted) = (bars.clone(), Arc::clone(tally));
        let task = tokio::spawn(async move {
            loop {
                match &shown {
                    Some(bars) => bars.update(&counted),
                    None => eprintln!("{}", in_words(&counted)),
                }
                let pause = if shown.is_some() { Duration::from_millis(80) } else { Duration::from_secs(1) };
                tokio::time::sleep(pause).await;
            }
        });
        Self { task, bars, tally: Arc::clone(tally) }
    }

    /// Shows how it ended.
    pub(super) fn end(self) {
        match &self.bars {
            Some(bars) => bars.finish(&self.tally),
            None => eprintln!("{}", in_words(&self.tally)),
        }
        eprintln!();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Bars {
    arrived: ProgressBar,
    admitted: ProgressBar,
    granted: ProgressBar,
    refused: ProgressBar,
    _all: MultiProgress,
}

impl Bars {
    fn new(sale: &Sale) -> Self {
        let all = MultiProgress::new();
        let bar = |name: &'static str, most: u32, colour: &str| {
            let bar = all.add(ProgressBar::new(u64::from(most)));
            // Some are refused more than once.
            let of = if name == "refused" { "" } else { " of {len}" };
            let template = format!("  {{prefix:9}} {{bar:40.{colour}/dim}} {{pos:>6}}{of} {{msg:.dim}}");
            let style =
                ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("━╸─"));
            bar.set_prefix(name);
            bar
        };
        let (arrived, admitted) =
            (bar("arrived", sale.shoppers, "cyan"), bar("admitted", sale.shoppers, "blue"));
        let (granted, refused) = (bar("granted", sale.stock, "green"), bar("refused", sale.shoppers, "red"));
        Self { arrived, admitted, granted, refused, _all: all }
    }

    fn update(&self, tally: &Tally) {
        self.arrived.set_position(tally.arrived.get());
        self.admitted.set_position(tally.admitted.get());
        self.admitted.set_message(format!("{} gone", tally.gone.get()));
        self.granted.set_position(tally.granted.get());
        self.refused.set_position(tally.refused().values().sum());
        self.refused.set_message(reasons(tally));
    }

    fn finish(&self, tally: &Tally) {
        self.update(tally);
        for bar in [&self.arrived, &self.admitted, &self.granted, &self.refused] {
            bar.abandon();
        }
    }
}

fn in_words(tally: &Tally) -> String {
    let (arrived, admitted) = (tally.arrived.get(), tally.admitted.get());
    let (granted, gone) = (tally.granted.get(), tally.gone.get());
    format!(
        "{arrived} arrived, {gone} gone, {admitted} admitted, {granted} granted; refused: {}",
        reasons(tally)
    )
}

/// Who was refused why, the most frequent first.
pub(super) fn reasons(tally: &Tally) -> String {
    let mut refused: Vec<_> = tally.refused().into_iter().collect();
    refused.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if refused.is_empty() {
        return "nobody".to_owned();
    }
    refused.iter().map(|(code, count)| format!("{count} {code}")).collect::<Vec<_>>().join(", ")
}
