//! A running server, as the operator's commands reach it.
//!
//! **Promise:** a command makes the calls that it names, once, and prints what they answered: for people, or with `--json` exactly the
//! server's document. A refusal is one sentence with its remedy on standard error and exit code 1; with `--json` the server's problem
//! document is on standard output as well, so that there is one document either way. A token is sent to the server and shown to nobody.

mod problem;
mod tls;
mod token;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use ureq::http::{Method, Request};

use self::problem::{cannot_reach, sentence};
pub(crate) use self::tls::trusting;
pub(crate) use self::token::Hidden;
use self::token::Shown;
use super::{Failure, Outcome, print};

/// Where the server is, and what it is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "The server")]
pub(crate) struct ServerPlace {
    /// Where it is
    #[arg(long, env = "LOCKGATE_SERVER", default_value = "http://127.0.0.1:8080", value_name = "URL",
          value_parser = server_url)]
    server: String,

    /// The token to show; LOCKGATE_ADMIN_TOKEN and LOCKGATE_APP_TOKEN are not seen by others on this machine, as this is
    #[arg(long, value_name = "TOKEN")]
    token: Option<Hidden>,

    /// A file with the token to show, unless --token is given
    #[arg(long, env = "LOCKGATE_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The server's data folder, for the admin token that it keeps there; without it lockgate-data, for a server on this machine
    #[arg(long, env = "LOCKGATE_DATA", value_name = "DIR")]
    data: Option<PathBuf>,

    /// Certificates (PEM) to trust for https:// instead of the system's
    #[arg(long, env = "LOCKGATE_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Print the server's answer as it is, in JSON
    #[arg(long)]
    json: bool,
}

fn server_url(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let authority = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    // Whatever is more than an address would end up in the middle of paths.
    if authority.is_empty() || authority.contains(['/', '?', '#', '@', ' ']) {
        return Err("write http://ADDRESS:PORT or https://ADDRESS:PORT".into());
    }
    Ok(url.to_owned())
}

/// A command on a running server.
#[derive(Debug, Args)]
pub(crate) struct On<T: Args> {
    #[command(flatten)]
    pub(crate) what: T,

    #[command(flatten)]
    pub(crate) server: ServerPlace,
}

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Admin,
    App,
}

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    who: Who,
    body: Option<Value>,
    headers: Vec<(&'static str, String)>,
    /// How long the server may wait on purpose.
    wait: Duration,
}

impl Call {
    /// To the path that these make, each of them one segment of it.
    pub(crate) fn new(method: Method, who: Who, segments: &[&str]) -> Self {
        let path = segments.iter().map(|segment| format!("/{}", escaped(segment))).collect();
        Self { method, path, who, body: None, headers: Vec::new(), wait: Duration::ZERO }
    }

    pub(crate) fn get(segments: &[&str]) -> Self {
        Self::new(Method::GET, Who::App, segments)
    }

    pub(crate) fn with_body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// With the proof that it is the user's turn.
    pub(crate) fn with_pass(self, pass: String) -> Self {
        self.with_header("lockgate-pass", pass)
    }

    /// Under this key it happens once, however often it is asked for.
    pub(crate) fn once(self, key: String) -> Self {
        self.with_header(IDEMPOTENCY_KEY, key)
    }

    fn idempotency_key(&self) -> Option<&str> {
        self.headers.iter().find(|(name, _)| *name == IDEMPOTENCY_KEY).map(|(_, key)| key.as_str())
    }

    pub(crate) fn waiting_for(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

/// So that nothing in an id leads to another path.
fn escaped(segment: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte);
    let escape =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    segment.bytes().map(escape).collect()
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    text: String,
    pub(crate) body: Value,
}

/// A server that can be asked.
#[derive(Debug)]
pub(crate) struct Remote {
    place: ServerPlace,
    agent: ureq::Agent,
}

/// A server that takes longer than this for a call that does not wait on purpose is not well.
const PATIENCE: Duration = Duration::from_secs(40);

impl Remote {
    pub(crate) fn new(place: ServerPlace) -> Result<Self, Failure> {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A token is for this server, not for wherever it may point.
            .max_redirects(0)
            .max_redirects_will_error(false);
        if place.server.starts_with("https://") {
            config = config.tls_config(trusting(place.ca.as_deref())?);
        }
        Ok(Self { agent: config.build().into(), place })
    }

    /// Makes the call; whatever is not a success is the failure of the command.
    pub(crate) fn ask(&self, call: &Call) -> Result<Answer, Failure> {
        let answer = self.try_to_ask(call)?;
        if (200..300).contains(&answer.status) { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    /// The same, with `None` when there is no such thing.
    pub(crate) fn find(&self, call: &Call) -> Result<Option<Answer>, Failure> {
        let answer = self.try_to_ask(call)?;
        match answer.status {
            200..300 => Ok(Some(answer)),
            404 if answer.body.get("code").is_some() => Ok(None),
            _ => Err(self.refused(&answer)),
        }
    }

    fn try_to_ask(&self, call: &Call) -> Result<Answer, Failure> {
        let mut request =
            Request::builder().method(&call.method).uri(format!("{}{}", self.place.server, call.path));
        if let Some(token) = Shown::find(&self.place, call.who)? {
            request = request.header("authorization", token.header());
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let body = call.body.as_ref().map(Value::to_string);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let request = request.body(body.unwrap_or_default())?;
        let request =
            self.agent.configure_request(request).timeout_global(Some(PATIENCE + call.wait)).build();
        let lost = |why: ureq::Error| cannot_reach(&self.place.server, &why, call.idempotency_key());
        let (parts, mut body) = self.agent.run(request).map_err(lost)?.into_parts();
        let text = body.read_to_string().map_err(lost)?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status: parts.status.as_u16(), text, body })
    }

    fn refused(&self, answer: &Answer) -> Failure {
        if self.place.json && answer.body.is_object() {
            print(&format!("{}\n", answer.text));
        }
        sentence(&self.place.server, answer.status, &answer.body).into()
    }

    /// Prints what the server said: as it is, or in the words of `for_people`.
    pub(crate) fn tell(&self, answer: &Answer, for_people: impl FnOnce(&Value) -> String) -> Outcome {
        if self.place.json {
            if !answer.text.is_empty() {
                print(&format!("{}\n", answer.text));
            }
            return Ok(());
        }
        print(&format!("{}\n", for_people(&answer.body)));
        Ok(())
    }

    /// Asks and tells.
    pub(crate) fn ask_and_tell(&self, call: &Call, for_people: impl FnOnce(&Value) -> String) -> Outcome {
        self.tell(&self.ask(call)?, for_people)
    }

    /// Everything of one kind, from what the server tells at once; how many more there are is told, too.
    pub(crate) fn tell_all(&self, kind: &str, for_people: impl FnOnce(&Value, u64) -> String) -> Outcome {
        let overview = self.ask(&Call::get(&["v1", "overview"]))?.body;
        let more = overview["more"][kind].as_u64().unwrap_or(0);
        if self.place.json {
            print(&format!("{}\n", serde_json::json!({ kind: overview[kind], "more": more })));
            return Ok(());
        }
        print(&format!("{}\n", for_people(&overview[kind], more)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_address_and_nothing_more() {
        assert_eq!(server_url("http://127.0.0.1:8080/").unwrap(), "http://127.0.0.1:8080");
        assert_eq!(server_url("https://shop.example").unwrap(), "https://shop.example");
        for wrong in
            ["", "127.0.0.1:8080", "ftp://a", "http://", "http://a/v1", "http://user:secret@a", "http://a?b"]
        {
            assert!(server_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_one_segment_whatever_is_in_it() {
        let call = Call::get(&["v1", "coupons", "a/../b?c#d %é"]);
        assert_eq!(call.path, "/v1/coupons/a%2F..%2Fb%3Fc%23d%20%25%C3%A9");
    }
}
