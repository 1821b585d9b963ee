//! What operators do with coupons and deals alike.

use clap::Args;
use serde_json::Value;
use ureq::http::Method;

use super::remote::{Call, On, Remote, ServerPlace, Who};
use super::show::{members, table};
use super::wishes::Which;
use super::{Failure, Outcome};

/// A kind of campaign, as the server's paths and answers call it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// The segment of the path, and the member of the overview.
    pub(crate) many: &'static str,
    pub(crate) one: &'static str,
    /// In which order people want to read it.
    pub(crate) columns: &'static [&'static str],
}

/// To be flattened into whatever makes one.
#[derive(Debug, Args)]
pub(crate) struct Replace {
    /// Replace it if it is there, with all that is said and left out here
    #[arg(long)]
    replace: bool,
}

impl Kind {
    fn call(self, method: Method, who: Who, more: &[&str]) -> Call {
        Call::new(method, who, &[&["v1", self.many], more].concat())
    }

    fn shown(self, body: &Value) -> String {
        members(body, self.columns)
    }

    pub(crate) fn list(self, server: ServerPlace) -> Outcome {
        Remote::new(server)?.tell_all(self.many, |all, more| table(all, self.columns, more))
    }

    pub(crate) fn show(self, on: On<Which>) -> Outcome {
        let call = self.call(Method::GET, Who::App, &[&on.what.id]);
        Remote::new(on.server)?.ask_and_tell(&call, |body| self.shown(body))
    }

    /// `pause`, `resume` or `close`.
    pub(crate) fn turn(self, on: On<Which>, word: &str) -> Outcome {
        let call = self.call(Method::POST, Who::Admin, &[&on.what.id, word]);
        Remote::new(on.server)?.ask_and_tell(&call, |body| self.shown(body))
    }

    /// Makes one that is not there. The server's PUT would take the window and the line of one that is.
    pub(crate) fn create(self, server: ServerPlace, id: &str, replace: &Replace, body: Value) -> Outcome {
        let remote = Remote::new(server)?;
        if !replace.replace && self.find(&remote, id)?.is_some() {
            let Self { many, one, .. } = self;
            return Err(format!(
                "there is a {one} {id:?} already; change it with `lockgate {many} change`, or replace all of it with --replace"
            )
            .into());
        }
        self.put(&remote, id, body)
    }

    /// Changes what was said and sends the rest as it is.
    pub(crate) fn change(
        self,
        server: ServerPlace,
        id: &str,
        changed: impl FnOnce(&Value) -> Value,
    ) -> Outcome {
        let remote = Remote::new(server)?;
        let before = remote.ask(&self.call(Method::GET, Who::App, &[id]))?.body;
        self.put(&remote, id, changed(&before))
    }

    fn find(self, remote: &Remote, id: &str) -> Result<Option<Value>, Failure> {
        Ok(remote.find(&self.call(Method::GET, Who::App, &[id]))?.map(|answer| answer.body))
    }

    fn put(self, remote: &Remote, id: &str, body: Value) -> Outcome {
        let call = self.call(Method::PUT, Who::Admin, &[id]).with_body(body);
        remote.ask_and_tell(&call, |body| self.shown(body))
    }
}
