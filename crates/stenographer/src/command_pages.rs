//! The help pages: groups of commands, and examples for each command.

use clap::Command;

/// What a help page shows beyond the command's arguments.
pub(crate) struct CommandPage {
    pub(crate) name: &'static str,
    /// Command lines that work as they are, once the names in them exist.
    pub(crate) examples: [&'static str; 2],
}

/// Commands that serve one purpose.
pub(crate) struct CommandGroup {
    pub(crate) title: &'static str,
    pub(crate) pages: &'static [CommandPage],
}

const fn page(name: &'static str, examples: [&'static str; 2]) -> CommandPage {
    CommandPage { name, examples }
}

/// All visible commands, in the order of `steno --help`.
pub(crate) const COMMAND_GROUPS: &[CommandGroup] = &[
    CommandGroup { title: "Capture", pages: CAPTURE_PAGES },
    CommandGroup { title: "Find and read", pages: READING_PAGES },
    CommandGroup { title: "Share", pages: SHARING_PAGES },
    CommandGroup { title: "Threads", pages: THREAD_PAGES },
    CommandGroup { title: "The store", pages: STORE_PAGES },
];

const CAPTURE_PAGES: &[CommandPage] = &[
    page("sync", ["steno sync", "steno sync --agent codex --dry-run"]),
    page("watch", ["steno watch", "steno watch --agent claude-code --json"]),
    page("hooks", ["steno hooks install", "steno hooks status --json"]),
    page("run", ["steno run 'Fix the failing test'", "steno run --agent rehearsal hello"]),
    page("exec", ["steno exec python agent.py", "steno exec --proxy -- codex exec 'Say hello'"]),
    page(
        "gateway",
        [
            "steno gateway",
            "steno gateway --upstream local=http://127.0.0.1:11434 --session nightly",
        ],
    ),
    page(
        "record",
        ["steno record --agent mybot < events.jsonl", "steno record --session nightly --ack"],
    ),
    page("acp", ["steno acp -- gemini --acp", "steno acp --agent mybot -- ./my-agent"]),
    page("import", ["steno import ~/Downloads/session.jsonl", "steno import logs --json"]),
];

const READING_PAGES: &[CommandPage] = &[
    page("list", ["steno list -n 20", "steno list --project shop --since 7d --json"]),
    page(
        "search",
        ["steno search 'login timeout'", "steno search panic -test --since 7d --role tool"],
    ),
    page("show", ["steno show latest", "steno show latest --follow"]),
    page("blame", ["steno blame src/main.rs:42", "steno blame src/main.rs --json"]),
    page("log", ["steno log src/main.rs", "steno log src/main.rs --json"]),
    page("serve", ["steno serve --open", "steno serve --port 8080 --read-only"]),
    page("mcp", ["steno mcp install claude-code", "steno mcp --all --no-sync"]),
    page("replay", ["steno replay latest --speed 4", "steno replay latest --as-api --strict"]),
    page("resume", ["steno resume latest", "steno resume latest --in codex --print"]),
    page("handoff", ["steno handoff latest", "steno handoff latest -o handoff.md"]),
    page("cost", ["steno cost --by model --since 30d", "steno cost --by project --svg cost.svg"]),
    page("stats", ["steno stats --since 30d", "steno stats --agent codex --json"]),
    page("diff", ["steno diff latest ./session.jsonl", "steno diff latest ./session.jsonl --json"]),
    page(
        "annotate",
        ["steno annotate latest 'The root cause #bug'", "steno annotate --tag bug --json"],
    ),
    page("inspect", ["steno inspect session.jsonl", "steno inspect ~/.claude/projects --total"]),
    page("statusline", ["steno statusline < status.json", "steno statusline --quiet"]),
];

const SHARING_PAGES: &[CommandPage] = &[
    page(
        "export",
        ["steno export latest --format html -o session.html", "steno export --site pages"],
    ),
    page(
        "convert",
        [
            "steno convert session.jsonl --to md",
            "steno convert session.jsonl --to atif -o session.json",
        ],
    ),
    page(
        "remote",
        ["steno remote add team postgres://ada@db.example.com/steno", "steno remote list --json"],
    ),
    page("push", ["steno push", "steno push team --json"]),
    page("pull", ["steno pull", "steno pull team --json"]),
    page(
        "load",
        [
            "steno load --from team --to clickhouse+http://loader@db.example.com:8123/steno --init",
            "steno load --from team --json",
        ],
    ),
    page("secrets", ["steno secrets", "steno secrets --live-paths --json"]),
];

const THREAD_PAGES: &[CommandPage] = &[
    page("init", ["steno init", "steno init --yes --project ~/code/shop"]),
    page("objective", ["steno objective create 'Ship 1.0'", "steno objective list --json"]),
    page(
        "spawn",
        ["steno spawn 'Write the parser'", "steno spawn 'Test it' --parent latest --inherit"],
    ),
    page("status", ["steno status", "steno status latest --json"]),
    page("context", ["steno context latest", "steno context latest --json"]),
    page("artifacts", ["steno artifacts latest", "steno artifacts latest --json"]),
    page("transcript", ["steno transcript latest", "steno transcript latest latest"]),
    page(
        "inject",
        [
            "steno inject latest 'Keep the old API'",
            "steno inject latest 'No new crates' --type constraint",
        ],
    ),
    page(
        "reference",
        ["steno reference latest design-1", "steno reference latest design-1 --binding live"],
    ),
    page(
        "merge",
        ["steno merge design-1 --into latest", "steno merge a-1 b-2 --into latest --strict"],
    ),
    page(
        "transfer",
        ["steno transfer latest handoff --to human", "steno transfer latest delegate"],
    ),
    page(
        "lifecycle",
        ["steno lifecycle latest done", "steno lifecycle latest suspend --reason lunch"],
    ),
];

const STORE_PAGES: &[CommandPage] = &[
    page("doctor", ["steno doctor", "steno doctor --json"]),
    page("verify", ["steno verify", "steno verify --json"]),
    page("reindex", ["steno reindex", "steno reindex --quiet"]),
    page(
        "forget",
        [
            "steno forget latest --dry-run",
            "steno forget --match 'key-[0-9]+' --reason leaked --yes",
        ],
    ),
    page("prune", ["steno prune --dry-run", "steno prune --yes --json"]),
    page("encrypt", ["steno encrypt --new-identity ~/steno-key.txt", "steno encrypt --passphrase"]),
    page("decrypt", ["steno decrypt", "steno decrypt --json"]),
    page("cat", ["steno cat latest", "steno cat latest --list"]),
    page("restore", ["steno restore latest", "steno restore latest --to /tmp/copy"]),
    page("as", ["steno as devflow transcript list", "steno as chibi -L"]),
    page("completions", ["steno completions bash", "steno completions fish"]),
    page("man", ["steno man", "steno man --dir ~/.local/share/man/man1"]),
];

/// Adds groups and examples to the pages of the whole program.
pub(crate) fn add_help_pages(command: Command) -> Command {
    let command = command.mut_subcommands(|subcommand| match find_page(subcommand.get_name()) {
        Some(page) => {
            let exit_codes = subcommand.get_after_help().map(|text| format!("{text}\n\n"));
            let text = format!("{}{}", exit_codes.unwrap_or_default(), example_text(page));
            subcommand.after_help(text)
        }
        None => subcommand,
    });
    let groups = group_text(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n\x1b[1;4mOptions:\x1b[0m\n{{options}}{{after-help}}"
    ))
}

/// Returns the page of a command.
pub(crate) fn find_page(name: &str) -> Option<&'static CommandPage> {
    COMMAND_GROUPS.iter().flat_map(|group| group.pages).find(|page| page.name == name)
}

fn example_text(page: &CommandPage) -> String {
    let lines = page.examples.map(|example| format!("\n  {example}"));
    format!("\x1b[1;4mExamples:\x1b[0m{}", lines.concat())
}

/// Lists the commands by group, one line each.
fn group_text(command: &Command) -> String {
    let mut text = String::new();
    for group in COMMAND_GROUPS {
        text.push_str(&format!("\n\x1b[1;4m{}:\x1b[0m\n", group.title));
        for page in group.pages {
            let about = command.find_subcommand(page.name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  \x1b[1m{:11}\x1b[0m  {about}\n", page.name));
        }
    }
    text
}
