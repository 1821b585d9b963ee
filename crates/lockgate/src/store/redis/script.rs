//! The scripts, each in a file of its own beside this one, and how they are called.
//!
//! `EVALSHA` sends forty bytes instead of the source. A server that has forgotten the script (restart, `SCRIPT FLUSH`,
//! failover, another node) says so without running anything, and gets the source by `EVAL`, which also makes it
//! remember. Nothing is loaded beforehand, so there is nothing to load again.

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, ErrorKind, RedisResult, ServerErrorKind, ToRedisArgs, Value};

use super::link::{Link, Request};
use crate::error::StoreError;

/// What scripts may include, by the line that does it.
const SHARED: [(&str, &str); 3] = [
    ("-- include shared/hand_over.lua\n", include_str!("scripts/shared/hand_over.lua")),
    ("-- include shared/take.lua\n", include_str!("scripts/shared/take.lua")),
    ("-- include shared/pass_on.lua\n", include_str!("scripts/shared/pass_on.lua")),
];

/// The line in whose place the [`House`]'s rules stand.
const HOUSE: &str = "-- include the house's rules\n";

/// What is the same in every call to this store, written into the scripts: an argument less is a microsecond less.
#[derive(Clone, Debug)]
pub(super) struct House {
    /// For how long a waiter holds what it was given before it has said a word.
    pub(super) claim_ms: u128,
    /// How long a released mutex is remembered.
    pub(super) kept_ms: u128,
    /// The channel of a process, without its ear.
    pub(super) ears: String,
    /// The channel on which all hear of a mutex that is free.
    pub(super) freed: String,
    /// Whether a waiter whose channel nobody hears is passed over: not on a cluster, where other nodes have subscribers too.
    pub(super) skips_absent: bool,
}

impl House {
    /// The rules as a line of Lua. The channels hold the namespace, which has neither quotes nor backslashes.
    fn rules(&self) -> String {
        let Self { claim_ms, kept_ms, ears, freed, skips_absent } = self;
        format!(
            "local claim_ms, kept_ms, ears, freed, skips_absent = '{claim_ms}', '{kept_ms}', '{ears}', '{freed}', {skips_absent}\n"
        )
    }
}

macro_rules! scripts {
    ($($script:ident = $file:literal),+ $(,)?) => {
        /// One atomic operation, as the server runs it.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Script { $($script),+ }

        const ALL: &[(&str, &str)] = &[$(($file, include_str!(concat!("scripts/", $file, ".lua")))),+];
    };
}

scripts! {
    CouponIssue = "coupon_issue",
    CouponOpen = "coupon_open",
    CouponRead = "coupon_read",
    MutexAcquire = "mutex_acquire",
    MutexBreak = "mutex_break",
    MutexRead = "mutex_read",
    MutexRelease = "mutex_release",
    MutexRenew = "mutex_renew",
    MutexYield = "mutex_yield",
}

/// All scripts, as one store's servers get them.
#[derive(Debug)]
pub(super) struct Scripts(Vec<Complete>);

/// A script with everything that it includes.
#[derive(Debug)]
struct Complete {
    source: String,
    sha: String,
}

impl Complete {
    fn new(file: &str, house: &House) -> Self {
        let source =
            SHARED.iter().fold(file.to_owned(), |source, (line, shared)| source.replace(line, shared));
        let source = source.replace(HOUSE, &house.rules());
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha }
    }
}

impl Scripts {
    pub(super) fn new(house: &House) -> Self {
        Self(ALL.iter().map(|(_, file)| Complete::new(file, house)).collect())
    }

    /// `script` on `keys`; all of them belong to one partition.
    pub(super) fn call(&self, script: Script, keys: &[String]) -> ScriptCall<'_> {
        let script = &self.0[script as usize];
        let mut evalsha = redis::cmd("EVALSHA");
        evalsha.arg(&script.sha).arg(keys.len()).arg(keys);
        ScriptCall { script, evalsha }
    }
}

/// A script with its keys and arguments, ready to be sent as often as it takes.
pub(super) struct ScriptCall<'a> {
    script: &'a Complete,
    evalsha: Cmd,
}

impl ScriptCall<'_> {
    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.evalsha.arg(argument);
        self
    }

    /// Sends the call and waits for its answer.
    pub(super) async fn send(self, link: &Link) -> Result<Reply, StoreError> {
        Reply::read(link.send(Request::Script(&self)).await?)
    }

    /// Runs the script once.
    pub(super) async fn run(&self, connection: &mut impl ConnectionLike) -> RedisResult<Value> {
        match self.evalsha.query_async(connection).await {
            Err(why) if why.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.eval().query_async(connection).await
            }
            answer => answer,
        }
    }

    /// The same call with the source in the place of its hash.
    fn eval(&self) -> Cmd {
        let mut eval = redis::cmd("EVAL");
        eval.arg(&self.script.source);
        for argument in self.evalsha.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                eval.arg(bytes);
            }
        }
        eval
    }
}

/// What a script returns: a word that says what happened, then numbers, then perhaps texts.
#[derive(Debug)]
pub(super) struct Reply {
    word: String,
    numbers: Vec<i64>,
    texts: Vec<String>,
}

impl Reply {
    fn read(value: Value) -> Result<Self, StoreError> {
        let Value::Array(items) = value else { return Err(not_understood(&value)) };
        let mut items = items.into_iter();
        let word = match items.next() {
            Some(Value::BulkString(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            other => return Err(not_understood(&other)),
        };
        let (mut numbers, mut texts) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items {
            match item {
                Value::Int(number) => numbers.push(number),
                Value::BulkString(bytes) => texts.push(String::from_utf8_lossy(&bytes).into_owned()),
                other => return Err(not_understood(&other)),
            }
        }
        Ok(Self { word, numbers, texts })
    }

    /// The word and the numbers, for a `match`.
    pub(super) fn parts(&self) -> (&str, &[i64]) {
        (&self.word, &self.numbers)
    }

    /// The texts after the numbers.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The error for a reply that no arm of that `match` expects.
    pub(super) fn unexpected<T>(&self) -> Result<T, StoreError> {
        Err(not_understood(self))
    }
}

fn not_understood(reply: &impl std::fmt::Debug) -> StoreError {
    StoreError::UnknownOutcome(format!(
        "the script's reply {reply:?} was not understood; do all processes run the same version?"
    ))
}

/// A number that cannot be negative; the scripts never return such a one where this is used.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn house() -> House {
        let (ears, freed) = ("lg:ear:".into(), "lg:freed".into());
        House { claim_ms: 1_000, kept_ms: 60_000, ears, freed, skips_absent: true }
    }

    #[test]
    fn the_rules_of_the_house_stand_in_the_scripts_that_ask_for_them() {
        let scripts = Scripts::new(&house());
        let source = &scripts.0[Script::MutexRelease as usize].source;
        assert!(source.contains("= '1000', '60000', 'lg:ear:', 'lg:freed', true\n"), "{source}");
    }

    /// All matches of `pattern(n)` in the text, for n = 1, 2, … and `..`.
    fn mentions(text: &str, array: &str) -> BTreeSet<String> {
        text.match_indices(&format!("{array}["))
            .filter_map(|(at, found)| {
                text[at + found.len()..].split_once(']').map(|(index, _)| index.to_owned())
            })
            .collect()
    }

    fn header_and_code(source: &str) -> (String, String) {
        let (header, code): (Vec<_>, Vec<_>) = source.lines().partition(|line| line.starts_with("--"));
        (header.join("\n"), code.join("\n"))
    }

    /// The words in `{'word'` or `{word_without_quotes`, after `marker`.
    fn returned_words(text: &str) -> BTreeSet<String> {
        text.match_indices("{'")
            .filter_map(|(at, _)| text[at + 2..].split_once('\'').map(|(word, _)| word.to_owned()))
            .collect()
    }

    #[test]
    fn a_script_uses_exactly_the_keys_and_arguments_that_its_header_names() {
        for (name, source) in ALL {
            let (header, code) = header_and_code(source);
            for array in ["KEYS", "ARGV"] {
                let (mut declared, used) = (mentions(&header, array), mentions(&code, array));
                if declared.remove("..") {
                    let uses_all = [format!("unpack({array})"), format!("= {array}\n")];
                    assert!(
                        uses_all.iter().any(|all| code.contains(all)),
                        "{name} declares {array}[..], in vain"
                    );
                }
                assert_eq!(declared, used, "{name}: {array}");
            }
        }
    }

    #[test]
    fn nothing_that_a_script_wants_to_include_is_missing() {
        for (name, source) in ALL {
            let complete = Complete::new(source, &house()).source;
            let missing = complete.lines().find(|line| line.contains("-- include")).map(str::to_owned);
            assert_eq!(missing, None, "{name}");
        }
    }

    #[test]
    fn a_script_binds_each_key_and_argument_to_the_name_in_its_header() {
        for (name, source) in ALL {
            let (header, code) = header_and_code(source);
            for line in
                header.lines().filter(|line| line.starts_with("-- KEYS[") || line.starts_with("-- ARGV["))
            {
                let mut words = line.trim_start_matches("-- ").split_whitespace();
                let (slot, called) = (words.next().unwrap(), words.next().unwrap());
                let bound = code.contains(&format!("local {called} = {slot}\n"))
                    || code.contains(&format!("local {called} = tonumber({slot})\n"));
                assert!(
                    bound || slot.ends_with("[..]"),
                    "{name}: {slot} is called {called} in the header only"
                );
            }
        }
    }

    #[test]
    fn a_script_returns_exactly_the_words_that_its_header_lists() {
        for (name, source) in ALL {
            let (header, code) = header_and_code(source);
            let returns =
                &header[header.find("-- Returns").unwrap_or_else(|| panic!("{name}: no Returns"))..];
            let mut returned = returned_words(&code);
            if code.contains("take(") {
                returned.extend(["granted", "taken", "queued"].map(str::to_owned));
            }
            assert_eq!(returned_words(returns), returned, "{name}");
        }
    }

    #[test]
    fn no_script_prints_a_number_with_two_dots() {
        // `..` turns 1e15 into "1e+15". Concatenating is for text: the right-hand sides known to be text are listed.
        let text = [
            "token",
            "next_token",
            "waiter",
            "before",
            "last",
            "released_by",
            "(holder",
            "string.sub",
            "string.format",
        ];
        for (name, source) in ALL.iter().chain(&SHARED) {
            let (_, code) = header_and_code(source);
            for right in code.split("..").skip(1).map(str::trim_start) {
                assert!(text.iter().any(|text| right.starts_with(text)), "{name}: .. {right}");
            }
        }
    }
}
