//! The hosts that a forward proxy records. Connections to all other hosts are copied unread.

use hyper::Uri;

use crate::upstream::{Upstream, Upstreams};

/// Hosts of model APIs, and the names of their upstreams. `*` matches any text.
const MODEL_HOSTS: [(&str, &str); 50] = [
    ("api.openai.com", "openai"),
    ("chatgpt.com", "chatgpt"),
    ("*.openai.azure.com", "azure"),
    ("*.cognitiveservices.azure.com", "azure"),
    ("*.services.ai.azure.com", "azure"),
    ("models.inference.ai.azure.com", "azure"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("cloudcode-pa.googleapis.com", "code-assist"),
    ("aiplatform.googleapis.com", "vertex"),
    ("*-aiplatform.googleapis.com", "vertex"),
    ("bedrock-runtime.*", "bedrock"),
    ("api.githubcopilot.com", "copilot"),
    ("*.githubcopilot.com", "copilot"),
    ("models.github.ai", "github-models"),
    ("openrouter.ai", "openrouter"),
    ("opencode.ai", "opencode"),
    ("ai-gateway.vercel.sh", "vercel"),
    ("api.mistral.ai", "mistral"),
    ("codestral.mistral.ai", "mistral"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.groq.com", "groq"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("api.fireworks.ai", "fireworks"),
    ("api.cerebras.ai", "cerebras"),
    ("api.sambanova.ai", "sambanova"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    ("api.perplexity.ai", "perplexity"),
    ("api.ai21.com", "ai21"),
    ("api.deepinfra.com", "deepinfra"),
    ("api.novita.ai", "novita"),
    ("api.hyperbolic.xyz", "hyperbolic"),
    ("api.studio.nebius.com", "nebius"),
    ("inference.baseten.co", "baseten"),
    ("integrate.api.nvidia.com", "nvidia"),
    ("router.huggingface.co", "huggingface"),
    ("api.replicate.com", "replicate"),
    ("ollama.com", "ollama-cloud"),
    ("dashscope.aliyuncs.com", "dashscope"),
    ("dashscope-intl.aliyuncs.com", "dashscope"),
    ("portal.qwen.ai", "qwen"),
    ("api.moonshot.ai", "moonshot"),
    ("api.moonshot.cn", "moonshot"),
    ("api.z.ai", "zai"),
    ("open.bigmodel.cn", "zai"),
    ("api.minimax.io", "minimax"),
    ("api.minimaxi.com", "minimax"),
];

/// Hosts that serve more than their API, and the path prefix of that API.
const API_PATHS: [(&str, &str); 4] = [
    ("chatgpt.com", "/backend-api/codex/"),
    ("opencode.ai", "/zen/"),
    ("openrouter.ai", "/api/"),
    ("ollama.com", "/api/"),
];

/// The hosts to record.
#[derive(Clone, Debug, Default)]
pub struct RecordedHosts {
    /// The configured upstreams, each at its own port only.
    upstreams: Vec<Upstream>,
    /// Hosts that the user adds: `host`, `host:port` or `*.domain`.
    added_hosts: Vec<String>,
}

impl RecordedHosts {
    /// Records the hosts of model APIs, of `upstreams`, and those in `added_hosts`.
    pub fn new(upstreams: &Upstreams, added_hosts: Vec<String>) -> Self {
        Self { upstreams: upstreams.iter().cloned().collect(), added_hosts }
    }

    /// The upstream of a recorded server; `None` if the host is not recorded. `origin` is scheme and authority, such
    /// as `https://api.openai.com`.
    pub(crate) fn find_upstream(&self, origin: &str) -> Option<Upstream> {
        let uri: Uri = origin.parse().ok()?;
        let (host, port) = (uri.host()?.to_ascii_lowercase(), port_or_default(&uri)?);
        let at_same_port = |upstream: &&Upstream| {
            let own: Option<Uri> = upstream.origin.parse().ok();
            own.is_some_and(|own| {
                own.host().is_some_and(|own| own.eq_ignore_ascii_case(&host))
                    && port_or_default(&own) == Some(port)
            })
        };
        let configured = self.upstreams.iter().find(at_same_port).map(|known| known.name.clone());
        let known = || {
            let found = MODEL_HOSTS.iter().find(|(pattern, _)| matches_pattern(pattern, &host));
            found.map(|(_, name)| (*name).to_owned())
        };
        let added = || {
            let is_added = self.added_hosts.iter().any(|pattern| match pattern.rsplit_once(':') {
                Some((pattern, pattern_port)) if pattern_port.parse() == Ok(port) => {
                    matches_pattern(pattern, &host)
                }
                _ => matches_pattern(pattern, &host),
            });
            is_added.then(|| host.clone())
        };
        let name = configured.or_else(known).or_else(added)?;
        Some(Upstream { name, origin: origin.to_owned(), prefix: String::new() })
    }

    /// Whether a path of a recorded host belongs to its API.
    pub(crate) fn is_api_path(&self, upstream: &Upstream, path: &str) -> bool {
        let host = upstream.origin.parse::<Uri>().ok();
        let host = host.as_ref().and_then(Uri::host).unwrap_or_default();
        let found = API_PATHS.iter().find(|(known, _)| known.eq_ignore_ascii_case(host));
        let is_added = self.added_hosts.iter().any(|pattern| matches_pattern(pattern, host));
        is_added || found.is_none_or(|(_, beginning)| path.starts_with(beginning))
    }

    /// Whether an entry of `NO_PROXY` would make a program bypass the proxy for a recorded host.
    pub fn is_bypassed_by(&self, entry: &str) -> bool {
        let entry = entry.trim().trim_start_matches("*.").trim_start_matches('.');
        let bare = entry.rsplit_once(':').map_or(entry, |(host, _)| host);
        let names = self
            .upstreams
            .iter()
            .filter_map(|upstream| upstream.origin.parse::<Uri>().ok()?.host().map(str::to_owned));
        let names = names.chain(self.added_hosts.iter().cloned());
        let known = MODEL_HOSTS.iter().map(|(host, _)| (*host).to_owned());
        names
            .chain(known)
            .any(|host| entry == "*" || host == bare || host.ends_with(&format!(".{bare}")))
    }
}

fn port_or_default(uri: &Uri) -> Option<u16> {
    let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    Some(uri.port_u16().unwrap_or(default))
}

/// Whether a host matches a pattern, in which `*` matches any text.
fn matches_pattern(pattern: &str, host: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(host),
        Some((start, end)) => {
            let room = host.len() > start.len() + end.len();
            room && host.starts_with(start) && host.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(hosts: &RecordedHosts, origin: &str) -> Option<String> {
        hosts.find_upstream(origin).map(|upstream| upstream.name)
    }

    #[test]
    fn only_model_hosts_are_recorded() {
        let mut upstreams = Upstreams::default();
        upstreams.set(Upstream::new("local", "http://127.0.0.1:11434/v1").unwrap());
        let hosts = RecordedHosts::new(
            &upstreams,
            vec!["llm.example".into(), "*.corp.example".into(), "one.example:8443".into()],
        );
        let cases = [
            ("https://api.openai.com", Some("openai")),
            ("https://API.OpenAI.com:443", Some("openai")),
            ("https://me.openai.azure.com", Some("azure")),
            ("https://us-east1-aiplatform.googleapis.com", Some("vertex")),
            ("https://bedrock-runtime.us-east-1.amazonaws.com", Some("bedrock")),
            ("https://llm.example", Some("llm.example")),
            ("https://a.corp.example", Some("a.corp.example")),
            ("https://one.example:8443", Some("one.example")),
            ("http://127.0.0.1:11434", Some("local")),
            ("http://127.0.0.1:11435", None),
            ("https://one.example", None),
            ("https://openai.azure.com.evil.example", None),
            ("https://notapi.openai.com.evil.example", None),
            ("https://github.com", None),
            ("https://corp.example", None),
        ];
        for (origin, expected) in cases {
            assert_eq!(name(&hosts, origin).as_deref(), expected, "{origin}");
        }
    }

    #[test]
    fn only_api_paths_of_shared_hosts_are_recorded() {
        let hosts = RecordedHosts::new(&Upstreams::default(), Vec::new());
        let is_api = |origin: &str, path: &str| {
            hosts.is_api_path(&hosts.find_upstream(origin).unwrap(), path)
        };
        assert!(is_api("https://chatgpt.com", "/backend-api/codex/responses"));
        assert!(!is_api("https://chatgpt.com", "/backend-api/plugins/featured"));
        assert!(is_api("https://api.openai.com", "/v1/models"));
    }

    #[test]
    fn entries_that_bypass_the_proxy_are_detected() {
        let mut upstreams = Upstreams::default();
        upstreams.set(Upstream::new("local", "http://127.0.0.1:11434").unwrap());
        let hosts = RecordedHosts::new(&upstreams, Vec::new());
        for entry in ["127.0.0.1", "*", ".openai.com", "api.openai.com", "*.openai.com"] {
            assert!(hosts.is_bypassed_by(entry), "{entry}");
        }
        for entry in ["localhost", "corp.example", "example.com"] {
            assert!(!hosts.is_bypassed_by(entry), "{entry}");
        }
    }
}
