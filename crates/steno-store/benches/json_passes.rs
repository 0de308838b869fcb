//! What each JSON pass of our own saves against plain `serde_json`: CPU time and peak memory, each in a process of its
//! own, on files of about 100 MB.
//!
//! `cargo bench -p steno-store --bench json_passes` prints one row per pass.

#[cfg(unix)]
fn main() {
    passes::main();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod passes {
    use std::fs;
    use std::hint::black_box;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use rustix::time::{ClockId, clock_gettime};
    use serde::Deserialize;
    use serde::de::IgnoredAny;
    use serde_json::Value;
    use steno_agents::decoding::file_head::FileHead;
    use steno_agents::decoding::json_repair;
    use steno_agents::decoding::record_list::RecordList;
    use steno_agents::protocols::acp::message_header::AcpMessageHeader;
    use steno_model::json::scanner::{self, RawJson};
    use steno_seeds::devflow;
    use steno_vault::SessionBundle;

    /// Number of records in each file.
    const RECORD_COUNT: usize = 20_000;

    /// A pass and its plain alternative, which do the same on the same file.
    struct PassComparison {
        name: &'static str,
        file: &'static str,
        pass: fn(&Path),
        plain: fn(&Path),
    }

    const COMPARISONS: [PassComparison; 7] = [
        PassComparison {
            name: "scanner / from_str of the same fields",
            file: "records.jsonl",
            pass: scan_records,
            plain: parse_records,
        },
        PassComparison {
            name: "walker / from_slice of the whole document",
            file: "document.json",
            pass: walk_document,
            plain: parse_document,
        },
        PassComparison {
            name: "head / from_slice of the whole document",
            file: "document.json",
            pass: read_head,
            plain: parse_document,
        },
        PassComparison {
            name: "devflow visitor / from_slice of the whole run",
            file: "run.json",
            pass: read_run,
            plain: parse_document,
        },
        PassComparison {
            name: "repair of good lines / from_slice",
            file: "records.jsonl",
            pass: repair_lines,
            plain: parse_lines,
        },
        PassComparison {
            name: "ACP header / from_slice of the whole message",
            file: "messages.jsonl",
            pass: parse_headers,
            plain: parse_lines,
        },
        PassComparison {
            name: "ACP header / from_slice that skips everything",
            file: "messages.jsonl",
            pass: parse_headers,
            plain: skip_lines,
        },
    ];

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        if let Some(at) = arguments.iter().position(|argument| argument == "--case") {
            let [number, side, file] = &arguments[at + 1..] else { panic!("three arguments") };
            let comparison = &COMPARISONS[number.parse::<usize>().expect("a number")];
            let work = if side == "pass" { comparison.pass } else { comparison.plain };
            work(Path::new(file));
            println!("{} {}", cpu_seconds(), peak_megabytes());
            return;
        }
        let folder = tempfile::tempdir().expect("a temp folder");
        write_files(folder.path());
        println!("{:50} {:>9} {:>9} {:>9} {:>9}", "", "CPU", "ratio", "peak", "ratio");
        for (number, comparison) in COMPARISONS.iter().enumerate() {
            let file = folder.path().join(comparison.file);
            let [cpu, peak] = measure(number, "pass", &file);
            let [plain_cpu, plain_peak] = measure(number, "plain", &file);
            println!(
                "{:50} {cpu:8.2}s {:9.2} {peak:6.0} MB {:9.2}",
                comparison.name,
                cpu / plain_cpu,
                peak / plain_peak
            );
        }
    }

    /// Runs one side three times, each in a process of its own, and returns the smallest CPU time and memory.
    fn measure(number: usize, side: &str, file: &PathBuf) -> [f64; 2] {
        let program = std::env::current_exe().expect("the path of this program");
        let runs = (0..3).map(|_| {
            let mut command = Command::new(&program);
            command.args(["--case", &number.to_string(), side]).arg(file);
            let output = command.output().expect("this program runs");
            let text = String::from_utf8(output.stdout).expect("numbers");
            let numbers: Vec<f64> =
                text.split(' ').map(|n| n.trim().parse().expect("a number")).collect();
            [numbers[0], numbers[1]]
        });
        runs.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])]).expect("three runs")
    }

    fn cpu_seconds() -> f64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }

    /// The peak memory of this process; 0 where the system has no `/proc`.
    fn peak_megabytes() -> f64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.unwrap_or_default() / 1024.0
    }

    /// Writes the files: records of tool results, the same as one document, and as messages of a connection.
    fn write_files(folder: &Path) {
        let output = "fn main() {\\n    println!(\\\"it works\\\");\\n}\\n".repeat(100);
        let record = |number: usize| {
            format!(
                "{{\"uuid\":\"{number:032x}\",\"type\":\"user\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\
                 \"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"content\":\"{output}\"}}]}}}}"
            )
        };
        let records: Vec<String> = (0..RECORD_COUNT).map(record).collect();
        let messages: String = records
            .iter()
            .map(|record| {
                format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{record}}}}}\n")
            })
            .collect();
        let document = format!("{{\"id\":\"s\",\"messages\":[{}]}}", records.join(","));
        let run =
            format!("{{\"runId\":\"r\",\"metadata\":{{}},\"turns\":[{}]}}", records.join(","));
        let files = [
            ("run.json", run),
            ("records.jsonl", records.join("\n")),
            ("document.json", document),
            ("messages.jsonl", messages),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("there is room");
        }
    }

    /// The fields of a record that a reader needs.
    #[derive(Deserialize)]
    struct SkimmedRecord<'a> {
        #[serde(borrow, rename = "uuid")]
        _uuid: &'a str,
        #[serde(borrow, rename = "timestamp")]
        _timestamp: &'a str,
        #[serde(borrow, rename = "message")]
        _message: SkimmedMessage<'a>,
    }

    #[derive(Deserialize)]
    struct SkimmedMessage<'a> {
        #[serde(borrow, rename = "role")]
        _role: &'a str,
        #[serde(borrow, rename = "content")]
        _content: RawJson<'a>,
    }

    fn for_each_line(file: &Path, mut take: impl FnMut(&str)) {
        fs::read_to_string(file).expect("a text").lines().for_each(&mut take);
    }

    fn scan_records(file: &Path) {
        for_each_line(file, |line| {
            let parsed = scanner::parse_first_object::<SkimmedRecord<'_>>(line, usize::MAX);
            black_box(parsed.expect("a plain record"));
        });
    }

    fn parse_records(file: &Path) {
        for_each_line(file, |line| {
            black_box(serde_json::from_str::<SkimmedRecord<'_>>(line).expect("a record"));
        });
    }

    fn walk_document(file: &Path) {
        let bundle = SessionBundle::from_file(file);
        let list = RecordList::open(&bundle.files[0], &["messages"]).expect("a readable file");
        let list = list.expect("a document");
        list.for_each_record(|record| drop(black_box(record))).expect("a readable file");
    }

    fn parse_document(file: &Path) {
        let bytes = fs::read(file).expect("a readable file");
        black_box(serde_json::from_slice::<Value>(&bytes).expect("a document"));
    }

    fn read_head(file: &Path) {
        let bundle = SessionBundle::from_file(file);
        let head = FileHead::read_document(&bundle.files[0]).expect("a readable file");
        assert!(black_box(head.field_start("messages")).is_some());
    }

    fn read_run(file: &Path) {
        let bytes = fs::read(file).expect("a readable file");
        black_box(devflow::read_transcript(file, &bytes).expect("a run"));
    }

    fn repair_lines(file: &Path) {
        for_each_line(file, |line| {
            black_box(json_repair::parse_lenient::<Value>(line.as_bytes()).expect("good JSON"));
        });
    }

    fn parse_lines(file: &Path) {
        for_each_line(file, |line| {
            black_box(serde_json::from_slice::<Value>(line.as_bytes()).expect("good JSON"));
        });
    }

    fn parse_headers(file: &Path) {
        for_each_line(file, |line| {
            black_box(AcpMessageHeader::parse(line.as_bytes()).expect("a message"));
        });
    }

    fn skip_lines(file: &Path) {
        for_each_line(file, |line| {
            black_box(serde_json::from_slice::<IgnoredAny>(line.as_bytes()).expect("good JSON"));
        });
    }
}
