//! Where requests go: upstreams have names, and only the configuration gives them addresses.

use hyper::Uri;
use steno_core::traffic::Dialect;

/// A server that requests are passed on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, which is the first part of the paths that lead to it.
    pub name: String,
    /// Its scheme and authority, without a path.
    pub origin: String,
    /// What stands in front of the path.
    pub prefix: String,
}

/// An address that cannot be an upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The address is no URL with a host.
    #[error("not an address such as https://api.openai.com: {0}")]
    Address(String),
    /// The name cannot be part of a path.
    #[error("not a name for an upstream (letters, digits, '.', '_' and '-'): {0}")]
    Name(String),
}

impl Upstream {
    /// An upstream of a name at an address, whose path goes in front of all others.
    pub fn new(name: &str, address: &str) -> Result<Self, UpstreamError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || !name.bytes().all(fits) {
            return Err(UpstreamError::Name(name.to_owned()));
        }
        let (origin, path) =
            split(address).ok_or_else(|| UpstreamError::Address(address.to_owned()))?;
        Ok(Self { name: name.to_owned(), origin, prefix: path })
    }

    /// Where a request for `path` goes.
    fn uri(&self, path: &str) -> Option<Uri> {
        // Some clients take an address of Anthropic's without a version to be one with it.
        let version =
            if self.origin == ANTHROPIC && path.starts_with("/messages") { "/v1" } else { "" };
        // Others say themselves what stands in front.
        let repeats = path.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with('/'));
        let prefix = if repeats { "" } else { &self.prefix };
        format!("{}{prefix}{version}{path}", self.origin).parse().ok()
    }
}

/// Scheme and authority of an address, without user and password, and its path without a slash at the end.
pub(crate) fn split(address: &str) -> Option<(String, String)> {
    let uri: Uri = address.trim().parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?;
    let authority = uri.authority()?;
    let host = authority.as_str().rsplit('@').next().filter(|_| !authority.host().is_empty())?;
    let path = uri.path().trim_end_matches('/');
    Some((format!("{scheme}://{host}"), path.to_owned()))
}

pub(crate) const OPENAI: &str = "https://api.openai.com";
pub(crate) const ANTHROPIC: &str = "https://api.anthropic.com";
pub(crate) const GEMINI: &str = "https://generativelanguage.googleapis.com";
/// What Gemini CLI asks when its user has logged in with an account.
pub(crate) const CODE_ASSIST: &str = "https://cloudcode-pa.googleapis.com";

/// All upstreams, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams {
    list: Vec<Upstream>,
}

impl Default for Upstreams {
    /// Those of the vendors whose agents can be told where to ask.
    fn default() -> Self {
        let vendor = |name: &str, origin: &str| Upstream {
            name: name.to_owned(),
            origin: origin.to_owned(),
            prefix: String::new(),
        };
        let list = vec![
            vendor("openai", OPENAI),
            vendor("anthropic", ANTHROPIC),
            vendor("gemini", GEMINI),
            vendor("code-assist", CODE_ASSIST),
        ];
        Self { list }
    }
}

impl Upstreams {
    /// Adds an upstream, or gives one of this name another address.
    pub fn set(&mut self, upstream: Upstream) {
        match self.list.iter_mut().find(|known| known.name == upstream.name) {
            Some(known) => *known = upstream,
            None => self.list.push(upstream),
        }
    }

    /// The upstream of a name.
    pub fn named(&self, name: &str) -> Option<&Upstream> {
        self.list.iter().find(|upstream| upstream.name == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Upstream> {
        self.list.iter()
    }

    /// The upstream that a path leads to, and the address there. The first part of the path may name it; else the API
    /// tells whose it is. Nothing else of a request has a say.
    pub(crate) fn route(&self, path: &str) -> Option<(&Upstream, Uri)> {
        let first = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
        if let Some(upstream) = self.named(first) {
            // Clients that join addresses without care put several slashes in front.
            let rest = &path.trim_start_matches('/')[first.len()..];
            let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
            return Some((upstream, upstream.uri(&rest)?));
        }
        let path = format!("/{}", path.trim_start_matches('/'));
        let own = provider(&path).and_then(|name| self.named(name));
        let upstream = own.or_else(|| self.named(vendor(&path)?))?;
        Some((upstream, upstream.uri(&path)?))
    }
}

/// The provider whose own API a path is, which is only an upstream if it was configured.
fn provider(path: &str) -> Option<&'static str> {
    match Dialect::of(path) {
        Dialect::OllamaChat | Dialect::OllamaGenerate => Some("ollama"),
        Dialect::Converse => Some("bedrock"),
        Dialect::Cohere => Some("cohere"),
        _ => None,
    }
}

/// Which of the three vendors a path belongs to.
fn vendor(path: &str) -> Option<&'static str> {
    let plain = path.split('?').next().unwrap_or_default();
    match Dialect::of(path) {
        Dialect::Chat | Dialect::Responses | Dialect::Realtime => Some("openai"),
        Dialect::Messages => Some("anthropic"),
        Dialect::Generate => Some("gemini"),
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
        upstreams.route(path).map(|(_, uri)| uri.to_string())
    }

    #[test]
    fn a_path_leads_by_name_or_by_api() {
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
    fn a_path_cannot_bring_another_host() {
        let upstreams = Upstreams::default();
        for path in [
            "/openai@evil.example/v1",
            "/openai.evil.example/v1/chat/completions",
            "//evil.example/v1/responses",
            "/openai//evil.example/v1",
            "/openai/../evil",
        ] {
            if let Some((_, uri)) = upstreams.route(path) {
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
