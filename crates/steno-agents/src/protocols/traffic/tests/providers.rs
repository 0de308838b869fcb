//! The four capture points of each provider.

use super::*;

/// The entries of every provider's conversation.
const POINTS: [&str; 6] = [
    "system text: Be brief",
    "user text: What is in a.txt?",
    "assistant text: I look.",
    "assistant tool_call: read({\"path\":\"a.txt\"})",
    "tool tool_result: read: hello",
    "assistant text: It says hello.",
];

/// Each entry is emitted when its capture point is reached, with the facts known then.
fn check(tape: &Tape, adapter: &str) {
    assert_eq!(tape.lines(), POINTS);
    assert!(tape.entries.iter().all(|entry| entry.source == "primary"));
    assert!(tape.entries.iter().all(|entry| about(entry, "adapter") == adapter));
    let times: Vec<_> =
        tape.entries.iter().map(|entry| entry.created_at.unwrap().to_string()).collect();
    let (asked, answered) = ("2026-01-05T09:15:01.000000Z", "2026-01-05T09:15:01.500000Z");
    let (again, last) = ("2026-01-05T09:15:02.000000Z", "2026-01-05T09:15:02.500000Z");
    assert_eq!(times, [asked, asked, answered, answered, again, last]);
    let [_, _, text, call, result, answer] = tape.entries.as_slice() else { panic!() };
    assert_eq!(call.content, "{\n  \"path\": \"a.txt\"\n}");
    assert_eq!(
        (about(call, "latency_ms"), about(call, "first_byte_ms")),
        (json!(500.0), json!(250.0))
    );
    assert_eq!(about(result, "success"), json!(true));
    assert_eq!(about(answer, "has_structured_output"), json!(false));
    for entry in [text, call, answer] {
        assert_eq!(entry.model.as_deref(), Some("m-1"));
        assert_eq!(about(entry, "model"), json!("m-1"));
        assert!(about(entry, "finish_reason").is_string());
        assert!(entry.message_id.is_some());
    }
    assert!(about(answer, "usage").is_object());
    assert_eq!((tape.usage().input, tape.usage().output), (30, 12));
}

#[test]
fn chat_completions() {
    let path = "/v1/chat/completions";
    let tools = json!([{"type": "function", "function": {"name": "read"}}]);
    let first = json!({"model": "m", "tools": tools, "messages": [
        {"role": "developer", "content": "Be brief"}, {"role": "user", "content": "What is in a.txt?"}]});
    let call = json!({"id": "call_1", "type": "function",
        "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}});
    let second = json!({"model": "m", "tools": tools, "messages": [
        {"role": "developer", "content": "Be brief"}, {"role": "user", "content": "What is in a.txt?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "hello"}]});
    let completion = |id: &str, message: &Value, reason: &str, usage: [u64; 2]| {
        json!({"id": id, "object": "chat.completion", "created": 1, "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": 0}})
    };
    let asks =
        json!({"role": "assistant", "content": "I look.", "refusal": null, "tool_calls": [call]});
    let says = json!({"role": "assistant", "content": "It says hello.", "refusal": null});
    let mut plain = Tape::default();
    plain.exchange(path, &first, &completion("c1", &asks, "tool_calls", [10, 5]));
    plain.exchange(path, &second, &completion("c2", &says, "stop", [20, 7]));
    check(&plain, "openai");
    let chunk = |id: &str, delta: Value, reason: Value| {
        json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "m-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let billed = |id: &str, usage: [u64; 2]| {
        json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [],
            "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
    };
    let mut streamed = Tape::default();
    streamed.stream(
        path,
        &first,
        &[
            chunk("c1", json!({"role": "assistant", "content": "I "}), json!(null)),
            chunk("c1", json!({"content": "look."}), json!(null)),
            chunk(
                "c1",
                json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "read", "arguments": "{\"pa"}}]}),
                json!(null),
            ),
            chunk(
                "c1",
                json!({"tool_calls": [{"index": 0, "function": {"arguments": "th\":\"a.txt\"}"}}]}),
                json!(null),
            ),
            chunk("c1", json!({}), json!("tool_calls")),
            billed("c1", [10, 5]),
        ],
    );
    streamed.stream(
        path,
        &second,
        &[
            chunk("c2", json!({"role": "assistant", "content": "It says hello."}), json!(null)),
            chunk("c2", json!({}), json!("stop")),
            billed("c2", [20, 7]),
        ],
    );
    check(&streamed, "openai");
}

#[test]
fn messages() {
    let path = "/v1/messages";
    let ask = json!({"role": "user", "content": "What is in a.txt?"});
    let call =
        json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}});
    let first = json!({"model": "m", "max_tokens": 9, "system": "Be brief", "messages": [ask]});
    let second = json!({"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief"}],
        "messages": [ask,
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "hello"}]}]});
    let message = |id: &str, content: Value, reason: &str, usage: [u64; 2]| {
        json!({"id": id, "type": "message", "role": "assistant", "model": "m-1", "content": content,
            "stop_reason": reason, "usage": {"input_tokens": usage[0], "output_tokens": usage[1]}})
    };
    let mut plain = Tape::default();
    let content = json!([{"type": "text", "text": "I look."}, call]);
    plain.exchange(path, &first, &message("msg_1", content, "tool_use", [10, 5]));
    let content = json!([{"type": "text", "text": "It says hello."}]);
    plain.exchange(path, &second, &message("msg_2", content, "end_turn", [20, 7]));
    check(&plain, "anthropic");
    let start = |id: &str, input: u64| json!({"type": "message_start", "message": message(id, json!([]), "", [input, 1])});
    let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let ends = |reason: &str, output: u64| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output}});
    let mut streamed = Tape::default();
    streamed.stream(
        path,
        &first,
        &[
            start("msg_1", 10),
            block(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "I look."})),
            stop(0),
            block(1, json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"path\":"})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "\"a.txt\"}"})),
            stop(1),
            ends("tool_use", 5),
            json!({"type": "message_stop"}),
        ],
    );
    streamed.stream(
        path,
        &second,
        &[
            start("msg_2", 20),
            block(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "It says hello."})),
            stop(0),
            ends("end_turn", 7),
            json!({"type": "message_stop"}),
        ],
    );
    check(&streamed, "anthropic");
}

#[test]
fn responses() {
    let path = "/v1/responses";
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
        "arguments": "{\"path\":\"a.txt\"}", "status": "completed"});
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "hello"});
    let last = json!({"type": "message", "id": "msg_2", "role": "assistant",
        "content": [{"type": "output_text", "text": "It says hello."}]});
    let response = |id: &str, output: Value, usage: [u64; 2]| {
        json!({"id": id, "object": "response", "created_at": 1, "status": "completed", "model": "m-1",
            "output": output, "usage": {"input_tokens": usage[0], "output_tokens": usage[1]}})
    };
    let first = json!({"model": "m", "instructions": "Be brief", "input": "What is in a.txt?"});
    let listed = json!({"model": "m", "instructions": "Be brief",
        "input": [{"role": "user", "content": "What is in a.txt?"}]});
    let stateless = json!({"model": "m", "instructions": "Be brief",
        "input": [{"role": "user", "content": "What is in a.txt?"}, message, call, output]});
    let following = json!({"model": "m", "instructions": "Be brief", "previous_response_id": "resp_1",
        "input": [output]});
    for (first, second) in [(&first, &following), (&listed, &stateless)] {
        let mut plain = Tape::default();
        plain.exchange(path, first, &response("resp_1", json!([message, call]), [10, 5]));
        plain.exchange(path, second, &response("resp_2", json!([last]), [20, 7]));
        check(&plain, "openai");
        let event = |kind: &str, field: &str, value: Value| json!({"type": kind, "output_index": 0, field: value});
        let mut streamed = Tape::default();
        streamed.stream(
            path,
            first,
            &[
                event("response.created", "response", response("resp_1", json!([]), [0, 0])),
                event("response.output_item.added", "item", message.clone()),
                event("response.output_item.done", "item", message.clone()),
                event(
                    "response.completed",
                    "response",
                    response("resp_1", json!([message, call]), [10, 5]),
                ),
            ],
        );
        streamed.stream(
            path,
            second,
            &[event("response.completed", "response", response("resp_2", json!([last]), [20, 7]))],
        );
        check(&streamed, "openai");
    }
}

#[test]
fn generate_content() {
    let (plain_path, stream_path) =
        ("/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse");
    let ask = json!({"role": "user", "parts": [{"text": "What is in a.txt?"}]});
    let call = json!({"functionCall": {"name": "read", "args": {"path": "a.txt"}}});
    let first = json!({"contents": [ask], "systemInstruction": {"parts": [{"text": "Be brief"}]}});
    let second = json!({"systemInstruction": {"parts": [{"text": "Be brief"}]}, "contents": [ask,
        {"role": "model", "parts": [{"text": "I "}]}, {"role": "model", "parts": [{"text": "look."}, call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "hello"}}}]}]});
    let answer = |id: &str, parts: Value, usage: [u64; 2]| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": usage[0], "candidatesTokenCount": usage[1] - 2,
                "thoughtsTokenCount": 2}, "modelVersion": "m-1", "responseId": id})
    };
    let mut plain = Tape::default();
    plain.exchange(plain_path, &first, &answer("r1", json!([{"text": "I look."}, call]), [10, 5]));
    plain.exchange(
        plain_path,
        &second,
        &answer("r2", json!([{"text": "It says hello."}]), [20, 7]),
    );
    check(&plain, "gemini");
    let piece = |id: &str, parts: Value| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}}], "modelVersion": "m-1",
            "responseId": id, "usageMetadata": {"promptTokenCount": 1}})
    };
    let mut streamed = Tape::default();
    streamed.stream(
        stream_path,
        &first,
        &[
            piece("r1", json!([{"text": "I "}])),
            piece("r1", json!([{"text": "look."}])),
            answer("r1", json!([call]), [10, 5]),
        ],
    );
    streamed.stream(
        stream_path,
        &second,
        &[
            piece("r2", json!([{"text": "It says "}])),
            answer("r2", json!([{"text": "hello."}]), [20, 7]),
        ],
    );
    check(&streamed, "gemini");
    assert_eq!(streamed.usage().reasoning, 4);
}
