//! The page of a team: whose sessions it has, and how its readers are known.
//!
//! Whoever has the token of the server sees what the server's own role sees. Everybody else is a member of the team, named
//! by a reverse proxy or by a token of their own, and sees own sessions and those that are for them.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use steno_store::session_owners::{SessionOwners, TeamReader};

/// Finds a member by the name that a proxy or a token states.
pub type FindReader = Arc<dyn Fn(&str) -> Option<TeamReader> + Send + Sync>;

/// A team whose record is served, instead of this machine's own.
#[derive(Clone)]
pub struct TeamPage {
    /// Returns whose sessions the store has now. A session without an owner is shown to nobody but the server's own role.
    pub owners: Arc<dyn Fn() -> Arc<SessionOwners> + Send + Sync>,
    /// Called at each request, to start a pull if one is due.
    pub before_request: Arc<dyn Fn() + Send + Sync>,
    /// Finds a member by name; `None` for a stranger.
    pub find_reader: FindReader,
    /// The proxy that names the members.
    pub proxy: Option<TrustedProxy>,
    /// Tokens of members.
    pub tokens: Vec<MemberToken>,
    /// Names of the page behind the proxy, with a port if it is not the usual one.
    pub public_hosts: Vec<String>,
}

/// A reverse proxy that has checked who asks.
#[derive(Clone)]
pub struct TrustedProxy {
    /// The header with the name of whoever asks.
    pub user_header: HeaderName,
    /// The addresses from which the header is believed.
    pub addresses: Vec<IpAddr>,
    /// A header that only the proxy can send. Without one, the address suffices.
    pub secret: Option<ProxySecret>,
}

/// A header that proves that a request comes from the proxy.
#[derive(Clone)]
pub struct ProxySecret {
    /// Its name.
    pub header: HeaderName,
    /// Its value.
    pub value: String,
}

/// A token of a member.
#[derive(Clone)]
pub struct MemberToken {
    /// The member.
    pub person: String,
    /// The token.
    pub token: String,
}

/// Who reads a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageReader {
    /// Whoever has the token of the server: sees all that the server sees.
    Host,
    /// A member of the team.
    Member(TeamReader),
}

/// Who asks, as the proxy says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProxyUser {
    /// The request does not come from the proxy, or names nobody.
    Unnamed,
    Named(TeamReader),
    /// The proxy names somebody who is no member.
    Stranger,
}

impl TeamPage {
    /// Who asks, as the proxy says. A header from elsewhere is ignored.
    pub(crate) fn find_proxy_user(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> ProxyUser {
        let Some(proxy) = self.proxy.as_ref().filter(|proxy| proxy.has_sent(headers, peer)) else {
            return ProxyUser::Unnamed;
        };
        let mut names = headers.get_all(&proxy.user_header).iter();
        match (names.next(), names.next()) {
            (None, _) => ProxyUser::Unnamed,
            // A proxy that adds its header to one of the client leaves two.
            (Some(_), Some(_)) => ProxyUser::Stranger,
            (Some(name), None) => {
                let reader = name.to_str().ok().and_then(|name| (self.find_reader)(name.trim()));
                reader.map_or(ProxyUser::Stranger, ProxyUser::Named)
            }
        }
    }

    /// The member with a token.
    pub(crate) fn find_token_reader(&self, text: &str) -> Option<TeamReader> {
        let mut tokens = self.tokens.iter();
        let known = tokens.find(|known| has_same_digest(text, &known.token))?;
        (self.find_reader)(&known.person)
    }
}

impl TrustedProxy {
    /// Whether the proxy has sent a request. It must pass every check that is configured.
    fn has_sent(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> bool {
        let has_address = peer.is_some_and(|peer| self.addresses.contains(&peer.to_canonical()));
        let is_from_address = self.addresses.is_empty() || has_address;
        let has_secret = |secret: &ProxySecret| {
            let mut values = headers.get_all(&secret.header).iter();
            let value = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
            values.next().is_none() && has_same_digest(value, &secret.value)
        };
        let has_checks = !self.addresses.is_empty() || self.secret.is_some();
        has_checks && is_from_address && self.secret.as_ref().is_none_or(has_secret)
    }
}

/// Parses the name of a header.
pub fn parse_header_name(text: &str) -> Option<HeaderName> {
    HeaderName::try_from(text).ok()
}

/// Whether two texts are equal. The time of the comparison does not depend on them.
pub(crate) fn has_same_digest(a: &str, b: &str) -> bool {
    Sha256::digest(a.as_bytes()) == Sha256::digest(b.as_bytes())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const USER: HeaderName = HeaderName::from_static("x-forwarded-user");
    const SECRET: HeaderName = HeaderName::from_static("x-proxy-secret");

    fn page(addresses: &[&str], secret: Option<&str>) -> TeamPage {
        let value = |value: &str| ProxySecret { header: SECRET, value: value.to_owned() };
        let reader = |name: &str| TeamReader { person: name.to_owned(), is_teammate: true };
        TeamPage {
            owners: Arc::new(Arc::default),
            before_request: Arc::new(|| ()),
            find_reader: Arc::new(move |name| (name == "bob").then(|| reader(name))),
            proxy: Some(TrustedProxy {
                user_header: USER,
                addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
                secret: secret.map(value),
            }),
            tokens: Vec::new(),
            public_hosts: Vec::new(),
        }
    }

    fn user(page: &TeamPage, peer: &str, fields: &[(HeaderName, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        match page.find_proxy_user(&headers, Some(peer.parse().unwrap())) {
            ProxyUser::Named(reader) => reader.person,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_believed_only_from_the_proxy() {
        let bob = [(USER, "bob")];
        let by_address = page(&["10.0.0.5"], None);
        assert_eq!(user(&by_address, "10.0.0.5", &bob), "bob");
        assert_eq!(user(&by_address, "::ffff:10.0.0.5", &bob), "bob");
        assert_eq!(user(&by_address, "10.0.0.6", &bob), "Unnamed");
        assert_eq!(user(&by_address, "10.0.0.5", &[]), "Unnamed");
        assert_eq!(user(&by_address, "10.0.0.5", &[(USER, "eve")]), "Stranger");
        assert_eq!(user(&by_address, "10.0.0.5", &[(USER, "bob"), (USER, "ada")]), "Stranger");
        let by_secret = page(&[], Some("s3"));
        assert_eq!(user(&by_secret, "10.0.0.6", &[(USER, "bob"), (SECRET, "s3")]), "bob");
        for wrong in [&bob[..], &[(USER, "bob"), (SECRET, "s4")], &[(USER, "bob"), (SECRET, "")]] {
            assert_eq!(user(&by_secret, "10.0.0.6", wrong), "Unnamed");
        }
        let by_both = page(&["10.0.0.5"], Some("s3"));
        assert_eq!(user(&by_both, "10.0.0.5", &bob), "Unnamed");
        assert_eq!(user(&by_both, "10.0.0.6", &[(USER, "bob"), (SECRET, "s3")]), "Unnamed");
        assert_eq!(user(&by_both, "10.0.0.5", &[(USER, "bob"), (SECRET, "s3")]), "bob");
        assert_eq!(user(&page(&[], None), "10.0.0.5", &bob), "Unnamed", "nothing proves it");
    }
}
