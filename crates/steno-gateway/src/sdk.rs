//! Environment variables that hold the base URL of a model API.
//!
//! Only the origin of a base URL is replaced. The client keeps the path after it, such as `/v1`.

use crate::upstream::{
    ANTHROPIC_ORIGIN, CODE_ASSIST_ORIGIN, GEMINI_ORIGIN, OPENAI_ORIGIN, Upstream, Upstreams,
    split_address,
};

/// A variable, its upstream, and the origin and path that the SDK uses if the variable is not set.
struct SdkVariable {
    name: &'static str,
    upstream: &'static str,
    default: Option<(&'static str, &'static str)>,
}

const fn with_default(
    name: &'static str,
    upstream: &'static str,
    origin: &'static str,
    path: &'static str,
) -> SdkVariable {
    SdkVariable { name, upstream, default: Some((origin, path)) }
}

/// A variable without a default: only the user knows the address.
const fn without_default(name: &'static str, upstream: &'static str) -> SdkVariable {
    SdkVariable { name, upstream, default: None }
}

const SDK_VARIABLES: [SdkVariable; 33] = [
    with_default("OPENAI_BASE_URL", "openai", OPENAI_ORIGIN, "/v1"),
    with_default("OPENAI_API_BASE", "openai", OPENAI_ORIGIN, "/v1"),
    with_default("ANTHROPIC_BASE_URL", "anthropic", ANTHROPIC_ORIGIN, ""),
    with_default("ANTHROPIC_API_BASE", "anthropic", ANTHROPIC_ORIGIN, ""),
    with_default("GOOGLE_GEMINI_BASE_URL", "gemini", GEMINI_ORIGIN, ""),
    with_default("GEMINI_API_BASE", "gemini", GEMINI_ORIGIN, "/v1beta"),
    with_default("CODE_ASSIST_ENDPOINT", "code-assist", CODE_ASSIST_ORIGIN, ""),
    without_default("GOOGLE_VERTEX_BASE_URL", "vertex"),
    without_default("ANTHROPIC_VERTEX_BASE_URL", "vertex"),
    without_default("CODEX_OSS_BASE_URL", "ollama"),
    without_default("AZURE_OPENAI_ENDPOINT", "azure"),
    without_default("AZURE_OPENAI_BASE_URL", "azure"),
    without_default("AZURE_API_BASE", "azure"),
    without_default("LITELLM_PROXY_API_BASE", "litellm"),
    without_default("LITELLM_BASE_URL", "litellm"),
    without_default("OPENAI_LIKE_API_BASE", "compatible"),
    without_default("HOSTED_VLLM_API_BASE", "vllm"),
    without_default("OLLAMA_HOST", "ollama"),
    without_default("OLLAMA_API_BASE", "ollama"),
    without_default("OLLAMA_BASE_URL", "ollama"),
    without_default("OPENROUTER_API_BASE", "openrouter"),
    without_default("OPENROUTER_BASE_URL", "openrouter"),
    without_default("GROQ_API_BASE", "groq"),
    without_default("GROQ_BASE_URL", "groq"),
    without_default("MISTRAL_API_BASE", "mistral"),
    without_default("CO_API_URL", "cohere"),
    // AWS keys sign the address of a request, so a server that checks signatures rejects ours; it needs a bearer
    // token.
    without_default("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "bedrock"),
    without_default("DEEPSEEK_API_BASE", "deepseek"),
    without_default("DEEPSEEK_BASE_URL", "deepseek"),
    without_default("XAI_BASE_URL", "xai"),
    without_default("TOGETHER_BASE_URL", "together"),
    without_default("CEREBRAS_API_BASE", "cerebras"),
    without_default("VERCEL_AI_GATEWAY_API_BASE", "vercel"),
];

/// Variables that list hosts which are reached without a proxy.
const UNPROXIED_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The variables for a child process, and the upstreams that they lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdkEnvironment {
    /// The upstreams; those from the child's own variables replace others of the same name.
    pub upstreams: Upstreams,
    /// Variables, and the path that follows the gateway's address in their values.
    paths: Vec<(&'static str, String)>,
    unproxied: Vec<(&'static str, String)>,
}

impl SdkEnvironment {
    /// Reads the addresses that a child process would use. `variable` returns the value of a variable.
    pub fn new(mut upstreams: Upstreams, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut paths = Vec::new();
        let mut from_variables: Vec<Upstream> = Vec::new();
        for known in SDK_VARIABLES {
            // `OLLAMA_HOST` usually has no scheme.
            let address = variable(known.name).and_then(|address| {
                split_address(&address).or_else(|| split_address(&format!("http://{address}")))
            });
            let path = match (address, known.default) {
                (Some((origin, path)), _) => {
                    let upstream = name_upstream(&mut from_variables, known.upstream, origin);
                    format!("/{upstream}{path}")
                }
                (None, Some((_, path))) => {
                    let configured = upstreams.named(known.upstream);
                    let is_whole = configured.is_some_and(|upstream| !upstream.prefix.is_empty());
                    format!("/{}{}", known.upstream, if is_whole { "" } else { path })
                }
                (None, None) => continue,
            };
            paths.push((known.name, path));
        }
        from_variables.into_iter().for_each(|upstream| upstreams.set(upstream));
        let unproxied = UNPROXIED_VARIABLES.map(|name| (name, add_own_hosts(variable(name))));
        Self { upstreams, paths, unproxied: unproxied.into() }
    }

    /// Adds an upstream for another address that a child process uses, such as
    /// `https://chatgpt.com/backend-api/codex`. Returns the path at the gateway that leads there, or `None` if the
    /// address is not a URL.
    pub fn route_to(&mut self, name: &str, address: &str) -> Option<String> {
        let (origin, path) = split_address(address)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name: String = name.chars().filter(|c| fits(*c)).collect();
        let is_free = |name: &str| self.upstreams.named(name).is_none();
        let known = self.upstreams.iter().find(|upstream| {
            upstream.origin == origin && (upstream.prefix.is_empty() || upstream.prefix == path)
        });
        if let Some(known) = known {
            let rest = if known.prefix.is_empty() { path.as_str() } else { "" };
            return Some(format!("/{}{rest}", known.name));
        }
        let base = if name.is_empty() { "upstream" } else { &name };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let name = std::iter::once(base.to_owned()).chain(numbered).find(|name| is_free(name))?;
        self.upstreams.set(Upstream { name: name.clone(), origin, prefix: String::new() });
        Some(format!("/{name}{path}"))
    }

    /// The path that leads to a vendor's server, or to the upstream of this name if the user configured one.
    pub fn route_to_vendor(&mut self, name: &str, address: &str) -> Option<String> {
        let Some(upstream) = self.upstreams.named(name) else {
            return self.route_to(name, address);
        };
        let (_, path) = split_address(address)?;
        // A configured address already has its path prefix.
        let is_whole = !upstream.prefix.is_empty();
        Some(format!("/{name}{}", if is_whole { "" } else { &path }))
    }

    /// The variables for a child process, given the gateway's address, such as `http://127.0.0.1:4180`.
    pub fn variables(&self, address: &str) -> Vec<(&'static str, String)> {
        let paths = self.paths.iter().map(|(name, path)| (*name, format!("{address}{path}")));
        paths.chain(self.unproxied.iter().cloned()).collect()
    }
}

/// The upstream name for an origin: the vendor's name, with a number if its variables have several origins.
fn name_upstream(from_variables: &mut Vec<Upstream>, name: &str, origin: String) -> String {
    let is_of = |upstream: &&Upstream| {
        let rest = upstream.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let count = from_variables.iter().filter(is_of).count();
    if let Some(known) =
        from_variables.iter().filter(is_of).find(|upstream| upstream.origin == origin)
    {
        return known.name.clone();
    }
    let name = if count == 0 { name.to_owned() } else { format!("{name}-{}", count + 1) };
    from_variables.push(Upstream { name: name.clone(), origin, prefix: String::new() });
    name
}

fn add_own_hosts(listed_hosts: Option<String>) -> String {
    let listed_hosts = listed_hosts.filter(|hosts| !hosts.trim().is_empty());
    let own = "127.0.0.1,localhost".to_owned();
    listed_hosts.map_or(own.clone(), |hosts| format!("{hosts},{own}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_an_upstream_of_its_own() {
        let mut environment = SdkEnvironment::new(Upstreams::default(), |_| None);
        let mut path = |name, address| environment.route_to(name, address);
        assert_eq!(path("x", "https://api.openai.com/v1/").as_deref(), Some("/openai/v1"));
        assert_eq!(path("openai", "http://127.0.0.1:9/v1").as_deref(), Some("/openai-2/v1"));
        assert_eq!(path("my llm", "https://llm.example/a").as_deref(), Some("/myllm/a"));
        assert_eq!(path("other", "https://llm.example/b").as_deref(), Some("/myllm/b"));
        assert_eq!(path("other", "not an address"), None);
        let origin = |name: &str| environment.upstreams.named(name).unwrap().origin.clone();
        assert_eq!(origin("openai"), "https://api.openai.com");
        assert_eq!(origin("openai-2"), "http://127.0.0.1:9");
    }

    #[test]
    fn a_child_keeps_its_own_upstreams() {
        let environment = SdkEnvironment::new(Upstreams::default(), |name| {
            let value = match name {
                "OPENAI_BASE_URL" => "http://proxy.example:4000/llm/v1/",
                "OPENAI_API_BASE" => "https://other.example/v1",
                "OLLAMA_HOST" => "127.0.0.1:11434",
                "AZURE_OPENAI_ENDPOINT" => "https://me.openai.azure.com/",
                "NO_PROXY" => "corp.example",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let variables = environment.variables("http://127.0.0.1:9");
        let value = |name: &str| &variables.iter().find(|(known, _)| *known == name).unwrap().1;
        assert_eq!(value("OPENAI_BASE_URL"), "http://127.0.0.1:9/openai/llm/v1");
        assert_eq!(value("OPENAI_API_BASE"), "http://127.0.0.1:9/openai-2/v1");
        assert_eq!(value("ANTHROPIC_BASE_URL"), "http://127.0.0.1:9/anthropic");
        assert_eq!(value("GOOGLE_GEMINI_BASE_URL"), "http://127.0.0.1:9/gemini");
        assert_eq!(value("AZURE_OPENAI_ENDPOINT"), "http://127.0.0.1:9/azure");
        assert_eq!(value("NO_PROXY"), "corp.example,127.0.0.1,localhost");
        assert!(!variables.iter().any(|(name, _)| *name == "GROQ_API_BASE"));
        let origin = |name: &str| environment.upstreams.named(name).unwrap().origin.clone();
        assert_eq!(origin("openai"), "http://proxy.example:4000");
        assert_eq!(origin("openai-2"), "https://other.example");
        assert_eq!(origin("azure"), "https://me.openai.azure.com");
        assert_eq!(origin("ollama"), "http://127.0.0.1:11434");
        assert_eq!(origin("anthropic"), "https://api.anthropic.com");
    }
}
