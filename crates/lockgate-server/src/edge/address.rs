//! Who asks: the peer, or whom a trusted proxy says it asks for.
//!
//! `X-Forwarded-For` is written by everybody on the way, the client included, each to the right of the one before. So it is read
//! from the right, and only as long as trusted proxies have written it: what stands left of the first untrusted address may be
//! anything, and is not believed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// A range of addresses, as in `10.0.0.0/8`, `fd00::/8` or `192.0.2.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    prefix: u8,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        // A shift by all 128 bits is none; then the network is everybody's.
        let mask = u128::MAX.checked_shl(u32::from(128 - self.prefix)).unwrap_or(0);
        (mapped(address).to_bits() ^ self.bits) & mask == 0
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const REMEDY: &str =
            "must be an address or a range of addresses, as in 10.0.0.0/8, fd00::/8 or 192.0.2.7";
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| REMEDY)?;
        let width: u8 = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(width), str::parse).map_err(|_| REMEDY)?;
        if prefix > width {
            return Err(REMEDY);
        }
        Ok(Self { bits: mapped(address).to_bits(), prefix: prefix + (128 - width) })
    }
}

/// IPv4 addresses are the part `::ffff:0:0/96` of IPv6, where a socket that listens on both shows them.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// One client, for counting: an IPv4 address, or the 64 bits of IPv6 that one customer of a provider has at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client(u128);

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        let address = mapped(address);
        let own = if address.to_ipv4_mapped().is_some() { 128 } else { 64 };
        Self(address.to_bits() & (u128::MAX << (128 - own)))
    }
}

/// Who asks. Without a connection (a router that is asked directly) it is nobody in particular.
pub(super) fn client(extensions: &Extensions, headers: &HeaderMap, trusted: &[Network]) -> Client {
    address_of(extensions, headers, trusted).unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)).into()
}

/// From where somebody asks, as far as it can be known; `None` without a connection.
pub(crate) fn address_of(
    extensions: &Extensions,
    headers: &HeaderMap,
    trusted: &[Network],
) -> Option<IpAddr> {
    let ConnectInfo(peer) = extensions.get::<ConnectInfo<SocketAddr>>()?;
    Some(behind_proxies(peer.ip(), headers, trusted))
}

fn behind_proxies(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut last_known = peer;
    let lines: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok()).collect();
    for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        if !is_trusted(last_known) {
            break;
        }
        match read_hop(hop.trim()) {
            Some(address) => last_known = address,
            // A trusted proxy wrote something that is no address: it is the last that is known.
            None => break,
        }
    }
    last_known
}

/// Some proxies write the port as well.
fn read_hop(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn found(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        behind_proxies(peer.parse().unwrap(), &headers, &networks(trusted)).to_string()
    }

    #[test]
    fn a_stranger_is_not_believed() {
        assert_eq!(found("203.0.113.9", &["198.51.100.1"], &[]), "203.0.113.9");
        assert_eq!(found("203.0.113.9", &["198.51.100.1"], &["10.0.0.0/8"]), "203.0.113.9");
    }

    #[test]
    fn the_right_most_untrusted_entry_is_the_client() {
        let trusted = &["10.0.0.0/8", "192.0.2.7"];
        assert_eq!(found("10.1.2.3", &["198.51.100.1"], trusted), "198.51.100.1");
        assert_eq!(found("10.1.2.3", &["6.6.6.6, 198.51.100.1"], trusted), "198.51.100.1");
        assert_eq!(
            found("10.1.2.3", &["6.6.6.6, 198.51.100.1, 10.9.9.9,192.0.2.7"], trusted),
            "198.51.100.1"
        );
        assert_eq!(found("10.1.2.3", &["6.6.6.6", "198.51.100.1, 10.9.9.9"], trusted), "198.51.100.1");
        assert_eq!(found("10.1.2.3", &["6.6.6.6, unknown"], trusted), "10.1.2.3");
        assert_eq!(found("10.1.2.3", &["10.0.0.1"], trusted), "10.0.0.1", "all trusted: the left-most");
        assert_eq!(found("10.1.2.3", &[], trusted), "10.1.2.3");
        assert_eq!(found("::ffff:10.1.2.3", &["198.51.100.1:4711"], trusted), "198.51.100.1");
        assert_eq!(found("10.1.2.3", &["[2001:db8::1]:443"], trusted), "2001:db8::1");
    }

    #[test]
    fn ranges_are_read_or_refused() {
        let [all, some] = ["0.0.0.0/0", "10.0.0.0/8"].map(|text| text.parse::<Network>().unwrap());
        let [four, six] = ["203.0.113.9", "2001:db8::1"].map(|text| text.parse::<IpAddr>().unwrap());
        assert!(all.contains(four) && !all.contains(six) && !some.contains(four));
        assert!("::/0".parse::<Network>().unwrap().contains(six));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0/8", "proxy", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_customer_with_many_ipv6_addresses_is_one_client() {
        let client = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(client("2001:db8:1:2::1"), client("2001:db8:1:2:ffff::9"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("203.0.113.1"), client("203.0.113.2"));
        assert_eq!(client("203.0.113.1"), client("::ffff:203.0.113.1"));
    }
}
