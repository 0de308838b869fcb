//! Wrong command lines: each message says what is wrong and how to fix it.

use crate::harness::Home;

/// A command line, what its message says is wrong, and how it says to fix it.
type WrongLine = (&'static str, &'static str, &'static str);

/// Usage errors end with the usage and an example; the fix here is what a message says beyond them.
const WRONG_LINES: &[WrongLine] = &[
    ("lst", "unrecognized subcommand 'lst'", "similar subcommands exist: 'list', 'cost'"),
    ("serach x", "unrecognized subcommand 'serach'", "similar subcommands exist: 'search', "),
    ("list --agent Claude", "no sessions of agent Claude", "did you mean claude-code?"),
    ("cost one two", "only one session can be selected", "give one id"),
    ("cost --sinc 7d", "unexpected argument '--sinc'", "Usage: steno cost"),
    ("cost --check --agent x", "it does not take --agent", "`steno cost` adds up a selection"),
    ("cost --check --since 7d", "it does not take --since", "`steno cost` adds up a selection"),
    ("cost --check one", "it does not take a session", "`steno cost` adds up a selection"),
    ("grep panic", "unrecognized subcommand 'grep'", "subcommand exists: 'search'"),
    ("delete latest", "unrecognized subcommand 'delete'", "subcommand exists: 'forget'"),
    ("help serch", "unrecognized subcommand 'serch'", "'search'"),
    ("help hooks instal", "unrecognized subcommand 'instal'", "'install'"),
    ("--frobnicate", "unexpected argument '--frobnicate'", "Usage: steno [OPTIONS] [COMMAND]"),
    ("list --frob", "unexpected argument '--frob'", "For example: steno list -n 20"),
    ("list extra", "unexpected argument 'extra'", "For example: steno list -n 20"),
    ("list -n", "a value is required for '--limit <N>'", "For example: steno list -n 20"),
    ("list -n x", "invalid value 'x' for '--limit <N>'", "not a whole number, such as 20"),
    ("list -n -3", "invalid value '-3' for '--limit <N>'", "not a whole number, such as 20"),
    ("list --since yesterdayish", "not a time: yesterdayish", "use a date such as 2026-01-05"),
    ("list --until 2026-13-45", "not a time: 2026-13-45", "or 90m, 12h, 7d, 2w, 1mo ago"),
    (
        "list --since 2026-11-01 --until 2026-10-01",
        "--since 2026-11-01 is later than --until 2026-10-01",
        "use an earlier --since",
    ),
    (
        "cost --since today --until yesterday",
        "--since today is later than --until yesterday",
        "use an earlier --since",
    ),
    (
        "list --agent nobody",
        "no sessions of agent nobody",
        "agents with sessions: claude-code, mine",
    ),
    (
        "list --project nowhere",
        "no session has the project nowhere",
        "the projects are: /code/blog",
    ),
    ("list --model gpt-99", "no session has the model gpt-99", "the models are: claude-haiku-4-5"),
    ("list --branch dev", "no session has the branch dev", "the branches are: fix, main"),
    ("list --session nope", "no such session: nope", "run `steno list`"),
    (
        "list --text /x/",
        "--text does not take a regular expression",
        "use words, or `steno search`",
    ),
    (
        "list --text '\"open'",
        "a phrase without its closing quotation mark",
        "\"a phrase\", -not, begin*",
    ),
    ("list --status active", "required arguments were not provided", "--threads"),
    (
        "list --threads --status bogus",
        "invalid value 'bogus'",
        "possible values: active, suspended",
    ),
    (
        "list --threads --agent x",
        "'--threads' cannot be used with '--agent <NAME>'",
        "Usage: steno list",
    ),
    ("list --threads", "no threads in $HOME", "run `steno init`"),
    ("search", "required arguments were not provided", "<QUERY>..."),
    ("search ''", "nothing to search for", "hint: words, \"a phrase\""),
    ("search 'a \"b'", "a phrase without its closing quotation mark", "hint: words, \"a phrase\""),
    ("search 'OR x'", "OR needs a word on each side: OR x", "one OR other"),
    ("search -only", "the query only excludes words", "add at least one to find: -only"),
    ("search '/(/'", "invalid regular expression: unclosed group", "/regex/"),
    ("search x --role boss", "no session has the role boss", "the roles are: user, assistant"),
    ("search x --tool Hammer", "no session has the tool Hammer", "no session has a tool"),
    ("search x --sort speed", "invalid value 'speed'", "possible values: relevance, time"),
    ("search x -C many", "invalid value 'many' for '--context <N>'", "not a whole number"),
    ("search x --limit", "a value is required for '--limit <N>'", "For example: steno search"),
    ("search x --session nope", "no such session: nope", "run `steno list`"),
    (
        "search x --agnet codex",
        "unexpected argument '--agnet'",
        "similar argument exists: '--agent'",
    ),
    ("show", "required arguments were not provided", "<ID>"),
    ("blame", "required arguments were not provided", "For example: steno blame src/main.rs:42"),
    ("blame a.rs:0", "not a line or range of lines: 0", "use FILE:12 or FILE:12-20"),
    ("blame a.rs:3-1", "not a line or range of lines: 3-1", "use FILE:12 or FILE:12-20"),
    ("blame a.rs", "not in a Git repository: $HOME", "run it on a file in a Git repository"),
    ("blame a.rs --format xml", "invalid value 'xml'", "possible values: terminal, agent-trace"),
    ("blame a.rs --json --format agent-trace", "cannot be used with", "Usage: steno blame"),
    ("log", "required arguments were not provided", "For example: steno log src/main.rs"),
    ("log a.rs", "not in a Git repository: $HOME", "run it on a file in a Git repository"),
    ("show --commit HEAD", "not in a Git repository: $HOME", "run it in a Git repository"),
    ("show latest --commit HEAD", "cannot be used with", "Usage: steno show"),
    ("show nope", "no such session or file: nope", "`steno sync` to copy new ones"),
    ("show 1a2b", "ambiguous session id: 1a2b", "one of:\n  1a2b3c4d-0001 (claude-code)"),
    ("show chat-1:99", "no such entry: chat-1:99", "the last entry is 0"),
    (
        "show chat-1 --only boss",
        "no such role: boss",
        "the roles are: system, user, assistant, tool",
    ),
    ("show chat-1 --first x", "invalid value 'x' for '--first <N>'", "not a whole number"),
    (
        "show chat-1 --first 1 --last 1",
        "'--first <N>' cannot be used with '--last <N>'",
        "Usage: steno show",
    ),
    (
        "show chat-1 --style fancy",
        "invalid value 'fancy'",
        "possible values: terminal, weakincentives",
    ),
    ("show chat-1 --summary --style chibi", "this style has no summary", "leave out --summary"),
    (
        "show 2bcd --wire",
        "no recorded traffic in session 2bcd",
        "it comes from the agent's session files only",
    ),
    ("show a b", "unexpected argument 'b'", "For example: steno show latest"),
    ("cost --by hour", "invalid value 'hour'", "possible values: day, week, month"),
    ("cost --mode guess", "invalid value 'guess'", "possible values: auto, calculate, stated"),
    (
        "cost --timezone Mars/Olympus",
        "unknown time zone: Mars/Olympus",
        "such as UTC or Europe/Berlin",
    ),
    ("cost 5f0c", "no such session: 5f0c", "steno list"),
    ("cost 5f0c 9b7e", "only one session", "give one id"),
    ("cost .", "paths need --no-index: .", "leave out the path"),
    (
        "cost --svg no/such/folder.svg",
        "could not write $HOME/no/such/folder.svg",
        "give a file in an existing folder",
    ),
    ("stats -n many", "invalid value 'many' for '--limit <N>'", "not a whole number"),
    ("stats --project nowhere", "no session has the project nowhere", "the projects are: "),
    ("sync nowhere", "could not open $HOME/nowhere", "check that the path exists"),
    ("sync --agent nobody", "invalid value 'nobody'", "possible values: claude-code"),
    ("watch --debounce soon", "invalid value 'soon'", "not a number of milliseconds, such as 500"),
    ("import", "required arguments were not provided", "<PATH>..."),
    ("import nowhere", "could not open $HOME/nowhere", "check that the path exists"),
    (
        "import empty.txt",
        "no messages in $HOME/empty.txt",
        "give a file or folder in which an agent",
    ),
    ("record --session a/b", "not a session id", "letters, digits, '.', '_' and '-'"),
    ("record --agent 'a b'", "not an agent's name", "letters, digits, '.', '_' and '-'"),
    ("exec", "required arguments were not provided", "For example: steno exec python agent.py"),
    (
        "exec no-such-program",
        "could not run no-such-program: no such program",
        "check the program's name",
    ),
    ("exec --body-limit lots true", "invalid value 'lots'", "such as 64 MiB or 500000"),
    ("exec --proxy-host x true", "required arguments were not provided", "--proxy"),
    (
        "gateway --listen nonsense",
        "invalid value 'nonsense'",
        "not an IP address and a port, such as 127.0.0.1:4180",
    ),
    (
        "gateway --listen 192.0.2.1:1",
        "could not listen on 192.0.2.1:1",
        "use an address of this machine",
    ),
    ("gateway --upstream nonsense", "invalid value 'nonsense'", "expected NAME=URL"),
    ("gateway --upstream a=ftp://x", "not a URL", "such as https://api.openai.com"),
    ("acp", "required arguments were not provided", "For example: steno acp -- gemini --acp"),
    ("acp -- no-such-agent", "could not start no-such-agent", "check the program's name"),
    (
        "run",
        "required arguments were not provided",
        "For example: steno run 'Fix the failing test'",
    ),
    (
        "run --agent no-such-agent hi",
        "no such agent or program: no-such-agent",
        "the agents are: claude, codex",
    ),
    ("run ''", "the prompt is empty", "give the task in quotes"),
    ("run --permission maybe hi", "invalid value 'maybe'", "possible values: ask, allow, deny"),
    (
        "run --thread a --objective b hi",
        "'--thread <ID>' cannot be used with '--objective <ID>'",
        "Usage: steno run",
    ),
    ("replay nope", "no such session or file: nope", "run `steno list`"),
    ("replay chat-1 --speed 0", "invalid value '0' for '--speed <X>'", "not a number above 0"),
    (
        "replay chat-1 --max-pause -1",
        "invalid value '-1' for '--max-pause <SECONDS>'",
        "not a number of seconds",
    ),
    ("replay chat-1 --from 99", "no such entry: 99", "the last entry is 0"),
    ("replay chat-1 --as-api", "no API traffic in session: chat-1", "record one with `steno exec`"),
    (
        "replay chat-1 --as-api --as-agent",
        "cannot be used with '--as-agent'",
        "Usage: steno replay",
    ),
    ("replay chat-1 --strict", "required arguments were not provided", "<--as-agent|--as-api>"),
    ("restore nope", "no such session: nope", "run `steno list`"),
    ("restore chat-1", "it has no files to restore", "use `steno export`"),
    ("resume chat-1 --agent codex", "--agent is for threads: chat-1", "use --in codex"),
    ("resume nope", "no such session: nope", "run `steno list`"),
    (
        "resume chat-1",
        "mine has no command to resume a session",
        "agents with such a command: claude-code",
    ),
    ("export chat-1", "required arguments were not provided", "--format <FORMAT>"),
    ("export chat-1 -o x.pdf", "no format has the name of x.pdf", "add --format"),
    ("export --format html", "no session is named", "use --site DIR for all sessions"),
    ("load --from nowhere", "no such remote: nowhere", "run `steno remote add NAME URL`"),
    ("export chat-1 --format pdf", "invalid value 'pdf'", "possible values: leslie, devflow"),
    ("export chat-1 --format leslie", "this format needs an output folder", "use -o DIR"),
    ("export chat-1 --format md --site x", "--site writes html, not md", "leave out --format"),
    ("export chat-1 --format md --json", "--json needs --output or --site", "add -o PATH"),
    ("convert nowhere --to md", "no such session or file: nowhere", "run `steno list`"),
    ("convert empty.txt --to md", "no messages in $HOME/empty.txt", "give a file or folder"),
    ("inspect nowhere", "could not open $HOME/nowhere", "check that the path exists"),
    ("diff chat-1", "required arguments were not provided", "<B>"),
    ("diff chat-1 nope", "no such session or file: nope", "run `steno list`"),
    ("annotate chat-1:99 hello", "no such entry: chat-1:99", "the last entry is 0"),
    ("annotate --remove nope", "no such note: nope", "run `steno annotate` to list the notes"),
    (
        "verify --since nonsense",
        "not a head of the journal",
        "such as 1234-00112233445566778899aabbccddeeff",
    ),
    ("serve --port 99999", "invalid value '99999' for '--port <N>'", "99999 is not in 0..=65535"),
    ("serve --host nonsense", "invalid value 'nonsense'", "not an IP address, such as 127.0.0.1"),
    ("serve --host 192.0.2.1", "could not listen on 192.0.2.1:7473", "leave out --host"),
    ("hooks", "Usage: steno hooks [OPTIONS] <COMMAND>", "install  Register Steno"),
    ("hooks instal", "unrecognized subcommand 'instal'", "'install'"),
    ("hooks install nobody", "invalid value 'nobody'", "possible values: claude-code, codex"),
    ("mcp instal", "unrecognized subcommand 'instal'", "'install'"),
    ("mcp install nobody", "invalid value 'nobody'", "possible values: claude-code, codex"),
    ("mcp --project nowhere", "could not open $HOME/nowhere", "check that the path exists"),
    ("completions tcsh", "invalid value 'tcsh'", "possible values: bash, elvish, fish"),
    (
        "man --dir empty.txt",
        "could not create folder $HOME/empty.txt",
        "give a folder that can be written",
    ),
    ("doctor extra", "unexpected argument 'extra'", "For example: steno doctor"),
    ("spawn x", "no threads in $HOME", "run `steno init`"),
    ("lifecycle x", "required arguments were not provided", "<ACTION>"),
    (
        "transfer x sideways",
        "invalid value 'sideways'",
        "possible values: request_approval, delegate",
    ),
    ("merge x", "required arguments were not provided", "--into <THREAD>"),
    ("objective create", "required arguments were not provided", "<TITLE>"),
    ("as klingon", "unrecognized subcommand 'klingon'", "For example: steno as devflow"),
];

#[test]
fn a_range_that_ends_before_it_begins_is_a_usage_error() {
    let home = Home::new();
    for command in [&["list"][..], &["search", "x"], &["cost"], &["cost", "--no-index"], &["stats"]]
    {
        let range = |since, until| {
            home.steno(&[command, &["--since", since, "--until", until][..]].concat())
        };
        let output = range("2026-11-01", "2026-10-01");
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{command:?}: {output}");
        assert!(output.stderr.contains("is later than --until"), "{command:?}: {output}");
        // A whole day.
        let output = range("2026-10-01", "2026-10-01");
        assert!(!output.stderr.contains("is later than"), "{command:?}: {output}");
    }
}

#[test]
fn each_message_says_what_is_wrong_and_how_to_fix_it() {
    assert!(WRONG_LINES.len() >= 80);
    let home = crate::listing::home_with_sessions();
    home.file("empty.txt", "\n");
    let before = home.steno(&["list", "--empty"]).ok();
    for (line, wrong, fix) in WRONG_LINES {
        let words = shlex::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = home.steno(&words);
        assert!(matches!(output.code, 1 | 2), "{line}: {output}");
        assert_eq!(output.stdout, "", "{line}: {output}");
        assert!(output.stderr.contains(wrong), "{line}: {output}");
        assert!(output.stderr.contains(fix), "{line}: {output}");
    }
    assert_eq!(home.steno(&["list", "--empty"]).ok(), before);
}

/// A message has no text of the program's own code.
#[test]
fn no_message_speaks_of_code() {
    let home = Home::new();
    home.file("empty.txt", "\n");
    for (line, _, _) in WRONG_LINES {
        let words = shlex::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let message = home.steno(&words).stderr;
        for code in
            ["Error {", "Some(", "None", "unwrap", "panicked", "ParseIntError", "invalid digit"]
        {
            assert!(!message.contains(code), "{line}: {message}");
        }
    }
}
