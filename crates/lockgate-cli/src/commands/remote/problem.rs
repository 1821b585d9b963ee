//! What went wrong, in one sentence with its remedy.

use std::io::ErrorKind;

use serde_json::Value;

use crate::commands::Failure;

/// The server did not answer. What was asked under a key can be asked again under it.
pub(super) fn cannot_reach(server: &str, why: &ureq::Error, key: Option<&str>) -> Failure {
    let look = key.map_or_else(
        || "look before you repeat it".to_owned(),
        |key| format!("repeat it with --idempotency-key {key}, and it happens once"),
    );
    let elsewhere = "name its address with --server or LOCKGATE_SERVER";
    let said = match why {
        ureq::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused => {
            format!("nobody listens at {server}; start it with `lockgate serve`, or {elsewhere}")
        }
        ureq::Error::HostNotFound => format!("there is no such host as in {server}; {elsewhere}"),
        ureq::Error::Timeout(_) => {
            format!("{server} took too long to answer; what was asked may have happened: {look}")
        }
        why if is_about_certificates(why) => format!(
            "the certificate of {server} is not trusted ({why}); name the one that signed it with --ca or LOCKGATE_CA"
        ),
        why => format!(
            "no answer from {server} that can be understood ({why}); is it Lockgate, and http or https as written? What was \
             asked may have happened: {look}"
        ),
    };
    said.into()
}

fn is_about_certificates(why: &ureq::Error) -> bool {
    let rustls_says = |why: &rustls::Error| matches!(why, rustls::Error::InvalidCertificate(_));
    match why {
        ureq::Error::Rustls(why) => rustls_says(why),
        ureq::Error::Io(io) => {
            io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some_and(rustls_says)
        }
        _ => false,
    }
}

/// What the server refused, from its problem document.
pub(super) fn sentence(server: &str, status: u16, problem: &Value) -> String {
    let (Some(code), Some(detail)) = (problem["code"].as_str(), problem["detail"].as_str()) else {
        return format!("{server} answered {status} and not as Lockgate does; is the address right?");
    };
    let detail = detail.trim_end_matches('.');
    match code {
        "unauthorized" => format!(
            "{code}: the token is missing or wrong; give the right one with --token-file, LOCKGATE_ADMIN_TOKEN (or \
             LOCKGATE_APP_TOKEN), or name the server's data folder with --data"
        ),
        _ => format!("{code}: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_is_its_code_and_its_remedy() {
        let problem = json!({ "code": "sold-out", "detail": "All are gone. Come earlier." });
        assert_eq!(sentence("http://a", 409, &problem), "sold-out: All are gone. Come earlier");
        let foreign = sentence("http://a", 502, &json!("<html>"));
        assert!(
            foreign.contains("http://a answered 502") && foreign.contains("is the address right"),
            "{foreign}"
        );
    }
}
