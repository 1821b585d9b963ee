//! Where Redis is: the store URL, taken apart.

use redis::{ConnectionInfo, IntoConnectionInfo};

use crate::error::{OpenError, without_secrets};

const EXPECTED: &str = "expected `memory`, `redis://host:port`, `rediss://host:port` (TLS), \
                        `redis+sentinel://host:port,host:port/master-name` or \
                        `redis+cluster://host:port,host:port`";

/// A store URL that makes sense.
#[derive(Clone, Debug)]
pub(super) struct RedisUrl {
    /// For messages: the URL without user and password.
    pub(super) shown: String,
    pub(super) topology: Topology,
}

#[derive(Clone, Debug)]
pub(super) enum Topology {
    OneMaster(Master),
    Cluster { nodes: Vec<ConnectionInfo> },
}

/// How to find the one server that decides.
#[derive(Clone, Debug)]
pub(super) enum Master {
    /// It is always at the same place.
    At(Box<ConnectionInfo>),
    /// The sentinels know; `access` says with which credentials and which database to talk to it.
    KnownToSentinels { sentinels: Vec<ConnectionInfo>, name: String, access: Box<ConnectionInfo> },
}

impl RedisUrl {
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        let shown = without_secrets(url);
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(OpenError::Config(format!("cannot read the store URL {shown:?}: {EXPECTED}")));
        };
        let (credentials, location) = rest.rsplit_once('@').unwrap_or(("", rest));
        let parts = Parts { shown, credentials, location };
        let topology = match scheme {
            "redis" | "rediss" | "valkey" | "valkeys" => parts
                .connection(scheme, location)
                .map(|server| Topology::OneMaster(Master::At(Box::new(server)))),
            "redis+sentinel" => parts.sentinel("redis"),
            "rediss+sentinel" => parts.sentinel("rediss"),
            "redis+cluster" => parts.cluster("redis"),
            "rediss+cluster" => parts.cluster("rediss"),
            _ => Err(parts.nonsense(EXPECTED)),
        }?;
        Ok(Self { shown: parts.shown, topology })
    }

    pub(super) fn is_tls(&self) -> bool {
        self.shown.starts_with("rediss") || self.shown.starts_with("valkeys")
    }
}

/// A URL, cut at its joints. Only `shown` may appear in a message.
struct Parts<'a> {
    shown: String,
    credentials: &'a str,
    location: &'a str,
}

impl Parts<'_> {
    fn nonsense(&self, why: &str) -> OpenError {
        OpenError::Config(format!("cannot read the store URL {:?}: {why}", self.shown))
    }

    /// One `host:port[/db]` as the client library wants it, with the URL's credentials.
    fn connection(&self, scheme: &str, location: &str) -> Result<ConnectionInfo, OpenError> {
        let at = if self.credentials.is_empty() { "" } else { "@" };
        if location.is_empty() || location.starts_with([':', '/']) {
            return Err(self.nonsense("a host is missing"));
        }
        format!("{scheme}://{}{at}{location}", self.credentials)
            .as_str()
            .into_connection_info()
            .map_err(|_| self.nonsense("it holds something that is not an address"))
    }

    fn cluster(&self, scheme: &str) -> Result<Topology, OpenError> {
        let hosts = self.location.trim_end_matches('/');
        let nodes = hosts.split(',').map(|host| self.connection(scheme, host)).collect::<Result<_, _>>()?;
        Ok(Topology::Cluster { nodes })
    }

    fn sentinel(&self, scheme: &str) -> Result<Topology, OpenError> {
        let mut path = self.location.splitn(3, '/');
        let (hosts, name, db) = (path.next().unwrap_or(""), path.next().unwrap_or(""), path.next());
        if name.is_empty() {
            return Err(self.nonsense("the name of the master is missing; write …host:port/master-name"));
        }
        // The credentials are those of the master; sentinels are asked without.
        let bare = Parts { shown: self.shown.clone(), credentials: "", location: self.location };
        let sentinels: Vec<_> =
            hosts.split(',').map(|host| bare.connection(scheme, host)).collect::<Result<_, _>>()?;
        // The host is only a place for scheme, credentials and database: the sentinels say where the master is.
        let access = Box::new(self.connection(scheme, &format!("master/{}", db.unwrap_or("")))?);
        Ok(Topology::OneMaster(Master::KnownToSentinels { sentinels, name: name.to_owned(), access }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_has_its_scheme() {
        let parse = |url| RedisUrl::parse(url).unwrap().topology;
        assert!(matches!(parse("redis://127.0.0.1:6379/2"), Topology::OneMaster(Master::At(_))));
        assert!(matches!(parse("rediss://user:pass@example.org"), Topology::OneMaster(Master::At(_))));
        let Topology::Cluster { nodes } = parse("redis+cluster://a:1,b:2,c:3") else {
            panic!("not a cluster")
        };
        assert_eq!(nodes.len(), 3);
        let Topology::OneMaster(Master::KnownToSentinels { sentinels, name, access }) =
            parse("redis+sentinel://me:secret@a:1,b:2/shop/3")
        else {
            panic!("not a sentinel")
        };
        assert_eq!((sentinels.len(), name.as_str()), (2, "shop"));
        assert_eq!((access.redis_settings().username(), access.redis_settings().db()), (Some("me"), 3));
        assert_eq!(sentinels[0].redis_settings().username(), None);
    }

    #[test]
    fn nonsense_is_refused_with_the_remedy_and_without_the_password() {
        for url in [
            "",
            "redis",
            "http://x",
            "redis://",
            "redis+cluster://",
            "redis+cluster://a:1,,b:2",
            "redis://a:port",
        ] {
            let why = RedisUrl::parse(url).expect_err(url).to_string();
            assert!(why.starts_with("cannot read the store URL"), "{why}");
        }
        let why = RedisUrl::parse("redis+sentinel://me:secret@a:1").unwrap_err().to_string();
        assert!(why.contains("write …host:port/master-name"), "{why}");
        for url in [
            "redis+sentinel://me:secret@a:1",
            "me:secret@host:6379",
            "http://me:secret@host",
            "redis+unix:///s?pass=secret",
            "redis://me:secret@host:port",
            "redis+cluster://me:secret@a:1,:2",
        ] {
            let why = RedisUrl::parse(url).expect_err(url).to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
