//! Which agent the sessions of a connection belong to. A known agent gets the name under which its own files are kept.

use std::ffi::OsString;
use std::path::Path;

use steno_agents::agent::Agent;
use steno_agents::protocols::acp;
use steno_agents::registry;
use steno_vault::AgentName;

/// The agent that reports the name `reported_name`, or else the one that `command` runs.
pub(super) fn connection_agent(reported_name: Option<&str>, command: &[OsString]) -> AgentName {
    let words = command.iter().take_while(|word| !word.as_encoded_bytes().starts_with(b"--"));
    let words = words.filter_map(|word| Path::new(word).file_name()?.to_str());
    let known = reported_name.into_iter().chain(words).find_map(known_agent);
    let program = || Path::new(&command[0]).file_stem()?.to_str();
    let name = known.or(reported_name).or_else(program).unwrap_or(acp::AGENT_NAME);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(64).collect();
    let fallback = || acp::AGENT_NAME.parse().expect("a plain word");
    name.trim_matches(['.', '-']).to_lowercase().parse().unwrap_or_else(|_| fallback())
}

fn known_agent(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let is_named = |agent: &&Agent| agent.acp_word.is_some_and(|known| word.contains(known));
    registry::all_agents().find(is_named).map(Agent::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_recognized_by_name_or_command() {
        let named = |reported_name, command: &[&str]| {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            connection_agent(reported_name, &command).as_str().to_owned()
        };
        assert_eq!(named(Some("@zed-industries/claude-agent-acp"), &["x"]), "claude-code");
        assert_eq!(named(None, &["npx", "-y", "@google/gemini-cli", "--acp"]), "gemini");
        assert_eq!(named(Some("Eliza ACP"), &["sh"]), "eliza-acp");
        assert_eq!(named(None, &["/usr/bin/my.agent.sh"]), "my.agent");
        assert_eq!(named(Some(".."), &["x"]), "acp");
    }
}
