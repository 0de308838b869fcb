//! The servers that requests are forwarded to. Each has a name, and only the configuration sets its address.

use hyper::Uri;
use steno_agents::protocols::traffic::ApiDialect;

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The name, which is the first segment of paths that lead to this upstream.
    pub name: String,
    /// Scheme and authority, without a path.
    pub origin: String,
    /// The prefix of all request paths.
    pub prefix: String,
}

/// Why a name or address cannot be an upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The address is not a URL with a host.
    #[error("not a URL such as https://api.openai.com: {0}")]
    Address(String),
    /// The name cannot be a path segment.
    #[error("not an upstream name (letters, digits, '.', '_' and '-' only): {0}")]
    Name(String),
}

impl Upstream {
    /// An upstream at an address. The address's path becomes the prefix of all request paths.
    pub fn new(name: &str, address: &str) -> Result<Self, UpstreamError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || !name.bytes().all(fits) {
            return Err(UpstreamError::Name(name.to_owned()));
        }
        let (origin, path) =
            split_address(address).ok_or_else(|| UpstreamError::Address(address.to_owned()))?;
        Ok(Self { name: name.to_owned(), origin, prefix: path })
    }

    /// The URI of a request for `path`.
    fn request_uri(&self, path: &str) -> Option<Uri> {
        // Some clients leave out the `/v1` of Anthropic's paths.
        let version = if self.origin == ANTHROPIC_ORIGIN && path.starts_with("/messages") {
            "/v1"
        } else {
            ""
        };
        // Some clients repeat the prefix themselves.
        let repeats = path.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with('/'));
        let prefix = if repeats { "" } else { &self.prefix };
        format!("{}{prefix}{version}{path}", self.origin).parse().ok()
    }
}

/// Splits an address into origin (scheme and authority, without user and password) and path (without a trailing
/// slash).
pub(crate) fn split_address(address: &str) -> Option<(String, String)> {
    let uri: Uri = address.trim().parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?;
    let authority = uri.authority()?;
    let host = authority.as_str().rsplit('@').next().filter(|_| !authority.host().is_empty())?;
    let path = uri.path().trim_end_matches('/');
    Some((format!("{scheme}://{host}"), path.to_owned()))
}

pub(crate) const OPENAI_ORIGIN: &str = "https://api.openai.com";
pub(crate) const ANTHROPIC_ORIGIN: &str = "https://api.anthropic.com";
pub(crate) const GEMINI_ORIGIN: &str = "https://generativelanguage.googleapis.com";
/// The server of Gemini CLI for users who log in with an account.
pub(crate) const CODE_ASSIST_ORIGIN: &str = "https://cloudcode-pa.googleapis.com";

/// All upstreams, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams {
    list: Vec<Upstream>,
}

impl Default for Upstreams {
    /// The vendors with agents that accept another base URL.
    fn default() -> Self {
        let vendor = |name: &str, origin: &str| Upstream {
            name: name.to_owned(),
            origin: origin.to_owned(),
            prefix: String::new(),
        };
        let list = vec![
            vendor("openai", OPENAI_ORIGIN),
            vendor("anthropic", ANTHROPIC_ORIGIN),
            vendor("gemini", GEMINI_ORIGIN),
            vendor("code-assist", CODE_ASSIST_ORIGIN),
        ];
        Self { list }
    }
}

impl Upstreams {
    /// Adds an upstream, or replaces the one of the same name.
    pub fn set(&mut self, upstream: Upstream) {
        match self.list.iter_mut().find(|known| known.name == upstream.name) {
            Some(known) => *known = upstream,
            None => self.list.push(upstream),
        }
    }

    /// The upstream of this name.
    pub fn named(&self, name: &str) -> Option<&Upstream> {
        self.list.iter().find(|upstream| upstream.name == name)
    }

    /// All upstreams.
    pub fn iter(&self) -> impl Iterator<Item = &Upstream> {
        self.list.iter()
    }

    /// The upstream for a path, and the URI there. The first segment may name the upstream; otherwise the path's API
    /// decides. Nothing else in a request matters.
    pub(crate) fn route_path(&self, path: &str) -> Option<(&Upstream, Uri)> {
        let first = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
        if let Some(upstream) = self.named(first) {
            // Clients that join addresses carelessly send several leading slashes.
            let rest = &path.trim_start_matches('/')[first.len()..];
            let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
            return Some((upstream, upstream.request_uri(&rest)?));
        }
        let path = format!("/{}", path.trim_start_matches('/'));
        let own = provider_name(&path).and_then(|name| self.named(name));
        let upstream = own.or_else(|| self.named(vendor_name(&path)?))?;
        Some((upstream, upstream.request_uri(&path)?))
    }
}

/// The provider with an API of its own at this path. It is an upstream only if the user configured it.
fn provider_name(path: &str) -> Option<&'static str> {
    match ApiDialect::from_path(path) {
        ApiDialect::OllamaChat | ApiDialect::OllamaGenerate => Some("ollama"),
        ApiDialect::Converse => Some("bedrock"),
        ApiDialect::Cohere => Some("cohere"),
        _ => None,
    }
}

/// The vendor of the API with this path.
fn vendor_name(path: &str) -> Option<&'static str> {
    let plain = path.split('?').next().unwrap_or_default();
    match ApiDialect::from_path(path) {
        ApiDialect::Chat | ApiDialect::Responses | ApiDialect::Realtime => Some("openai"),
        ApiDialect::Messages => Some("anthropic"),
        ApiDialect::Generate => Some("gemini"),
        _ if plain.contains("/messages") => Some("anthropic"),
        _ if plain.starts_with("/v1beta") => Some("gemini"),
        _ if plain.starts_with("/v1/") => Some("openai"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(upstreams: &Upstreams, path: &str) -> Option<String> {
        upstreams.route_path(path).map(|(_, uri)| uri.to_string())
    }

    #[test]
    fn paths_are_routed_by_name_or_api() {
        let mut upstreams = Upstreams::default();
        upstreams.set(Upstream::new("local", "http://127.0.0.1:9/llm/").unwrap());
        upstreams.set(Upstream::new("ollama", "http://127.0.0.1:11434").unwrap());
        let cases = [
            ("/openai/v1/models", Some("https://api.openai.com/v1/models")),
            (
                "/local/v1/chat/completions?a=b",
                Some("http://127.0.0.1:9/llm/v1/chat/completions?a=b"),
            ),
            ("/v1/chat/completions", Some("https://api.openai.com/v1/chat/completions")),
            (
                "/v1/messages/count_tokens",
                Some("https://api.anthropic.com/v1/messages/count_tokens"),
            ),
            ("/anthropic/messages", Some("https://api.anthropic.com/v1/messages")),
            (
                "/v1beta/models/g:generateContent",
                Some("https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"),
            ),
            ("/v1/embeddings", Some("https://api.openai.com/v1/embeddings")),
            ("//openai/v1/models", Some("https://api.openai.com/v1/models")),
            ("///openai//v1/models", Some("https://api.openai.com//v1/models")),
            ("//v1/chat/completions", Some("https://api.openai.com/v1/chat/completions")),
            ("//openai", Some("https://api.openai.com/")),
            ("/api/chat", Some("http://127.0.0.1:11434/api/chat")),
            ("/model/m/converse", None),
            ("/", None),
            ("/favicon.ico", None),
        ];
        for (path, uri) in cases {
            assert_eq!(to(&upstreams, path).as_deref(), uri, "{path}");
        }
    }

    #[test]
    fn a_path_cannot_choose_another_host() {
        let upstreams = Upstreams::default();
        for path in [
            "/openai@evil.example/v1",
            "/openai.evil.example/v1/chat/completions",
            "//evil.example/v1/responses",
            "/openai//evil.example/v1",
            "/openai/../evil",
        ] {
            if let Some((_, uri)) = upstreams.route_path(path) {
                assert!(uri.host().is_some_and(|host| host.ends_with(".com")), "{path} -> {uri}");
            }
        }
    }

    #[test]
    fn addresses_are_checked_and_lose_their_passwords() {
        let upstream = Upstream::new("a", "https://me:secret@host:8443/x/").unwrap();
        assert_eq!(
            (upstream.origin.as_str(), upstream.prefix.as_str()),
            ("https://host:8443", "/x")
        );
        assert!(Upstream::new("a", "ftp://host").is_err());
        assert!(Upstream::new("a", "host").is_err());
        assert!(Upstream::new("a/b", "http://host").is_err());
    }
}
