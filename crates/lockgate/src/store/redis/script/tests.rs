//! The scripts keep to the form in which their callers read them.

use std::collections::BTreeSet;

use super::*;

fn house() -> House {
    let (ears, freed) = ("lg:ear:".into(), "lg:freed".into());
    House { claim_ms: 1_000, kept_ms: 60_000, ears, freed, skips_absent: true, quarantine_us: None }
}

#[test]
fn the_rules_of_the_house_stand_in_the_scripts_that_ask_for_them() {
    let scripts = Scripts::new(&house());
    let source = &scripts.0[Script::MutexRelease as usize].source;
    assert!(source.contains("= '1000', '60000', 'lg:ear:', 'lg:freed', true\n"), "{source}");
}

#[test]
fn where_there_is_no_quarantine_the_scripts_know_nothing_of_it() {
    let (without, with) = (house(), House { quarantine_us: Some(2_000_000), ..house() });
    for (name, source) in ALL.iter().filter(|(_, source)| source.contains(QUARANTINE.0)) {
        let without = Complete::new(source, &without).source;
        assert!(without.contains(NO_QUARANTINE) && !without.contains("quarantine_left"), "{name}: {without}");
        let with = Complete::new(source, &with).source;
        assert!(with.contains("local quarantine_us = 2000000\n"), "{name}: {with}");
        assert!(with.contains("quarantine_left(quarantine)") && with.contains("run_id:"), "{name}: {with}");
    }
}

/// All matches of `pattern(n)` in the text, for n = 1, 2, … and `..`.
fn mentions(text: &str, array: &str) -> BTreeSet<String> {
    text.match_indices(&format!("{array}["))
        .filter_map(|(at, found)| text[at + found.len()..].split_once(']').map(|(index, _)| index.to_owned()))
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
        for line in header.lines().filter(|line| line.starts_with("-- KEYS[") || line.starts_with("-- ARGV["))
        {
            let mut words = line.trim_start_matches("-- ").split_whitespace();
            let (slot, called) = (words.next().unwrap(), words.next().unwrap());
            let bindings = match slot.strip_suffix("[..]") {
                Some(array) => [format!("local {called} = {array}\n"), format!("unpack({array})")],
                None => {
                    [format!("local {called} = {slot}\n"), format!("local {called} = tonumber({slot})\n")]
                }
            };
            assert!(
                bindings.iter().any(|binding| code.contains(binding)),
                "{name}: {slot} is called {called} in the header only"
            );
        }
    }
}

/// Whether it answers with a word and numbers. The others answer with lines.
fn is_of_locks(name: &str) -> bool {
    ["mutex_", "permit_", "latch_"].iter().any(|family| name.starts_with(family))
}

fn is_of_lines(name: &str) -> bool {
    name.starts_with("line_") || name.starts_with("ticket_")
}

/// Of the scripts of lines, those that answer with one line as those of the stock do, or with what a command returned. The others
/// answer with a list whose first item is a word.
fn is_one_line(name: &str) -> bool {
    ["line_open", "line_change", "line_admit", "line_list", "line_forget", "line_draw"].contains(&name)
}

fn returns_of<'a>(name: &str, header: &'a str) -> &'a str {
    &header[header.find("-- Returns").unwrap_or_else(|| panic!("{name}: no Returns"))..]
}

#[test]
fn a_script_that_answers_with_a_list_returns_exactly_the_words_that_its_header_lists() {
    let is_list = |name: &str| is_of_locks(name) || is_of_lines(name) && !is_one_line(name);
    for (name, source) in ALL.iter().filter(|(name, _)| is_list(name)) {
        let (header, code) = header_and_code(source);
        let mut returned = returned_words(&code);
        if source.contains("-- include shared/ticket.lua") {
            returned.extend(["told", "unknown"].map(str::to_owned));
        }
        if code.contains("return take(") {
            returned.extend(["granted", "taken", "queued"].map(str::to_owned));
        }
        assert_eq!(returned_words(returns_of(name, &header)), returned, "{name}");
    }
}

/// The words with which answers begin, by the header of a script that answers with lines: each stands at the beginning
/// of a line or after a comma; what follows two blanks is a remark.
fn words_in_lines_of(returns: &str) -> BTreeSet<String> {
    let mut lines =
        returns.lines().map(|line| line.trim_start_matches("-- Returns").trim_start_matches("--"));
    let first = lines.next().unwrap().trim();
    let first = (!first.contains(' ')).then_some(first);
    first
        .into_iter()
        .chain(lines.take_while(|line| line.starts_with("   ")).map(str::trim_start))
        .map(|line| line.strip_prefix("or, for a late copy: ").unwrap_or(line))
        .flat_map(|line| line.split("  ").next().unwrap_or(line).split(", "))
        .filter_map(|answer| answer.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// The words with which the code begins an answer: the literals that it returns, chooses or puts into a list of answers.
fn words_built_by(code: &str) -> BTreeSet<String> {
    const BEFORE: [&str; 9] = [
        "return",
        "return (",
        "and",
        "or",
        "finish({",
        "table.concat({",
        "answer =",
        "denial =",
        "[#answers + 1] =",
    ];
    let literals = code.match_indices('\'').step_by(2);
    literals
        .filter(|(at, _)| BEFORE.iter().any(|before| code[..*at].trim_end().ends_with(before)))
        .filter_map(|(at, _)| code[at + 1..].split_once('\'').map(|(literal, _)| literal))
        .filter_map(|literal| literal.trim_start_matches("* ").split(' ').next())
        .filter(|word| !word.is_empty() && word.chars().all(|char| char.is_ascii_lowercase() || char == '-'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_script_that_answers_with_lines_uses_exactly_the_words_that_its_header_lists() {
    let shared =
        |file: &str| header_and_code(SHARED.iter().find(|(line, _)| line.contains(file)).unwrap().1).1;
    let shelf = shared("shelf.lua");
    let (_, state_of) = shelf.split_once("local function state_of").unwrap();
    let mut states = words_built_by(state_of.split_once("\nend").unwrap().0);
    assert!(states.remove("open"), "the one state that denies nothing is no answer");
    let line = shared("line.lua");
    let (_, how_it_is) = line.split_once("local function how_it_is").unwrap();
    let how_lines_are = words_built_by(how_it_is.split_once("\nend").unwrap().0);
    let is_prose = |name: &str| {
        name.starts_with("journal_")
            || ["campaign_list", "epoch_read", "epoch_settle", "line_list", "order_doubts"].contains(&name)
            || is_of_lines(name) && !is_one_line(name)
    };
    for (name, source) in ALL.iter().filter(|(name, _)| !is_of_locks(name) && !is_prose(name)) {
        let (header, code) = header_and_code(source);
        let mut built = words_built_by(&code);
        if source.contains("-- include shared/deny.lua") {
            built.extend(words_built_by(&shared("deny.lua")));
        }
        let only_compares = code.replace("state_of(shelf) ~= 'closed'", "");
        if only_compares.contains("state_of(") || code.contains("deny(") {
            built.extend(states.clone());
        }
        if source.contains("-- include shared/pass_use.lua")
            || source.contains("-- include shared/passes.lua")
        {
            built.extend(words_built_by(&shared("passes.lua")));
        }
        if source.contains("-- include shared/batch.lua") || source.contains("-- include shared/replay.lua") {
            built.extend(words_built_by(&shared("replay.lua")));
        }
        if code.contains("return how_it_is()") {
            built.extend(how_lines_are.clone());
        }
        // Why there is no campaign; but not where only one of the reasons counts.
        let says_why =
            ["denied[1] ==", "denied[place] =="].iter().fold(code.clone(), |code, one| code.replace(one, ""));
        if ["denied", "absence(", "deny("].iter().any(|why| says_why.contains(why)) {
            built.extend(words_built_by(&shared("epoch.lua")));
        }
        assert_eq!(words_in_lines_of(returns_of(name, &header)), built, "{name}");
    }
}

#[test]
fn no_script_prints_a_number_with_two_dots() {
    // `..` turns 1e15 into "1e+15". Concatenating is for text: the right-hand sides known to be text are listed, those
    // that are text only in some scripts with them.
    let anywhere = [
        "text(",
        "standing(",
        "struct.pack",
        "string.rep",
        "string.sub",
        "string.char",
        "string.format",
        "table.concat",
        "'",
    ];
    let names = |script: &str| -> &[&str] {
        match script {
            "campaign_list" => &["after"],
            "campaign_rebuild" => &["user", "seq)", "id", "request"],
            "coupon_issue" => &[
                "seq_text",
                "has",
                "denial",
                "format(",
                "answer",
                "why_not",
                "line",
                "pass.jti",
                "pass.expires_at_us",
            ],
            "deal_purchase" => &["request", "numbers"],
            "grant_revoke" => &["user", "seq)"],
            "hold_place" => &["user", "id", "seat"],
            "hold_read" => &["hold.user"],
            "hold_settle" => &["confirm(", "hold.seq"],
            "line_admit" => &["how"],
            "line_draw" => &[],
            "line_enter" => &["numbers[user]", "standing_of_new(", "denial", "words"],
            "line_list" => &["after"],
            "line_open" => &["secrets"],
            "line_arrivals" => &["user"],
            "-- include shared/places.lua\n" => &["user", "ending"],
            "journal_read" => &["after"],
            "journal_standing" => &["delivered"],
            "order_decide" => &["content", "numbers", "known", "answer"],
            "order_find" => &["known"],
            "order_place" => &["content", "numbers"],
            "order_reserve" => &["before.left", "now"],
            "order_read" => &["placed"],
            "share_read" => &["user", "seat"],
            "user_erase" => &["user", "alias", "arguments[place]"],
            "-- include shared/batch.lua\n" => &["answer"],
            "-- include shared/deny.lua\n" => &["place", "rest"],
            "-- include shared/beginning.lua\n" | "-- include shared/positions.lua\n" => &[],
            "-- include shared/passes.lua\n" => &["pass.jti"],
            "-- include shared/pass_use.lua\n" => &["pass.expires_at_us"],
            "-- include shared/put_aside.lua\n" => &["user", "id"],
            "-- include shared/shelf.lua\n" | "-- include shared/standing.lua\n" => &["shelf.line"],
            "-- include shared/holds.lua\n" => &["user", "id", "jti", "seq, text("],
            _ => &["token", "next_token", "waiter", "before", "last", "released_by"],
        }
    };
    for (name, source) in ALL.iter().chain(&SHARED).chain([&QUARANTINE]) {
        let code = header_and_code(source).1.replace("...", "");
        for right in code.split("..").skip(1).map(str::trim_start) {
            let is_text = anywhere.iter().chain(names(name)).any(|text| right.starts_with(text));
            assert!(is_text, "{name}: .. {right}");
        }
    }
}
