//! The lists of agents and export formats in the README, made from the registry.

use std::fmt::Write;
use std::fs;

use steno_agents::agent::Agent;
use steno_agents::agent::user_folders::UserFolders;
use steno_store::format;

use crate::export_format::EXPORT_FORMATS;

const README_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
const BLOCK_START: &str =
    "<!-- agents: made by `STENO_UPDATE=1 cargo test -p stenographer readme_lists` -->\n";
const BLOCK_END: &str = "<!-- /agents -->\n";

/// A table of all agents, then lists of the formats.
fn render_lists() -> String {
    let (agents, formats): (Vec<_>, Vec<_>) =
        format::all_agents().partition(|agent| is_found(agent));
    let mut text = String::from(
        "| agent | `--agent` | resume | hooks | `steno run` |\n| --- | --- | --- | --- | --- |\n",
    );
    for agent in agents {
        let mark = |is_known: bool| if is_known { "yes" } else { "" };
        let run = agent.launch.as_ref().map_or("", |launch| launch.name);
        let (resume, hooks) = (mark(agent.resume.is_some()), mark(agent.hooks.is_some()));
        let (display_name, name) = (agent.display_name, agent.name());
        writeln!(text, "| {display_name} | {name} | {resume} | {hooks} | {run} |").unwrap();
    }
    let read: Vec<_> = formats.iter().map(|format| format.display_name).collect();
    let written: Vec<_> =
        EXPORT_FORMATS.iter().map(|format| format!("`{}`", format.name)).collect();
    writeln!(text, "\nFormats that are read: {}.", read.join(", ")).unwrap();
    writeln!(text, "`steno export --format` writes {}.", written.join(", ")).unwrap();
    text
}

/// Whether sessions are found on a machine, rather than only read where they are named.
fn is_found(agent: &Agent) -> bool {
    let user = UserFolders { home: "/home".as_ref(), variable: &|_| None };
    let projects = ["/project".into()];
    !(agent.locations)(&user).is_empty() || !(agent.project_locations)(&user, &projects).is_empty()
}

#[test]
fn the_readme_has_the_lists_of_the_registry() {
    let readme = fs::read_to_string(README_PATH).unwrap();
    let (before, rest) = readme.split_once(BLOCK_START).expect("the README has the block");
    let (block, after) = rest.split_once(BLOCK_END).expect("the block ends");
    let wanted = render_lists();
    if std::env::var_os("STENO_UPDATE").is_some() {
        fs::write(README_PATH, [before, BLOCK_START, &wanted, BLOCK_END, after].concat()).unwrap();
        return;
    }
    assert_eq!(
        block, wanted,
        "the README's lists differ from the registry; update them with \
         `STENO_UPDATE=1 cargo test -p stenographer readme_lists`"
    );
}
