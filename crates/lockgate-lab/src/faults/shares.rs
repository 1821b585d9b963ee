//! The judge of locks that are shared: who believed to hold how much, and when.
//!
//! **Promise:** what is reported is real: at that moment those processes, by what their own guards had told them, held more
//! of the lock together than there is. It knows nothing of how a lock works, only intervals with a weight. A reader weighs
//! one, a writer as much as all readers together can, a holder of permits as many as it has.
//!
//! A holder writes down, again and again, from when (after its guard said yes) until when (its guard's deadline) it trusts
//! what it has. Each line replaces the one before from its own beginning on; giving back is a line that ends where it
//! begins. A process that is killed or stopped writes no more: then what it believed last counts until its deadline, because
//! the store has promised not to give it to others before. All times are those of the clock that all processes of this
//! machine share.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lockgate::clock::{Clock, Moment};
use serde::{Deserialize, Serialize};

use super::Failure;
use super::recipe::{Held, Want};

const EXTENSION: &str = "shares.jsonl";

/// What a read-write lock has to share: more than there are readers.
const READERS: u64 = 1_000_000;

/// So many excesses are told of each lock; the others are more of the same.
const TOLD: usize = 5;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Belief {
    lock: String,
    /// How much there is.
    of: u64,
    /// Who: a process and the number of its hold.
    holder: (String, u64),
    weight: u64,
    /// In nanoseconds since the machine booted.
    from: u64,
    until: u64,
}

/// How much of what somebody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    weight: u64,
    of: u64,
}

impl Weight {
    pub(super) const READER: Weight = Weight { weight: 1, of: READERS };

    /// Nothing for what cannot be shared.
    pub(super) fn of(want: &Want) -> Option<Self> {
        match want {
            Want::Read => Some(Self::READER),
            Want::Write => Some(Self { weight: READERS, of: READERS }),
            Want::Permits { count, of } => Some(Self { weight: u64::from(*count), of: u64::from(*of) }),
            Want::Mutex | Want::Names(_) => None,
        }
    }
}

/// Writes down what one process believes; cheap to clone into all of its tasks.
#[derive(Clone)]
pub(super) struct Shares {
    shared: Arc<Shared>,
}

struct Shared {
    process: String,
    lock: String,
    clock: Clock,
    file: Mutex<File>,
    holds: AtomicU64,
}

/// What one holder believes.
pub(super) struct Share {
    shares: Shares,
    number: u64,
    weight: Weight,
}

impl Shares {
    pub(super) fn in_folder(folder: &Path, name: &str, lock: &str, clock: Clock) -> io::Result<Self> {
        let process = format!("{name}#{}", std::process::id());
        let path = folder.join(format!("{process}.{EXTENSION}"));
        let file = Mutex::new(OpenOptions::new().create_new(true).append(true).open(path)?);
        let holds = AtomicU64::new(0);
        Ok(Self { shared: Arc::new(Shared { process, lock: lock.to_owned(), clock, file, holds }) })
    }

    pub(super) fn begin(&self, weight: Weight) -> Share {
        let number = self.shared.holds.fetch_add(1, Ordering::Relaxed);
        Share { shares: self.clone(), number, weight }
    }
}

impl Share {
    /// Asks the guard, and writes down what it says.
    pub(super) fn believe(&self, held: &Held) -> io::Result<()> {
        let clock = &self.shares.shared.clock;
        let asked = clock.monotonic();
        let until = asked + held.lease_left();
        let is_trusted = held.is_trusted();
        let from = clock.monotonic();
        self.write(from, if is_trusted { until.max(from) } else { from })
    }

    /// To be called before it is given back.
    pub(super) fn end(&self) -> io::Result<()> {
        let now = self.shares.shared.clock.monotonic();
        self.write(now, now)
    }

    fn write(&self, from: Moment, until: Moment) -> io::Result<()> {
        let shared = &self.shares.shared;
        let belief = Belief {
            lock: shared.lock.clone(),
            of: self.weight.of,
            holder: (shared.process.clone(), self.number),
            weight: self.weight.weight,
            from: from.as_nanos(),
            until: until.as_nanos(),
        };
        let mut line = serde_json::to_vec(&belief)?;
        line.push(b'\n');
        shared.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How many holders were judged.
    pub(super) holds: u64,
    /// How many of them held a lock at the same time, at the most.
    pub(super) at_once: u64,
    pub(super) violations: Vec<String>,
}

/// Judges what all processes wrote into a folder, also the dead ones.
pub(super) fn judge(folder: &Path) -> Result<Verdict, Failure> {
    let mut beliefs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(EXTENSION) {
            read(&std::fs::read_to_string(&path)?, &mut beliefs)?;
        }
    }
    Ok(weigh(&beliefs))
}

/// A last line without its end is what a killed process leaves.
fn read(text: &str, beliefs: &mut Vec<Belief>) -> Result<(), Failure> {
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        beliefs.push(serde_json::from_str(line)?);
    }
    Ok(())
}

/// From `from` up to, and not including, `until`.
struct Stretch<'a> {
    belief: &'a Belief,
    until: u64,
}

fn weigh(beliefs: &[Belief]) -> Verdict {
    let mut by_holder: HashMap<&(String, u64), Vec<&Belief>> = HashMap::new();
    for belief in beliefs {
        by_holder.entry(&belief.holder).or_default().push(belief);
    }
    let mut by_lock: BTreeMap<&str, Vec<Stretch<'_>>> = BTreeMap::new();
    for lines in by_holder.values() {
        for (place, belief) in lines.iter().enumerate() {
            let replaced = lines.get(place + 1).map_or(u64::MAX, |next| next.from);
            let stretch = Stretch { belief, until: belief.until.min(replaced) };
            if stretch.belief.from < stretch.until {
                by_lock.entry(&belief.lock).or_default().push(stretch);
            }
        }
    }
    let mut verdict =
        Verdict { holds: u64::try_from(by_holder.len()).unwrap_or(u64::MAX), ..Verdict::default() };
    for stretches in by_lock.values() {
        sweep(stretches, &mut verdict);
    }
    verdict
}

/// Goes through time: at each beginning the sum is looked at, and ends come before beginnings.
fn sweep(stretches: &[Stretch<'_>], verdict: &mut Verdict) {
    let ends = stretches.iter().map(|stretch| (stretch.until, false, stretch));
    let mut changes: Vec<_> =
        ends.chain(stretches.iter().map(|stretch| (stretch.belief.from, true, stretch))).collect();
    changes.sort_by_key(|(at, begins, _)| (*at, *begins));
    let mut holding: Vec<&Stretch<'_>> = Vec::new();
    let mut told = 0;
    for (at, begins, stretch) in changes {
        if !begins {
            holding.retain(|other| !std::ptr::eq(*other, stretch));
            continue;
        }
        holding.push(stretch);
        verdict.at_once = verdict.at_once.max(u64::try_from(holding.len()).unwrap_or(u64::MAX));
        let sum: u64 = holding.iter().map(|stretch| stretch.belief.weight).sum();
        if sum > stretch.belief.of && told < TOLD {
            told += 1;
            verdict.violations.push(excess(at, sum, stretch.belief, &holding));
        }
    }
}

fn excess(at: u64, sum: u64, belief: &Belief, holding: &[&Stretch<'_>]) -> String {
    let who: Vec<_> = holding
        .iter()
        .map(|stretch| {
            let Belief { holder: (process, number), weight, from, .. } = stretch.belief;
            format!("{process}/{number} with {weight} from {from} until {}", stretch.until)
        })
        .collect();
    format!("{sum} of {} of {:?} were held at {at}: {}", belief.of, belief.lock, who.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(process: &str, number: u64, weight: u64, from: u64, until: u64) -> Belief {
        Belief { lock: "till".into(), of: 3, holder: (process.into(), number), weight, from, until }
    }

    fn is_clean(beliefs: &[Belief]) -> bool {
        weigh(beliefs).violations.is_empty()
    }

    #[test]
    fn as_much_as_there_is_may_be_held() {
        let verdict = weigh(&[belief("a", 0, 2, 10, 50), belief("b", 0, 1, 20, 60)]);
        assert_eq!(verdict, Verdict { holds: 2, at_once: 2, violations: vec![] });
    }

    #[test]
    fn more_than_there_is_may_not_be_held_even_for_a_moment() {
        let mut beliefs = vec![belief("a", 0, 2, 10, 50), belief("b", 0, 2, 49, 60)];
        let verdict = weigh(&beliefs);
        assert!(verdict.violations[0].starts_with("4 of 3 of \"till\" were held at 49"), "{verdict:?}");
        beliefs[1].from = 50;
        assert!(is_clean(&beliefs), "one ends where the other begins");
    }

    #[test]
    fn two_of_one_process_are_two() {
        assert!(!is_clean(&[belief("a", 0, 2, 10, 50), belief("a", 1, 2, 20, 30)]));
    }

    #[test]
    fn different_locks_have_nothing_to_do_with_each_other() {
        let other = Belief { lock: "door".into(), ..belief("b", 0, 3, 20, 30) };
        assert!(is_clean(&[belief("a", 0, 3, 10, 50), other]));
    }

    #[test]
    fn what_is_believed_later_counts_from_then_on() {
        let ends_at_40 = [belief("a", 0, 3, 10, 90), belief("a", 0, 3, 40, 40)];
        assert!(is_clean(&[ends_at_40.as_slice(), &[belief("b", 0, 1, 40, 60)]].concat()));
        assert!(!is_clean(&[ends_at_40.as_slice(), &[belief("b", 0, 1, 39, 60)]].concat()));
        let renewed = [belief("a", 0, 3, 10, 30), belief("a", 0, 3, 20, 50)];
        assert!(is_clean(&renewed), "it does not stand beside itself");
        assert!(!is_clean(&[renewed.as_slice(), &[belief("b", 0, 1, 45, 60)]].concat()));
    }

    #[test]
    fn who_writes_no_more_is_believed_until_its_deadline() {
        assert!(!is_clean(&[belief("dead", 0, 3, 10, 90), belief("b", 0, 1, 89, 99)]));
        assert!(is_clean(&[belief("dead", 0, 3, 10, 90), belief("b", 0, 1, 90, 99)]));
    }

    #[test]
    fn half_a_line_at_the_end_is_left_out() {
        let whole = serde_json::to_string(&belief("a", 0, 1, 10, 20)).unwrap();
        let mut beliefs = Vec::new();
        read(&format!("{whole}\n{}", &whole[..20]), &mut beliefs).unwrap();
        assert_eq!(beliefs, [belief("a", 0, 1, 10, 20)]);
        assert!(read(&format!("{}\n{whole}\n", &whole[..20]), &mut beliefs).is_err());
    }
}
