//! Parses devflow's JSON as Go does, except that one bad record does not affect the others.
//!
//! Field names match in any case, missing fields are zero, `null` is missing, and year 1 is no time. A truncated file
//! gives the turns before the cut.
//!
//! To do so, the visitors collect raw values, which are parsed one by one. That takes 1.8 of the CPU time and 1.4 of the
//! memory of parsing the run at once (`json_passes` in the benches of `steno-store`), which would lose the run at the
//! first bad turn and could not state its line.

use std::fmt;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::LenientFields;
use super::run::{DevflowRun, RunMetadata, RunTurn, TurnToolCall};
use steno_agents::decoding::json_repair;
use steno_model::entry::EntryError;
use steno_model::json::{Object, Value};
use steno_model::problem::{Problem, json_error_reason};

/// A run, and the records that could not be parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodedRun {
    /// The run.
    pub run: DevflowRun,
    /// Records that could not be parsed.
    pub problems: Vec<Problem>,
}

/// Parses a `transcript.json`; an error if the bytes have no run at all.
pub fn read_transcript(path: &Path, bytes: &[u8]) -> Result<DecodedRun, Problem> {
    let mut problems = Vec::new();
    let text = decode_text(path, bytes, &mut problems);
    let mut draft = RawRun::default();
    let mut reader = serde_json::Deserializer::from_str(&text);
    let end = RawRunSeed(&mut draft).deserialize(&mut reader).and_then(|()| reader.end());
    if let Err(error) = end {
        let problem = Problem::at_line(path, error.line() as u64, json_error_reason(&error));
        if draft.turns.is_empty() && draft.metadata.is_none() {
            return Err(problem);
        }
        problems.push(problem);
    }
    if !draft.is_run() {
        return Err(Problem::for_file(path, "not a devflow transcript"));
    }
    let location = RawValueLocation { path, text: &text };
    let run = draft.into_run(&location, &mut problems);
    Ok(DecodedRun { run, problems })
}

/// Whether the bytes are a `transcript.json`, complete or truncated.
pub(super) fn is_transcript_json(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut draft = RawRun::default();
    let mut reader = serde_json::Deserializer::from_str(&text);
    // A parse error does not matter here, only the fields before it.
    let _ = RawRunSeed(&mut draft).deserialize(&mut reader);
    draft.is_run() && (draft.seen_turns || draft.metadata.is_some())
}

/// Parses a `metadata.json`.
pub fn read_metadata(path: &Path, bytes: &[u8]) -> Result<(RunMetadata, Vec<Problem>), Problem> {
    let mut problems = Vec::new();
    let text = decode_text(path, bytes, &mut problems);
    let object: Object = serde_json::from_str(&text)
        .map_err(|error| Problem::at_line(path, error.line() as u64, json_error_reason(&error)))?;
    let mut fields = LenientFields::new(object);
    let meta = RunMetadata::from_fields(&mut fields);
    if meta.flow_id.is_empty() && meta.run_id.is_empty() {
        return Err(Problem::for_file(path, "not a devflow run's metadata"));
    }
    problems.extend(fields.errors.iter().map(|reason| Problem::for_file(path, reason)));
    Ok((meta, problems))
}

/// Decodes UTF-8. Invalid bytes and unpaired surrogates become U+FFFD.
fn decode_text(path: &Path, bytes: &[u8], problems: &mut Vec<Problem>) -> String {
    if std::str::from_utf8(bytes).is_err() {
        problems.push(Problem::for_file(path, "not UTF-8: bad bytes read as U+FFFD"));
    }
    let bytes = json_repair::replace_lone_surrogates(bytes.to_vec());
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The fields of a transcript, still as raw JSON.
#[derive(Default)]
struct RawRun<'a> {
    run_id: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    turns: Vec<&'a RawValue>,
    seen_turns: bool,
    extra: Vec<(String, &'a RawValue)>,
}

/// The text of a file, to report a raw value with its line.
struct RawValueLocation<'a> {
    path: &'a Path,
    text: &'a str,
}

impl RawValueLocation<'_> {
    fn problem_at(&self, raw: &RawValue, reason: impl fmt::Display) -> Problem {
        let offset = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let line = memchr::memchr_iter(b'\n', &self.text.as_bytes()[..offset]).count() + 1;
        Problem::at_line(self.path, line as u64, reason)
    }

    fn parse_fields(&self, raw: &RawValue) -> Result<LenientFields, Problem> {
        match serde_json::from_str(raw.get()) {
            Ok(Value::Object(object)) => Ok(LenientFields::new(object)),
            Ok(_) => Err(self.problem_at(raw, EntryError::NotAnObject)),
            Err(error) => Err(self.problem_at(raw, json_error_reason(&error))),
        }
    }
}

impl<'a> RawRun<'a> {
    fn is_run(&self) -> bool {
        self.run_id.is_some() || (self.metadata.is_some() && self.seen_turns)
    }

    fn into_run(self, location: &RawValueLocation, problems: &mut Vec<Problem>) -> DevflowRun {
        let mut take = |raw: &RawValue| match location.parse_fields(raw) {
            Ok(fields) => Some(fields),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let mut parts = Vec::new();
        let mut run = DevflowRun {
            run_id: self
                .run_id
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default(),
            ..DevflowRun::default()
        };
        if let Some((raw, mut fields)) = self.metadata.and_then(|raw| Some((raw, take(raw)?))) {
            run.metadata = RunMetadata::from_fields(&mut fields);
            parts.push((raw, fields.errors));
        }
        for raw in self.turns {
            if let Some(mut fields) = take(raw) {
                run.turns.push(RunTurn::from_fields(&mut fields));
                parts.push((raw, fields.errors));
            }
        }
        for (raw, wrong) in parts {
            problems.extend(wrong.iter().map(|reason| location.problem_at(raw, reason)));
        }
        for (name, raw) in self.extra {
            if let Ok(value) = serde_json::from_str(raw.get()) {
                run.extra.insert(name, value);
            }
        }
        run.reconcile_metadata();
        run
    }
}

impl DevflowRun {
    /// Fills in a name that only the run or only the metadata has, and drops a stated turn count that is redundant.
    pub(super) fn reconcile_metadata(&mut self) {
        if self.run_id.is_empty() {
            self.run_id.clone_from(&self.metadata.run_id);
        }
        if self.metadata.run_id.is_empty() {
            self.metadata.run_id.clone_from(&self.run_id);
        }
        if self.metadata.turn_count == Some(self.turns.len() as u64) {
            self.metadata.turn_count = None;
        }
    }
}

struct RawRunSeed<'d, 'a>(&'d mut RawRun<'a>);

impl<'de> DeserializeSeed<'de> for RawRunSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RawRunSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transcript object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.to_ascii_lowercase().as_str() {
                "runid" => self.0.run_id = Some(map.next_value()?),
                "metadata" => self.0.metadata = Some(map.next_value()?),
                "turns" => {
                    self.0.seen_turns = true;
                    self.0.turns.clear();
                    map.next_value_seed(RawTurnsSeed(&mut self.0.turns))?;
                }
                _ => {
                    let value = map.next_value()?;
                    self.0.extra.push((name, value));
                }
            }
        }
        Ok(())
    }
}

struct RawTurnsSeed<'d, 'a>(&'d mut Vec<&'a RawValue>);

impl<'de> DeserializeSeed<'de> for RawTurnsSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RawTurnsSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of turns")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(turn) = seq.next_element()? {
            self.0.push(turn);
        }
        Ok(())
    }
}

impl RunMetadata {
    pub(super) fn from_fields(fields: &mut LenientFields) -> Self {
        Self {
            run_id: fields.take_string("runId"),
            flow_id: fields.take_string("flowId"),
            node_id: fields.take_string("nodeId"),
            input: fields.take_object("input").unwrap_or_default(),
            started_at: fields.take_time("startedAt"),
            ended_at: fields.take_time("endedAt"),
            status: fields.take_string("status"),
            total_tokens_in: fields.take_count("totalTokensIn").unwrap_or(0),
            total_tokens_out: fields.take_count("totalTokensOut").unwrap_or(0),
            total_cost: fields.take_float("totalCost"),
            turn_count: fields.take_count("turnCount"),
            error: fields.take_string("error"),
            extra: fields.take_rest(),
        }
    }
}

impl RunTurn {
    pub(super) fn from_fields(fields: &mut LenientFields) -> Self {
        Self {
            id: fields.take_count("id").unwrap_or(0),
            role: fields.take_string("role"),
            content: fields.take_string("content"),
            tokens_in: fields.take_count("tokensIn").unwrap_or(0),
            tokens_out: fields.take_count("tokensOut").unwrap_or(0),
            timestamp: fields.take_time("timestamp"),
            tool_calls: fields.take_tool_calls("toolCalls"),
            duration_ms: fields.take_count("durationMs").unwrap_or(0),
            extra: fields.take_rest(),
        }
    }
}

impl TurnToolCall {
    pub(super) fn from_fields(fields: &mut LenientFields) -> Self {
        Self {
            id: fields.take_string("id"),
            name: fields.take_string("name"),
            input: fields.take_object("input"),
            output: fields.take_string("output"),
            error: fields.take_string("error"),
            extra: fields.take_rest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::RunFileShape;
    use super::*;

    fn read(text: &str) -> DecodedRun {
        read_transcript(Path::new("transcript.json"), text.as_bytes()).unwrap()
    }

    fn reasons(decoded: &DecodedRun) -> Vec<String> {
        decoded.problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn field_names_match_in_any_case_and_the_last_one_wins() {
        let decoded = read(
            r#"{"RUNID":"r","Metadata":{"FLOWID":"a","flowId":"b","endedAt":"0001-01-01T00:00:00Z"},"turns":null}"#,
        );
        assert_eq!(decoded.run.run_id, "r");
        assert_eq!(decoded.run.metadata.flow_id, "b");
        assert_eq!(decoded.run.metadata.ended_at, None);
        assert!(decoded.problems.is_empty());
    }

    #[test]
    fn unknown_fields_come_back() {
        let text = r#"{"runId":"r","metadata":{"flowId":"f","mood":1.0},"turns":[{"id":1,"why":{"b":1,"a":2},"toolCalls":[{"name":"x","cost":[]}]}],"v":2}"#;
        let json = read(text).run.to_json(RunFileShape::Shipped);
        assert_eq!(read(&json).run, read(text).run);
        for kept in ["\"mood\": 1.0", "\"why\"", "\"cost\": []", "\"v\": 2"] {
            assert!(json.contains(kept), "{kept} in {json}");
        }
        assert!(!read(text).run.to_json(RunFileShape::Adr011).contains("mood"));
    }

    #[test]
    fn a_bad_turn_costs_no_other() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            "{{\"runId\":\"r\",\"turns\":[\n{{\"content\":\"a\",\"tokensIn\":\"x\"}},\n5,\n{{\"content\":{deep}}},\n{{\"content\":\"b\"}}]}}"
        );
        let decoded = read(&text);
        let contents: Vec<_> = decoded.run.turns.iter().map(|turn| &turn.content).collect();
        assert_eq!(contents, ["a", "b"]);
        let reasons = reasons(&decoded);
        assert_eq!(reasons[0], "transcript.json:3: not a JSON object");
        assert!(reasons[1].starts_with("transcript.json:4: not JSON: recursion limit"));
        assert_eq!(reasons[2], "transcript.json:2: field tokensIn: expected a whole number");
        assert_eq!(reasons.len(), 3);
    }

    #[test]
    fn reads_a_truncated_file_up_to_the_cut() {
        let whole = read(
            r#"{"runId":"r","metadata":{"flowId":"f"},"turns":[{"id":1,"content":"a"},{"id":2,"content":"b"}]}"#,
        );
        let json = whole.run.to_json(RunFileShape::Shipped);
        let cut = json.find("\"b\"").unwrap();
        let decoded = read(&json[..cut]);
        assert_eq!(decoded.run.turns, whole.run.turns[..1]);
        assert_eq!(decoded.problems.len(), 1);
        assert!(read_transcript(Path::new("t"), &json.as_bytes()[..10]).is_err());
    }

    #[test]
    fn half_of_a_surrogate_pair_costs_one_character() {
        let decoded = read(
            r#"{"runId":"r","metadata":{"flowId":"f\udc00"},"turns":[{"id":1,"content":"a\ud83d b"}]}"#,
        );
        assert_eq!(decoded.run.metadata.flow_id, "f\u{fffd}");
        assert_eq!(decoded.run.turns[0].content, "a\u{fffd} b");
        assert!(decoded.problems.is_empty());
        let (meta, _) = read_metadata(Path::new("m"), br#"{"flowId":"x\ud83d"}"#).unwrap();
        assert_eq!(meta.flow_id, "x\u{fffd}");
    }

    #[test]
    fn numbers_keep_their_text_and_place() {
        let text = concat!(
            r#"{"runId":"r","metadata":{"runId":"r","flowId":"f","startedAt":"2025-01-15T10:30:00Z","status":"completed","#,
            r#""totalTokensIn":-7,"totalTokensOut":3,"totalCost":0.10,"turnCount":-1},"turns":[{"id":-1,"role":"user","#,
            r#""content":"x","tokensIn":-5,"tokensOut":1e2,"timestamp":"2025-01-15T10:30:00Z","#,
            r#""toolCalls":[{"name":"t","input":["a",1.50]}],"durationMs":-9}]}"#
        );
        let decoded = read(text);
        let value: Value = serde_json::from_str(text).unwrap();
        let written = steno_model::json::JsonStyle::GO_INDENT.print(&value);
        assert_eq!(decoded.run.to_json(RunFileShape::Shipped), written);
        assert_eq!(
            reasons(&decoded),
            [
                "transcript.json:1: field tokensOut: expected a whole number",
                "transcript.json:1: field input: expected an object"
            ]
        );
        let transcript = super::super::entries::transcript_from_run(decoded);
        assert_eq!(transcript.session.totals.usage.output, 3);
        assert_eq!(DevflowRun::from(&transcript).to_json(RunFileShape::Shipped), written);
        assert!(
            DevflowRun::from(&transcript)
                .to_json(RunFileShape::Adr011)
                .contains("\"tokensIn\": -5")
        );
    }

    #[test]
    fn replaces_and_reports_invalid_utf8() {
        let decoded =
            read_transcript(Path::new("t"), b"{\"runId\":\"a\xff\",\"turns\":[]}").unwrap();
        assert_eq!(decoded.run.run_id, "a\u{fffd}");
        assert_eq!(reasons(&decoded), ["t: not UTF-8: bad bytes read as U+FFFD"]);
    }

    #[test]
    fn other_json_is_no_transcript() {
        for text in ["[]", "{}", "5", "{\"turns\":[]}", "{\"name\":\"x\"}", ""] {
            assert!(read_transcript(Path::new("t"), text.as_bytes()).is_err(), "{text}");
            assert!(!is_transcript_json(text.as_bytes()), "{text}");
        }
        assert!(is_transcript_json(b"{\"runId\":\"r\",\"turns\":[{"));
    }
}
