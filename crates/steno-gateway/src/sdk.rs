//! The variables by which SDKs are told where their API is.
//!
//! Only the origin of an address is replaced: what stands behind it, such as `/v1`, is left to the client.

use crate::upstream::{ANTHROPIC, CODE_ASSIST, GEMINI, OPENAI, Upstream, Upstreams, split};

/// A variable, the upstream that it leads to, and the address that it stands for where it is not set.
struct Variable {
    name: &'static str,
    upstream: &'static str,
    default: Option<(&'static str, &'static str)>,
}

const fn set(
    name: &'static str,
    upstream: &'static str,
    origin: &'static str,
    path: &'static str,
) -> Variable {
    Variable { name, upstream, default: Some((origin, path)) }
}

/// One whose address only its user knows.
const fn known(name: &'static str, upstream: &'static str) -> Variable {
    Variable { name, upstream, default: None }
}

const VARIABLES: [Variable; 33] = [
    set("OPENAI_BASE_URL", "openai", OPENAI, "/v1"),
    set("OPENAI_API_BASE", "openai", OPENAI, "/v1"),
    set("ANTHROPIC_BASE_URL", "anthropic", ANTHROPIC, ""),
    set("ANTHROPIC_API_BASE", "anthropic", ANTHROPIC, ""),
    set("GOOGLE_GEMINI_BASE_URL", "gemini", GEMINI, ""),
    set("GEMINI_API_BASE", "gemini", GEMINI, "/v1beta"),
    set("CODE_ASSIST_ENDPOINT", "code-assist", CODE_ASSIST, ""),
    known("GOOGLE_VERTEX_BASE_URL", "vertex"),
    known("ANTHROPIC_VERTEX_BASE_URL", "vertex"),
    known("CODEX_OSS_BASE_URL", "ollama"),
    known("AZURE_OPENAI_ENDPOINT", "azure"),
    known("AZURE_OPENAI_BASE_URL", "azure"),
    known("AZURE_API_BASE", "azure"),
    known("LITELLM_PROXY_API_BASE", "litellm"),
    known("LITELLM_BASE_URL", "litellm"),
    known("OPENAI_LIKE_API_BASE", "compatible"),
    known("HOSTED_VLLM_API_BASE", "vllm"),
    known("OLLAMA_HOST", "ollama"),
    known("OLLAMA_API_BASE", "ollama"),
    known("OLLAMA_BASE_URL", "ollama"),
    known("OPENROUTER_API_BASE", "openrouter"),
    known("OPENROUTER_BASE_URL", "openrouter"),
    known("GROQ_API_BASE", "groq"),
    known("GROQ_BASE_URL", "groq"),
    known("MISTRAL_API_BASE", "mistral"),
    known("CO_API_URL", "cohere"),
    // Keys sign the address that is asked, so a server that checks them must be asked by a bearer token.
    known("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "bedrock"),
    known("DEEPSEEK_API_BASE", "deepseek"),
    known("DEEPSEEK_BASE_URL", "deepseek"),
    known("XAI_BASE_URL", "xai"),
    known("TOGETHER_BASE_URL", "together"),
    known("CEREBRAS_API_BASE", "cerebras"),
    known("VERCEL_AI_GATEWAY_API_BASE", "vercel"),
];

/// Variables that name hosts to which no proxy leads.
const UNPROXIED: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// What a child is told, and where its requests then go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Upstreams, those of the child's own variables before all others.
    pub upstreams: Upstreams,
    /// Variables whose values begin with the gateway's address; `PATH` is what follows it.
    paths: Vec<(&'static str, String)>,
    unproxied: Vec<(&'static str, String)>,
}

impl Environment {
    /// Takes the addresses that a child would use, as `variable` tells them.
    pub fn new(mut upstreams: Upstreams, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut paths = Vec::new();
        let mut taken: Vec<Upstream> = Vec::new();
        for known in VARIABLES {
            // Ollama's has no scheme as a rule.
            let stated = variable(known.name).and_then(|address| {
                split(&address).or_else(|| split(&format!("http://{address}")))
            });
            let path = match (stated, known.default) {
                (Some((origin, path)), _) => {
                    let upstream = place(&mut taken, known.upstream, origin);
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
        taken.into_iter().for_each(|upstream| upstreams.set(upstream));
        let unproxied = UNPROXIED.map(|name| (name, unproxied(variable(name))));
        Self { upstreams, paths, unproxied: unproxied.into() }
    }

    /// Adds the upstream of another address that a child uses, such as `https://chatgpt.com/backend-api/codex`; gives the
    /// path at the gateway that leads there. None if it is no such address.
    pub fn route_to(&mut self, name: &str, address: &str) -> Option<String> {
        let (origin, path) = split(address)?;
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

    /// The path that leads to a vendor's server, or to the one that the user has configured by this name.
    pub fn route_to_vendor(&mut self, name: &str, address: &str) -> Option<String> {
        let Some(upstream) = self.upstreams.named(name) else {
            return self.route_to(name, address);
        };
        let (_, path) = split(address)?;
        // A configured address says itself what stands in front.
        let is_whole = !upstream.prefix.is_empty();
        Some(format!("/{name}{}", if is_whole { "" } else { &path }))
    }

    /// The variables for a child of a gateway at `address`, such as `http://127.0.0.1:4180`.
    pub fn variables(&self, address: &str) -> Vec<(&'static str, String)> {
        let paths = self.paths.iter().map(|(name, path)| (*name, format!("{address}{path}")));
        paths.chain(self.unproxied.iter().cloned()).collect()
    }
}

/// The name for an origin: the vendor's, with a number where its variables have several.
fn place(taken: &mut Vec<Upstream>, name: &str, origin: String) -> String {
    let is_of = |upstream: &&Upstream| {
        let rest = upstream.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let count = taken.iter().filter(is_of).count();
    if let Some(known) = taken.iter().filter(is_of).find(|upstream| upstream.origin == origin) {
        return known.name.clone();
    }
    let name = if count == 0 { name.to_owned() } else { format!("{name}-{}", count + 1) };
    taken.push(Upstream { name: name.clone(), origin, prefix: String::new() });
    name
}

fn unproxied(stated: Option<String>) -> String {
    let stated = stated.filter(|hosts| !hosts.trim().is_empty());
    let own = "127.0.0.1,localhost".to_owned();
    stated.map_or(own.clone(), |hosts| format!("{hosts},{own}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_its_own_server() {
        let mut environment = Environment::new(Upstreams::default(), |_| None);
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
        let environment = Environment::new(Upstreams::default(), |name| {
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
