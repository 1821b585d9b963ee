//! How it goes, while it goes: a bar on a terminal, a line per strategy elsewhere. On standard error, so that standard output has
//! the result.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};
use lockgate_lab::lab::report::Tried;
use lockgate_lab::lab::{Event, LabOptions};

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    rounds: u64,
}

impl Progress {
    pub(super) fn new(options: &LabOptions) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("  {prefix:24} {bar:40.cyan/dim} {pos}/{len} rounds {msg:.dim}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(0).with_style(style.progress_chars("━╸─"))
        });
        Self { bar, rounds: u64::from(options.rounds) }
    }

    pub(super) fn show(&self, event: &Event<'_>) {
        match event {
            Event::Note(note) => self.say(note),
            Event::Skipped(skipped) => self.say(&format!("left out: {}: {}", skipped.strategy, skipped.why)),
            Event::Begins { strategies } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(self.rounds * u64::try_from(*strategies).unwrap_or(0));
                }
            }
            Event::Strategy { name, title } => {
                if let Some(bar) = &self.bar {
                    bar.set_prefix((*name).to_owned());
                    bar.set_message((*title).to_owned());
                }
            }
            Event::Round { number, .. } => {
                if let Some(bar) = &self.bar {
                    // One more than was asked for, because a claimed failure has not shown.
                    if u64::from(*number) > self.rounds {
                        bar.inc_length(1);
                    }
                    bar.inc(1);
                }
            }
            Event::Tried(tried) => self.say(&in_words(tried)),
        }
    }

    fn say(&self, words: &str) {
        match &self.bar {
            Some(bar) => bar.println(words),
            None => eprintln!("{words}"),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn in_words(tried: &Tried) -> String {
    let seen: Vec<_> = tried.finding.seen.iter().map(ToString::to_string).collect();
    let found = if seen.is_empty() { "exact".to_owned() } else { seen.join(", ") };
    let claimed = if tried.finding.is_as_claimed { "as claimed" } else { "NOT AS CLAIMED" };
    let ms = tried.median_ms().unwrap_or_default();
    format!("{}: {found}, {claimed}, {ms:.0} ms", tried.name)
}
