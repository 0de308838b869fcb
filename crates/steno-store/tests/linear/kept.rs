//! Recorded sessions, read from the vault: records, the wire of an agent, traffic with models, and notes.

use serde_json::json;
use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::{TrafficPiece, append_traffic};
use steno_model::Clock;
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::RecordingOpening;
use steno_vault::recorder::Recorder;
use steno_vault::{SessionDir, SessionFile, Vault};

use super::{acp, assert_linear, cpu_time, scratch_folder};

fn session(root: &std::path::Path) -> SessionDir {
    Vault::new(root).session_dir(&"test".parse().unwrap(), &"s".parse().unwrap())
}

/// Records so many lines, then measures how long the session takes to read.
fn check_record(name: &str, record: impl Fn(usize) -> Vec<u8>) {
    assert_linear(name, |count| {
        let folder = scratch_folder();
        let dir = session(folder.path());
        let opening = RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
        let recorder =
            Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap();
        for number in 0..count {
            recorder.append_line(&record(number)).unwrap();
        }
        recorder.commit().unwrap();
        Some(cpu_time(|| drop(dir.read_transcript().unwrap())))
    });
}

#[test]
fn recorded_entries() {
    check_record("entries", |number| {
        json!({"role": "assistant", "content": "a", "tool_call_id": number.to_string()})
            .to_string()
            .into_bytes()
    });
}

#[test]
fn recorded_wire() {
    check_record("tool calls on the wire", |number| {
        let update =
            json!({"sessionUpdate": "tool_call", "toolCallId": number.to_string(), "title": "ls"});
        let message =
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}});
        format!("{{\"acp\":\"agent\",\"message\":{message}}}").into_bytes()
    });
    check_record("stray lines on the wire", |_| br#"{"acp":"agent","text":"stray"}"#.to_vec());
}

#[test]
fn wire_beside_the_files_of_an_agent() {
    assert_linear("a wire joined with files", |count| {
        let folder = scratch_folder();
        let dir =
            Vault::new(folder.path()).session_dir(&"acp".parse().unwrap(), &"s".parse().unwrap());
        let opening = RecordingOpening {
            agent: "acp".to_owned(),
            protocol: Some("acp".to_owned()),
            ..RecordingOpening::default()
        };
        let recorder =
            Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap();
        let mut lines = acp::sample().remove(0).1;
        for number in 0..count {
            let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": number.to_string(),
                "content": {"type": "text", "text": number.to_string()}});
            let message =
                json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": chunk}});
            lines.extend(format!("{{\"acp\":\"agent\",\"message\":{message}}}\n").into_bytes());
        }
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            recorder.append_line(line).unwrap();
        }
        recorder.commit().unwrap();
        let file = folder.path().join("own.jsonl");
        std::fs::write(&file, lines).unwrap();
        dir.keep_file(&SessionFile::on_disk("own.jsonl", &file), &file).unwrap();
        Some(cpu_time(|| drop(dir.read_transcript().unwrap())))
    });
}

#[test]
fn recorded_traffic() {
    let request = |number: usize, body: String| {
        let mut piece = TrafficPiece::new(TrafficPieceKind::Request, number.to_string());
        piece.path = Some("/v1/chat/completions".into());
        piece.text = Some(body.into());
        piece.to_line()
    };
    let asked = |content: String| {
        json!({"model": "m", "messages": [{"role": "user", "content": content}]}).to_string()
    };
    check_record("requests without an answer", |n| request(n, asked("a".to_owned())));
    check_record("conversations", |n| request(n, asked(n.to_string())));
    check_record("traffic of no known exchange", |n| {
        TrafficPiece::new_chunk(&n.to_string(), 1, b"data: {}\n\n").to_line()
    });
    check_record("conversations with answers", |n| match n % 4 {
        0 => request(n / 4, asked((n / 4).to_string())),
        1 => {
            let id = (n / 4).to_string();
            let mut piece = TrafficPiece::new(TrafficPieceKind::Response, id.as_str());
            piece.status = Some(200);
            piece.to_line()
        }
        2 => {
            let answer =
                json!({"id": "r", "choices": [{"message": {"role": "assistant", "content": "b"}}]});
            TrafficPiece::new_chunk(&(n / 4).to_string(), 1, answer.to_string().as_bytes())
                .to_line()
        }
        _ => TrafficPiece::new_end(&(n / 4).to_string(), 2, None).to_line(),
    });
}

/// One exchange with many parts in its request or its response.
#[test]
fn traffic_of_one_exchange() {
    let exchange = |name: &str, body: &dyn Fn(usize) -> String, chunk: &dyn Fn(usize) -> String| {
        assert_linear(name, |count| {
            let folder = scratch_folder();
            let dir = session(folder.path());
            let opening =
                RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
            let recorder =
                Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap();
            let mut request = TrafficPiece::new(TrafficPieceKind::Request, "e");
            request.path = Some("/v1/chat/completions".into());
            request.text = Some(body(count).into());
            let mut response = TrafficPiece::new(TrafficPieceKind::Response, "e");
            response.status = Some(200);
            append_traffic(&recorder, &[request, response]).unwrap();
            for number in 0..count {
                let data = format!("data: {}\n\n", chunk(number));
                append_traffic(&recorder, &[TrafficPiece::new_chunk("e", 1, data.as_bytes())])
                    .unwrap();
            }
            append_traffic(&recorder, &[TrafficPiece::new_end("e", 2, None)]).unwrap();
            recorder.commit().unwrap();
            Some(cpu_time(|| drop(dir.read_transcript().unwrap())))
        });
    };
    let short = |_: usize| json!({"messages": [{"role": "user", "content": "a"}]}).to_string();
    let texts = |count: usize| {
        let actual_texts: Vec<_> =
            (0..count).map(|n| json!({"role": "assistant", "content": n.to_string()})).collect();
        json!({"messages": actual_texts}).to_string()
    };
    let delta = |n: usize| {
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": n.to_string()}}]})
            .to_string()
    };
    let choice = |n: usize| {
        json!({"id": "r", "choices": [{"index": n, "delta": {"content": "a"}}]}).to_string()
    };
    let call = |n: usize| {
        let call =
            json!({"index": n, "id": n.to_string(), "function": {"name": "f", "arguments": "{}"}});
        json!({"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).to_string()
    };
    exchange("a request of many texts", &texts, &delta);
    exchange("an answer of many choices", &short, &choice);
    exchange("an answer of many calls", &short, &call);
}

#[test]
fn notes_of_a_session() {
    assert_linear("notes that were taken back", |count| {
        let folder = scratch_folder();
        let dir = session(folder.path());
        let opening = RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
        drop(Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap());
        let clock = Clock::system();
        let note = dir.add_note(None, "first", &clock).unwrap();
        let path = dir.path().join("notes.jsonl");
        let line = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
        let mut log = String::new();
        let id = |number: usize| uuid_of(number);
        for number in 0..count {
            log.push_str(&line.replace(&note.id.to_string(), &id(number)));
        }
        for number in 0..count {
            let gone = line.replace(&note.id.to_string(), &id(number));
            log.push_str(&gone.replace(",\"text\":\"first\"", ""));
        }
        std::fs::write(&path, log).unwrap();
        Some(cpu_time(|| assert_eq!(dir.read_notes().unwrap().all, [])))
    });
}

fn uuid_of(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}
