//! What must hold for every agent in the registry.

use std::collections::HashSet;

use super::{agent_named, all_agents};

#[test]
fn names_are_unique() {
    let mut names = HashSet::new();
    let mut display_names = HashSet::new();
    let mut run_names = HashSet::new();
    for agent in all_agents() {
        assert!(names.insert(agent.name()), "{}", agent.name());
        assert!(display_names.insert(agent.display_name), "{}", agent.display_name);
        if let Some(launch) = &agent.launch {
            assert!(run_names.insert(launch.name), "{}", launch.name);
            assert!(!launch.command.is_empty(), "{}", launch.name);
        }
        assert!(std::ptr::eq(agent_named(agent.name()).unwrap().reader, agent.reader));
    }
}

/// The order in which readers are tried decides who gets a file that two of them accept.
#[test]
fn readers_are_tried_in_this_order() {
    let names: Vec<_> = all_agents().map(|agent| agent.name()).take(3).collect();
    assert_eq!(names, ["claude-code", "acp", "codex"]);
    let names: Vec<_> = all_agents().map(|agent| agent.name()).collect();
    let position = |name| names.iter().position(|known| *known == name).unwrap();
    for lenient in ["api-log", "litellm", "vercel", "atif", "swe-agent", "inspect", "otel"] {
        assert!(position("aider") < position(lenient), "{lenient}");
    }
}
