//! The configuration file: every flag of `lockgate serve` has a key of the same name, with underscores.
//!
//! What the file says takes the place of the flags' own defaults, and then the command line is read as ever. So flags win over the
//! environment, the environment wins over the file, the file wins over the defaults, and a new flag is a new key by itself.

use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use toml::Value;

/// How alike a key and a misspelt one must be for a suggestion; 1 is the same.
const ALIKE: f64 = 0.75;

/// The same command, with what the file says as its defaults.
pub(crate) fn with_defaults_of(command: Command, file: &Path) -> Result<Command, String> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|why| {
        format!(
            "cannot read {name}: {why}; name a file that this user may read with --config or LOCKGATE_CONFIG"
        )
    })?;
    with_defaults(command, &text).map_err(|why| format!("{name}: {why}"))
}

fn with_defaults(mut command: Command, text: &str) -> Result<Command, String> {
    let table: toml::Table = text.parse().map_err(|why| not_toml(text, &why))?;
    let probe = command.clone();
    for (key, value) in table {
        let arg = find(&probe, &key)?;
        let values = values_of(arg, &value).map_err(|why| format!("{key} {why}"))?;
        refuse_what_the_flag_would(&probe, arg, &values).map_err(|why| format!("{key}: {why}"))?;
        command = command.mut_arg(&key, |arg| arg.default_values(values));
    }
    Ok(command)
}

/// Where it is wrong, but not what stands there: it may be a token.
fn not_toml(text: &str, why: &toml::de::Error) -> String {
    let line =
        why.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    format!("{line}{}; it must be TOML, as in docs/lockgate.toml", why.message().replace('\n', " "))
}

/// The flags that a file may set.
pub(crate) fn keys(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "config" | "help" | "version"))
}

fn find<'a>(command: &'a Command, key: &str) -> Result<&'a Arg, String> {
    keys(command).find(|arg| arg.get_id() == key).ok_or_else(|| {
        let alike = |arg: &Arg| strsim::jaro_winkler(arg.get_id().as_str(), key);
        let nearest = keys(command).max_by(|one, other| alike(one).total_cmp(&alike(other)));
        match nearest.filter(|arg| alike(arg) > ALIKE) {
            Some(arg) => format!("there is no key {key:?}; did you mean {:?}?", arg.get_id().as_str()),
            None => format!("there is no key {key:?}; docs/lockgate.toml has them all"),
        }
    })
}

/// What one would write on the command line.
fn values_of(arg: &Arg, value: &Value) -> Result<Vec<String>, String> {
    let is_repeatable = matches!(arg.get_action(), ArgAction::Append);
    match value {
        Value::Array(values) if is_repeatable => values.iter().map(scalar).collect(),
        Value::Array(_) => Err("takes one value, not a list".to_owned()),
        value => Ok(vec![scalar(value)?]),
    }
}

fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(truth) => Ok(truth.to_string()),
        _ => Err("takes text or a whole number".to_owned()),
    }
}

/// Defaults are read only when they are needed, and then nobody would know that they came from the file.
fn refuse_what_the_flag_would(command: &Command, arg: &Arg, values: &[String]) -> Result<(), String> {
    let flag = arg.get_long().unwrap_or_default();
    let flags = values.iter().map(|value| format!("--{flag}={value}"));
    let line = std::iter::once("serve".to_owned()).chain(flags);
    command.clone().try_get_matches_from(line).map(drop).map_err(|why| {
        let said = why.to_string();
        said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let port = Arg::new("port").long("port").env("LOCKGATE_TEST_PORT_NEVER_SET");
        let port = port.value_parser(clap::value_parser!(u16)).default_value("80");
        let proxy = Arg::new("trusted_proxy").long("trusted-proxy").action(ArgAction::Append);
        Command::new("serve").args([port, proxy])
    }

    fn read(text: &str, line: &[&str]) -> (u16, Vec<String>) {
        let command = with_defaults(command(), text).unwrap();
        let matches = command.try_get_matches_from([&["serve"], line].concat()).unwrap();
        let proxies = matches.get_many::<String>("trusted_proxy").unwrap_or_default();
        (*matches.get_one("port").unwrap(), proxies.cloned().collect())
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        assert_eq!(read("", &[]).0, 80);
        assert_eq!(read("port = 81", &[]).0, 81);
        assert_eq!(read("port = \"81\"", &["--port", "82"]).0, 82);
        assert_eq!(read("trusted_proxy = [\"a\", \"b\"]", &[]).1, ["a", "b"]);
        assert_eq!(read("trusted_proxy = [\"a\", \"b\"]", &["--trusted-proxy", "c"]).1, ["c"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_name() {
        let refused = |text: &str| with_defaults(command(), text).unwrap_err();
        assert!(refused("prot = 1").contains("did you mean \"port\"?"), "{}", refused("prot = 1"));
        assert!(refused("colour = 1").contains("docs/lockgate.toml"));
        assert!(refused("help = true").contains("there is no key"));
        assert!(
            refused("port = 70000").starts_with("port: invalid value '70000'"),
            "{}",
            refused("port = 70000")
        );
        assert!(refused("port = [1]").starts_with("port takes one value"));
        assert!(refused("port = 1.5").starts_with("port takes text or a whole number"));
        let broken = refused("port = 1\nadmin_token = hunter2 hunter2");
        assert!(broken.starts_with("line 2: ") && !broken.contains("hunter2"), "{broken}");
    }
}
