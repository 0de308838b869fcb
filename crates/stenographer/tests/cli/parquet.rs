//! `steno export --format parquet`, read by DuckDB.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::python_tools::python_with;

const KEY: [&str; 2] = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"];

/// A home with messages of priced and unpriced models, one of them in two sessions, and a secret.
fn home() -> Home {
    let home = Home::new();
    let session = |id: &str, turns: &[(u32, &str, u32)]| {
        let lines: String =
            turns.iter().map(|(n, model, output)| turn(id, *n, model, *output)).collect();
        home.file(&format!(".claude/projects/-home-ada-shop/{id}.jsonl"), &lines);
    };
    let (sonnet, unknown) = ("claude-sonnet-4-5", "our-own-model");
    session(
        "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
        &[(1, sonnet, 11), (2, "claude-opus-4-5", 5_000), (3, unknown, 7)],
    );
    // The same message as above, with more output; and a day later.
    session(
        "2b4e28ba-2fa1-41d2-883f-0016d3cca427",
        &[(1, sonnet, 400), (1500, "claude-haiku-4-5", 90)],
    );
    home.steno(&["sync"]).ok();
    home
}

fn turn(id: &str, n: u32, model: &str, output: u32) -> String {
    let uuid = |k: u32| format!("00000000-0000-4000-8000-{:012}", n * 10 + k);
    let at = format!("2026-01-{:02}T09:{:02}:00.000Z", 5 + n / 1000, n % 60);
    let text = format!("Prompt {n} with {} and a \u{0} in it", KEY.concat());
    let prompt = json!({"type": "user", "uuid": uuid(0), "parentUuid": null, "isSidechain": false,
        "cwd": "/home/ada/shop", "sessionId": id, "version": "2.1.0", "timestamp": at,
        "message": {"role": "user", "content": text}});
    let answer = json!({"type": "assistant", "uuid": uuid(1), "parentUuid": uuid(0),
        "isSidechain": false, "cwd": "/home/ada/shop", "sessionId": id, "version": "2.1.0",
        "timestamp": at, "message": {"id": format!("msg_01AbCdEfGhIjKlMn{n:04}"),
            "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": format!("Answer {n}")}],
            "usage": {"input_tokens": 100, "output_tokens": output,
                "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20}}});
    format!("{prompt}\n{answer}\n")
}

/// The rows of a query in DuckDB, as objects.
fn query(python: &Path, folder: &Path, sql: &str) -> Vec<Value> {
    let program = "import duckdb, json, sys\n\
        found = duckdb.sql(sys.argv[1])\n\
        for row in found.fetchall(): print(json.dumps(dict(zip(found.columns, row)), default=str))";
    let sql = sql.replace("$", &format!("{}/", folder.display()));
    let output = Command::new(python).args(["-c", program, &sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of `steno cost`.
fn cost(home: &Home, args: &[&str]) -> Vec<Value> {
    let text = home.steno(&[&["cost", "--json"], args].concat()).ok();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty());
    rows
}

fn export(home: &Home, args: &[&str]) -> String {
    let output = home.steno(&[&["export", "--format", "parquet", "-o", "tables"], args].concat());
    assert_eq!(output.code, 0, "{output}");
    output.stderr
}

/// Compares the sums of a column of the table with the rows of a report.
fn check_costs(python: &Path, home: &Home, by: &str, key: &str) {
    let sql = format!(
        "select {key} as key, sum(cost) as cost, sum(input)::bigint as input,
            sum(output)::bigint as output, sum(cache_read)::bigint as cache_read,
            sum(cache_write)::bigint as cache_write
        from '$usage.parquet' group by 1 order by 1"
    );
    let table = query(python, &home.path().join("tables"), &sql);
    let mut report = cost(home, &["--by", by, "--timezone", "UTC"]);
    report.retain(|row| !row[by].is_null());
    report.sort_by_key(|row| row[by].to_string());
    assert_eq!(table.len(), report.len(), "{table:?} {report:?}");
    for (table, report) in table.iter().zip(&report) {
        assert_eq!(table["key"], report[by], "{table} {report}");
        match (table["cost"].as_f64(), report["cost"].as_f64()) {
            (Some(table), Some(report)) => {
                assert!((table - report).abs() < 1e-9, "{table} {report}");
            }
            (table, report) => assert_eq!(table, report, "unknown is not zero"),
        }
        for kind in ["input", "output", "cache_read", "cache_write"] {
            assert_eq!(table[kind], report["tokens"][kind], "{kind} of {table} {report}");
        }
    }
}

#[test]
fn duckdb_reads_the_same_costs() {
    let home = home();
    let reported = export(&home, &[]);
    assert!(reported.contains("secrets redacted"), "{reported}");
    let Some(python) = python_with("duckdb") else { return };
    check_costs(&python, &home, "model", "model");
    check_costs(&python, &home, "day", "strftime(time, '%Y-%m-%d')");
    check_costs(&python, &home, "agent", "agent");
    check_costs(&python, &home, "session", "session");
    let counted = "select count(*) as rows, count(cost) as priced, sum(output)::bigint as output
        from '$usage.parquet'";
    let counted = query(&python, &home.path().join("tables"), counted);
    // Message 1 is in both sessions, and counts once with the larger number.
    assert_eq!(counted, [json!({"rows": 4, "priced": 3, "output": 400 + 5000 + 7 + 90})]);
}

#[test]
fn entries_are_complete_and_without_secrets() {
    let home = home();
    export(&home, &[]);
    let file = std::fs::read(home.path().join("tables/entries.parquet")).unwrap();
    assert!(memchr::memmem::find(&file, KEY.concat().as_bytes()).is_none());
    let Some(python) = python_with("duckdb") else { return };
    let sql =
        "select agent, session, project, number, source, role, kind, text, epoch_ms(time) as time
        from '$entries.parquet' where text like '%Prompt 2 %'";
    let rows = query(&python, &home.path().join("tables"), sql);
    assert_eq!(
        rows,
        [json!({
            "agent": "claude-code", "session": "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
            "project": "/home/ada/shop", "number": 2, "source": "primary", "role": "user",
            "kind": "text", "text": "Prompt 2 with [redacted GitHub token] and a \u{0} in it",
            "time": 1_767_603_720_000_i64,
        })]
    );
    let all = "select count(*) as entries from '$entries.parquet'";
    assert_eq!(query(&python, &home.path().join("tables"), all), [json!({"entries": 10})]);

    // A selection, with its secrets.
    export(&home, &["2b4e28ba", "--no-redact"]);
    let sql = "select count(*) as entries, count(*) filter (text like '%ghp_%') as secrets,
        (select count(*) from '$usage.parquet') as messages from '$entries.parquet'";
    let rows = query(&python, &home.path().join("tables"), sql);
    assert_eq!(rows[0]["entries"], 4);
    assert_eq!(rows[0]["secrets"], 2);
    let named = &cost(&home, &["2b4e28ba", "--by", "session"])[0];
    let sum = "select sum(output)::bigint as output from '$usage.parquet'";
    let sum = query(&python, &home.path().join("tables"), sum);
    assert_eq!(sum[0]["output"], named["tokens"]["output"], "{named}");
}
