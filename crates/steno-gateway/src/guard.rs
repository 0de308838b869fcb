//! Refuses requests from web pages of other hosts. Programs on this machine may use the gateway.
//!
//! Browsers send the page's `Origin` with cross-origin requests. DNS rebinding, where a foreign name resolves to
//! loopback, shows in the `Host` header.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::{HOST, ORIGIN};

/// Checks the headers of requests to one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginGuard {
    listen: SocketAddr,
}

impl OriginGuard {
    pub(crate) fn new(listen: SocketAddr) -> Self {
        Self { listen }
    }

    /// Why a request is refused; `None` if it is accepted.
    pub(crate) fn refusal_reason(&self, headers: &HeaderMap) -> Option<&'static str> {
        let text =
            |value: &hyper::header::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let hosts: Vec<_> = headers.get_all(HOST).iter().map(text).collect();
        if hosts.len() != 1 || !self.is_own_host(&hosts[0]) {
            return Some("the Host header does not name this machine");
        }
        let mut origins = headers.get_all(ORIGIN).iter().map(text);
        if origins.any(|origin| !is_local_origin(&origin)) {
            return Some("pages of other hosts may not use this gateway");
        }
        let site = headers.get("sec-fetch-site").map(text);
        (site.as_deref() == Some("cross-site"))
            .then_some("pages of other hosts may not use this gateway")
    }

    fn is_own_host(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else { return false };
        match name.parse::<IpAddr>() {
            _ if name.eq_ignore_ascii_case("localhost") => true,
            Ok(address) if address.is_loopback() => true,
            // A gateway for other machines accepts any IP address, but no names: anybody can point a name at it.
            Ok(_) => !self.listen.ip().is_loopback(),
            Err(_) => false,
        }
    }
}

fn is_local_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
    rest.and_then(host_name).is_some_and(|name| {
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host_name(host: &str) -> Option<&str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (name, port) = rest.split_once(']')?;
        return (port.is_empty() || is_port(port.strip_prefix(':')?)).then_some(name);
    }
    match host.split_once(':') {
        Some((name, port)) => is_port(port).then_some(name),
        None => Some(host),
    }
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str, headers: &[(&'static str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            (hyper::header::HeaderName::from_static(name), value.parse().unwrap())
        });
        OriginGuard::new(listen.parse().unwrap()).refusal_reason(&headers.collect()).is_some()
    }

    #[test]
    fn only_own_hosts_are_accepted() {
        for host in ["127.0.0.1:4180", "localhost:4180", "LOCALHOST", "[::1]:4180", "127.0.0.1"] {
            assert!(!refused("127.0.0.1:4180", &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:4180",
            "localhost.evil.example",
            "10.0.0.1:4180",
            "user@127.0.0.1",
            "127.0.0.1:4180:1",
            "",
        ] {
            assert!(refused("127.0.0.1:4180", &[("host", host)]), "{host}");
        }
        assert!(refused("127.0.0.1:4180", &[]));
        assert!(!refused("0.0.0.0:4180", &[("host", "10.0.0.1:4180")]));
        assert!(refused("0.0.0.0:4180", &[("host", "evil.example:4180")]));
    }

    #[test]
    fn pages_of_other_hosts_are_refused() {
        let with =
            |name, value| refused("127.0.0.1:4180", &[("host", "127.0.0.1:4180"), (name, value)]);
        for origin in [
            "https://evil.example",
            "null",
            "http://127.0.0.1.evil.example",
            "file://",
            "http://localhost@evil.example",
        ] {
            assert!(with("origin", origin), "{origin}");
        }
        for origin in ["http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:5173"] {
            assert!(!with("origin", origin), "{origin}");
        }
        assert!(with("sec-fetch-site", "cross-site"));
        assert!(!with("sec-fetch-site", "same-origin"));
    }
}
