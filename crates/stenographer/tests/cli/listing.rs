//! `steno list`: its filters, its counts, and what it says if nothing matches.

use serde_json::Value;

use crate::harness::{Home, Output};

/// Returns a line of a session file of Claude Code.
pub(crate) fn line(session: &str, day: u8, project: &str, text: &str) -> String {
    let user = r#"{"type":"user","uuid":"u-ID","sessionId":"ID","timestamp":"2026-01-DAYT09:00:00Z","cwd":"PROJECT","gitBranch":"BRANCH","version":"2.1.0","message":{"role":"user","content":"TEXT"}}"#;
    let reply = r#"{"type":"assistant","uuid":"a-ID","parentUuid":"u-ID","sessionId":"ID","timestamp":"2026-01-DAYT09:00:05Z","cwd":"PROJECT","gitBranch":"BRANCH","version":"2.1.0","message":{"id":"m-ID","role":"assistant","model":"MODEL","content":[{"type":"text","text":"Done with DAY."}],"usage":{"input_tokens":1234567,"output_tokens":89}}}"#;
    let (branch, model) =
        if day > 3 { ("main", "claude-opus-4-1") } else { ("fix", "claude-haiku-4-5") };
    let both = format!("{user}\n{reply}\n").replace("DAY", &format!("{day:02}"));
    let both = both.replace("ID", session).replace("PROJECT", project).replace("TEXT", text);
    both.replace("BRANCH", branch).replace("MODEL", model).replace("UU", "uu")
}

/// Returns a home with six sessions in two projects.
pub(crate) fn home_with_sessions() -> Home {
    let home = Home::new();
    for (session, day, project, text) in [
        ("1a2b3c4d-0001", 1, "/code/shop", "Fix the login timeout"),
        ("1a2b3c4d-0002", 2, "/code/shop", "Add a test for the login"),
        ("2bcd", 3, "/code/blog", "Write the feed"),
        ("3cde", 4, "/code/blog", "Explain the borrow checker"),
        (
            "4def",
            4,
            "/code/shop/web",
            "Make the page faster than it has ever been before, on every phone and in every browser",
        ),
    ] {
        home.file(&format!("logs/{session}.jsonl"), line(session, day, project, text));
    }
    home.steno(&["import", "logs"]).ok();
    home.steno_with(
        &["record", "--agent", "mine", "--session", "chat-1"],
        b"{\"role\":\"user\",\"content\":\"Read the file\"}\n",
    )
    .ok();
    home
}

/// Returns the ids of the listed sessions.
fn ids(output: Output) -> Vec<String> {
    let ids = output.stdout.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["id"].as_str().unwrap().to_owned()
    });
    ids.collect()
}

fn listed(home: &Home, filter: &[&str]) -> Vec<String> {
    ids(home.steno(&[&["list", "--json"], filter].concat()))
}

#[test]
fn sessions_are_selected_as_in_a_search() {
    let home = home_with_sessions();
    assert_eq!(listed(&home, &["--agent", "mine"]), ["chat-1"]);
    assert_eq!(listed(&home, &["--project", "blog"]), ["3cde", "2bcd"]);
    assert_eq!(
        listed(&home, &["--project", "/code/shop"]),
        ["4def", "1a2b3c4d-0002", "1a2b3c4d-0001"]
    );
    assert_eq!(listed(&home, &["--branch", "fix", "--project", "blog"]), ["2bcd"]);
    assert_eq!(listed(&home, &["--model", "OPUS"]), ["3cde", "4def"]);
    assert_eq!(
        listed(&home, &["--since", "2026-01-04", "--agent", "claude-code"]),
        ["3cde", "4def"]
    );
    assert_eq!(listed(&home, &["--until", "2026-01-01"]), ["1a2b3c4d-0001"]);
    assert_eq!(listed(&home, &["--text", "login"]), ["1a2b3c4d-0002", "1a2b3c4d-0001"]);
    assert_eq!(listed(&home, &["--text", "login -timeout"]), ["1a2b3c4d-0002"]);
    assert_eq!(listed(&home, &["--text", "-timeout login"]), ["1a2b3c4d-0002"]);
    assert_eq!(listed(&home, &["--session", "latest"]), ["chat-1"]);
    assert_eq!(listed(&home, &["--model", "opus", "-n", "1"]), ["3cde"]);
    let table = home.steno(&["list", "--branch", "fix", "--text", "feed"]).ok();
    assert!(table.lines().count() == 2 && table.contains("Write the feed"), "{table}");
}

#[test]
fn nothing_listed_is_explained() {
    let home = home_with_sessions();
    let message = |args: &[&str]| {
        let output = home.steno(&[&["list"], args].concat());
        assert_eq!(output.stdout, "", "{output}");
        (output.stderr, output.code)
    };
    let expect = |args: &[&str], text: &str, code: i32| {
        assert_eq!(message(args), (text.to_owned(), code), "{args:?}");
        let json = home.steno(&[&["list", "--json"], args].concat());
        assert_eq!((json.stdout.as_str(), json.stderr.as_str(), json.code), ("", text, code));
    };
    expect(&["-n", "0"], "no session listed, because of -n 0\n", 0);
    expect(
        &["--project", "shopp"],
        "error: no session has the project shopp\nhint: the projects are: /code/blog, /code/shop, /code/shop/web, $HOME\n",
        1,
    );
    expect(
        &["--branch", "dev"],
        "error: no session has the branch dev\nhint: the branches are: fix, main\n",
        1,
    );
    expect(
        &["--model", "gpt"],
        "error: no session has the model gpt\nhint: the models are: claude-haiku-4-5, claude-opus-4-1\n",
        1,
    );
    expect(
        &["--thread", "x"],
        "error: no session has the thread x\nhint: no session has a thread\n",
        1,
    );
    expect(&["--model", "opus", "--branch", "fix"], "no session matches\n", 1);
    expect(&["--since", "2027-01-01"], "no session matches\n", 1);
    expect(
        &["--text", "/x+/"],
        "error: --text does not take a regular expression\nhint: use words, or `steno search` for expressions\n",
        2,
    );
}

#[test]
fn search_cost_and_stats_name_what_exists() {
    let home = home_with_sessions();
    let message = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        let output = home.steno(&args);
        assert_eq!((output.stdout.as_str(), output.code), ("", 1), "{output}");
        output.stderr
    };
    assert_eq!(
        message("search login --role boss"),
        "error: no session has the role boss\nhint: the roles are: user, assistant\n"
    );
    assert_eq!(
        message("search login --tool Bash"),
        "error: no session has the tool Bash\nhint: no session has a tool\n"
    );
    for command in ["search login", "stats"] {
        let output = message(&format!("{command} --project nowhere"));
        assert!(
            output
                .starts_with("error: no session has the project nowhere\nhint: the projects are: "),
            "{output}"
        );
        let output = message(&format!("{command} --agent nobody"));
        assert_eq!(
            output,
            "error: no sessions of agent nobody\nhint: agents with sessions: claude-code, mine\n"
        );
    }
    assert_eq!(message("search login --project blog"), "no hits for: login\n");
    let cost = home.steno(&["cost", "--project", "nowhere"]);
    assert_eq!((cost.stdout.as_str(), cost.code), ("", 0), "{cost}");
    let warning = "warning: no session has the project nowhere; the projects are: /code/blog, ";
    assert!(cost.stderr.starts_with(warning), "{cost}");
}

#[test]
fn a_leading_minus_excludes_a_word() {
    let home = home_with_sessions();
    let found = |args: &[&str]| home.steno(args).ok().matches("\"hit\"").count();
    assert_eq!(found(&["search", "login", "--json"]), 2);
    assert_eq!(found(&["search", "login", "-timeout", "--json"]), 1);
    assert_eq!(found(&["search", "-nothing", "login", "-n", "5", "-timeout", "--json"]), 1);
}

#[test]
fn list_stats_and_cost_count_the_same_sessions_or_say_why_not() {
    let home = home_with_sessions();
    home.file("logs/empty.jsonl", r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-01T00:00:00Z","sessionId":"5eee"}"#.to_owned() + "\n");
    home.steno(&["import", "logs"]);
    let all = listed(&home, &[]).len() as u64;
    let stats: Value = serde_json::from_str(&home.steno(&["stats", "--json"]).ok()).unwrap();
    let count = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!(count("sessions") + count("sessions_without_entries"), all);
    let cost = home.steno(&["cost", "--by", "session"]);
    let rows = cost.stdout.lines().count() as u64 - 2;
    let without = all - rows;
    assert!(without > 0, "{cost}");
    assert!(
        cost.stderr
            .contains(&format!("{without} of {all} sessions state no usage and have no row\n")),
        "{cost}"
    );
}

/// Each command line fails; none may leave a session or a store behind.
#[cfg(unix)]
#[test]
fn failed_commands_leave_no_sessions() {
    for line in [
        "exec no-such-program",
        "exec --name a/b true",
        "run --agent no-such-agent hello",
        "acp -- no-such-agent",
        "gateway --listen 192.0.2.1:1",
        "gateway --upstream nonsense",
        "record --session ../x",
        "record",
        "import nowhere",
        "exec -- false",
    ] {
        let home = Home::new();
        let args: Vec<&str> = line.split(' ').collect();
        let output = home.steno(&args);
        assert!(output.code != 0 || line == "record", "{line}: {output}");
        assert_eq!(home.steno(&["list", "--empty"]).stdout, "", "{line}");
        assert!(!home.vault().has_sessions().unwrap(), "{line}");
    }
}
