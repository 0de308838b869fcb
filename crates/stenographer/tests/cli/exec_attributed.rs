//! Traffic of an agent without session ids joins the session with the same responses.

use serde_json::{Value, json};
use steno_model::Clock;

use crate::harness::Home;
use crate::model::{Model, ModelRequest, Reply, body, post};

/// An agent like Gemini CLI: for each session it requests a response and a title, and writes only the response to its
/// file. Other tests run it as a program.
#[test]
#[ignore = "is run by other tests, as an agent"]
fn agent() {
    let base = std::env::var("GOOGLE_GEMINI_BASE_URL").unwrap();
    let ask = |prompt: &str| {
        let request = json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]});
        let url = format!("{base}/v1beta/models/gemini-3-flash:generateContent");
        body(&post(&url, &[("Connection", "close")], &request).whole())
    };
    for session in std::env::var("SESSIONS").unwrap().split(',') {
        let prompt = format!("Count the herons of {session}");
        let answer = ask(&prompt);
        ask("Give it a title");
        write_down(session, &prompt, &answer);
    }
    if std::env::var("SYNCS_ITSELF").is_ok() {
        let synced = std::process::Command::new(env!("CARGO_BIN_EXE_steno")).arg("sync").output();
        assert!(synced.unwrap().status.success());
    }
}

fn write_down(session: &str, prompt: &str, answer: &Value) {
    let at = Clock::system().now().to_string();
    let text = &answer["candidates"][0]["content"]["parts"][0]["text"];
    let tokens =
        json!({"input": 10, "output": 7, "cached": 0, "thoughts": 0, "tool": 0, "total": 17});
    let lines = [
        json!({"sessionId": session, "projectHash": "abc", "startTime": at, "lastUpdated": at}),
        json!({"id": format!("u-{session}"), "timestamp": at, "type": "user", "content": prompt}),
        json!({"id": format!("a-{session}"), "timestamp": at, "type": "gemini", "content": text,
            "model": "gemini-3-flash", "tokens": tokens}),
    ];
    let home = std::env::var("HOME").unwrap();
    let folder = std::path::Path::new(&home).join(".gemini/tmp/birds/chats");
    std::fs::create_dir_all(&folder).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join(format!("session-{session}.jsonl")), text).unwrap();
}

fn answering(asked: &ModelRequest, reply: &mut Reply<'_>) {
    let asked = asked.json();
    let prompt = asked["contents"][0]["parts"][0]["text"].as_str().unwrap();
    let (text, output) = match prompt.strip_prefix("Count the herons of ") {
        Some(session) => (format!("There are three of {session}."), 7),
        None => ("Herons".to_owned(), 2),
    };
    let content = json!({"role": "model", "parts": [{"text": text}]});
    reply.json(
        "200 OK",
        &json!({"candidates": [{"content": content, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": output},
            "modelVersion": "gemini-3-flash"}),
    );
}

/// Runs the agent and returns the id of its recording.
fn exec(home: &Home, sessions: &str, syncs_itself: bool) -> String {
    let model = Model::start(answering);
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let args =
        ["exec", "--", &program, "--exact", "exec_attributed::agent", "--ignored", "--nocapture"];
    let mut command = home.command(&args);
    command.env("GOOGLE_GEMINI_BASE_URL", model.url()).env("SESSIONS", sessions);
    if syncs_itself {
        command.env("SYNCS_ITSELF", "1");
    }
    let output = home.finish(command, b"");
    assert_eq!(output.code, 0, "{output}");
    let announced = output.stderr.split("recorded as ").nth(1).unwrap();
    announced.split(' ').next().unwrap().to_owned()
}

/// Returns agent and title of each session with entries, and the billed tokens.
fn account(home: &Home) -> (Vec<String>, u64) {
    let lines = |args: &[&str]| -> Vec<Value> {
        let printed = home.steno(args).ok();
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let sessions = lines(&["list", "--json"]);
    let filled = sessions.iter().filter(|row| row["entries"] != 0);
    let mut titles: Vec<String> =
        filled.map(|row| format!("{} {}", row["agent"], row["title"])).collect();
    titles.sort();
    let cost = lines(&["cost", "--json"]);
    (titles, cost.last().and_then(|total| total["tokens"]["output"].as_u64()).unwrap())
}

#[test]
fn traffic_without_a_name_joins_the_session_of_the_same_answers() {
    let home = Home::new();
    let recording = exec(&home, "s1", false);
    let title = |session: &str| format!("\"gemini\" \"Count the herons of {session}\"");
    home.steno(&["sync"]).ok();
    assert_eq!(account(&home), (vec![title("s1")], 9));
    home.steno(&["reindex"]).ok();
    assert_eq!(account(&home), (vec![title("s1")], 9));
    let own = home.steno(&["show", "s1", "--json"]).ok();
    assert_eq!(
        home.steno(&["show", &recording, "--json"]).ok(),
        own,
        "the announced id still works"
    );
    let wire = home.steno(&["show", "s1", "--wire"]).ok();
    assert!(wire.contains("Give it a title"), "{wire}");
    let requests = home.steno(&["show", "s1", "--requests"]).ok();
    let requests: Vec<Value> =
        requests.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(requests.len(), 2);
    let prompt = &requests[1]["request"]["contents"][0]["parts"][0]["text"];
    assert_eq!((prompt, &requests[1]["status"]), (&json!("Give it a title"), &json!(200)));
    assert_eq!(requests[1]["answer"]["usageMetadata"]["candidatesTokenCount"], 2);
    home.steno(&["verify"]).ok();
    // The next run moves nothing more.
    exec(&home, "s2", false);
    home.steno(&["sync"]).ok();
    assert_eq!(account(&home), (vec![title("s1"), title("s2")], 18));
}

#[test]
fn a_session_synced_before_the_recording_ended_gets_its_traffic() {
    let home = Home::new();
    exec(&home, "s1", true);
    let expected = (vec!["\"gemini\" \"Count the herons of s1\"".to_owned()], 9);
    assert_eq!(account(&home), expected);
}

#[test]
fn several_sessions_in_one_run_get_the_traffic_of_each() {
    let home = Home::new();
    exec(&home, "s1,s2", false);
    home.steno(&["sync"]).ok();
    let (titles, output) = account(&home);
    assert_eq!(output, 18, "each message counts once");
    for session in ["s1", "s2"] {
        assert!(
            titles.contains(&format!("\"gemini\" \"Count the herons of {session}\"")),
            "{titles:?}"
        );
        let wire = home.steno(&["show", session, "--wire"]).ok();
        assert!(wire.contains(&format!("There are three of {session}.")), "{wire}");
    }
}
