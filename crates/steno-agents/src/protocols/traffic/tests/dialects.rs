//! The same conversation in the APIs of further providers, plain and streamed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;
use crate::protocols::traffic::aws_event_stream::encode_event;

/// The entries of every provider's conversation.
const EXPECTED_LINES: [&str; 7] = [
    "system text: Be brief",
    "user text: What is in a.txt?",
    "assistant thinking: Hm",
    "assistant text: I look.",
    "assistant tool_call: read({\"path\":\"a.txt\"})",
    "tool tool_result: read: hello",
    "assistant text: It says hello.",
];

fn check(tape: &Tape, adapter: &str) {
    assert_eq!(tape.lines(), EXPECTED_LINES);
    assert!(tape.entries.iter().all(|entry| entry.source == "primary"));
    assert!(tape.entries.iter().all(|entry| about(entry, "adapter") == adapter));
    let [.., call, _, answer] = tape.entries.as_slice() else { panic!() };
    for entry in [call, answer] {
        assert_eq!(entry.model.as_deref(), Some("m-1"));
        assert!(about(entry, "finish_reason").is_string());
        assert!(about(entry, "usage").is_object());
    }
    assert_eq!((tape.usage().input, tape.usage().output), (30, 12));
}

/// A whole exchange with these response bytes. It must decode the same wherever the chunks end.
fn record(tape: &mut Tape, path: &str, request: &Value, answer: &[u8]) {
    let exchange = tape.ask(path, request);
    tape.say(&exchange, 200, &[]);
    tape.take(&TrafficPiece::new_chunk(&exchange, 250_000, answer));
    tape.end(&exchange, None);
}

/// Truncates a response at every offset: nothing panics, and the entries before a cut are a prefix of the whole.
fn check_cuts(path: &str, request: &Value, answer: &[u8]) {
    let mut whole = Tape::default();
    record(&mut whole, path, request, answer);
    let whole = whole.lines();
    for cut in 0..answer.len() {
        let mut tape = Tape::default();
        let exchange = tape.ask(path, request);
        tape.say(&exchange, 200, &[]);
        let parts = [&answer[..cut / 2], &answer[cut / 2..cut]];
        parts.iter().for_each(|part| tape.take(&TrafficPiece::new_chunk(&exchange, 1, part)));
        tape.end(&exchange, Some("cut"));
        for line in tape.lines().iter().filter(|line| line.starts_with("assistant text")) {
            let is_part = whole.iter().any(|whole| whole.starts_with(line.as_str()));
            assert!(is_part, "{line} at {cut}");
        }
        let mut tape = Tape::default();
        let exchange = tape.ask(path, request);
        tape.say(&exchange, 200, &[]);
        let parts = [&answer[..cut], &answer[cut..]];
        parts.iter().for_each(|part| tape.take(&TrafficPiece::new_chunk(&exchange, 1, part)));
        tape.end(&exchange, None);
        assert_eq!(tape.lines(), whole, "cut at {cut}");
    }
}

fn lines(objects: &[Value]) -> Vec<u8> {
    objects.iter().map(|object| format!("{object}\n")).collect::<String>().into_bytes()
}

#[test]
fn ollama_chat() {
    let path = "/api/chat";
    let call = json!({"function": {"name": "read", "arguments": {"path": "a.txt"}}});
    let first = json!({"model": "m", "messages": [
        {"role": "system", "content": "Be brief"}, {"role": "user", "content": "What is in a.txt?"}]});
    let second = json!({"model": "m", "messages": [
        {"role": "system", "content": "Be brief"}, {"role": "user", "content": "What is in a.txt?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_name": "read", "content": "hello"}]});
    let done = |counts: [u64; 2]| {
        json!({"model": "m-1", "done": true, "done_reason": "stop", "message": {"role": "assistant", "content": ""},
            "prompt_eval_count": counts[0], "eval_count": counts[1], "total_duration": 5})
    };
    let whole = |message: Value, counts: [u64; 2]| {
        let mut whole = done(counts);
        whole["message"] = message;
        whole
    };
    let mut plain = Tape::default();
    let asks =
        json!({"role": "assistant", "content": "I look.", "thinking": "Hm", "tool_calls": [call]});
    plain.exchange(path, &first, &whole(asks, [10, 5]));
    let says = json!({"role": "assistant", "content": "It says hello."});
    plain.exchange(path, &second, &whole(says, [20, 7]));
    check(&plain, "ollama");
    let piece = |message: Value| json!({"model": "m-1", "created_at": "x", "message": message, "done": false});
    let streamed = [
        piece(json!({"role": "assistant", "content": "", "thinking": "Hm"})),
        piece(json!({"role": "assistant", "content": "I "})),
        piece(json!({"role": "assistant", "content": "look."})),
        piece(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
        done([10, 5]),
    ];
    let mut tape = Tape::default();
    record(&mut tape, path, &first, &lines(&streamed));
    let last = [piece(json!({"role": "assistant", "content": "It says hello."})), done([20, 7])];
    record(&mut tape, path, &second, &lines(&last));
    check(&tape, "ollama");
    check_cuts(path, &first, &lines(&streamed));
}

#[test]
fn ollama_generate() {
    let request =
        json!({"model": "m", "system": "Be brief", "prompt": "Say hi", "images": ["aGVsbG8="]});
    let piece = |text: &str| json!({"model": "m-1", "response": text, "done": false});
    let stream = lines(&[
        piece("H"),
        piece("i"),
        json!({"model": "m-1", "response": "", "done": true, "prompt_eval_count": 3, "eval_count": 2}),
    ]);
    let mut tape = Tape::default();
    record(&mut tape, "/api/generate", &request, &stream);
    let texts = tape.lines();
    assert_eq!(
        (texts[0].as_str(), texts[2].as_str()),
        ("system text: Be brief", "assistant text: Hi")
    );
    assert!(texts[1].starts_with("user text: Say hi\n[image, 5 bytes, blake3 "), "{texts:?}");
    assert_eq!((tape.usage().input, tape.usage().output), (3, 2));
    let mut failed = Tape::default();
    failed.exchange("/api/generate", &request, &json!({"error": "model 'm' not found"}));
    assert_eq!(failed.lines().last().unwrap(), "system error: model 'm' not found");
}

fn converse_request(more: &[Value]) -> Value {
    let ask = json!({"role": "user", "content": [{"text": "What is in a.txt?"}]});
    let messages: Vec<Value> = std::iter::once(ask).chain(more.iter().cloned()).collect();
    json!({"system": [{"text": "Be brief"}], "messages": messages})
}

fn aws(events: &[(&str, Value)]) -> Vec<u8> {
    let encode = |(name, payload): &(&str, Value)| {
        let headers = [(":event-type", *name), (":message-type", "event")];
        encode_event(&headers, payload.to_string().as_bytes())
    };
    events.iter().flat_map(encode).collect()
}

#[test]
fn bedrock_converse() {
    let (plain_path, stream_path) = ("/model/m-1/converse", "/model/m-1/converse-stream");
    let call = json!({"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "a.txt"}}});
    let thought = json!({"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "s"}}});
    let message = json!([thought, {"text": "I look."}, call]);
    let result = json!({"toolResult": {"toolUseId": "t1", "content": [{"text": "hello"}], "status": "success"}});
    let first = converse_request(&[]);
    let second = converse_request(&[
        json!({"role": "assistant", "content": message}),
        json!({"role": "user", "content": [result]}),
    ]);
    let usage = |counts: [u64; 2]| json!({"inputTokens": counts[0], "outputTokens": counts[1], "totalTokens": 0});
    let whole = |content: Value, reason: &str, counts: [u64; 2]| {
        json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
            "usage": usage(counts), "metrics": {"latencyMs": 1}})
    };
    let mut plain = Tape::default();
    plain.exchange(plain_path, &first, &whole(message, "tool_use", [10, 5]));
    plain.exchange(
        plain_path,
        &second,
        &whole(json!([{"text": "It says hello."}]), "end_turn", [20, 7]),
    );
    check(&plain, "bedrock");
    let delta = |index: u64, delta: Value| {
        ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}))
    };
    let stop = |index: u64| ("contentBlockStop", json!({"contentBlockIndex": index}));
    let stream = aws(&[
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "Hm"}})),
        delta(0, json!({"reasoningContent": {"signature": "s"}})),
        stop(0),
        delta(1, json!({"text": "I "})),
        delta(1, json!({"text": "look."})),
        stop(1),
        (
            "contentBlockStart",
            json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "read"}}}),
        ),
        delta(2, json!({"toolUse": {"input": "{\"path\":"}})),
        delta(2, json!({"toolUse": {"input": "\"a.txt\"}"}})),
        stop(2),
        ("messageStop", json!({"stopReason": "tool_use"})),
        ("metadata", json!({"usage": usage([10, 5]), "metrics": {}})),
    ]);
    let mut streamed = Tape::default();
    record(&mut streamed, stream_path, &first, &stream);
    let last = aws(&[
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"text": "It says hello."})),
        stop(0),
        ("messageStop", json!({"stopReason": "end_turn"})),
        ("metadata", json!({"usage": usage([20, 7])})),
    ]);
    record(&mut streamed, stream_path, &second, &last);
    check(&streamed, "bedrock");
    check_cuts(stream_path, &first, &stream);
}

#[test]
fn an_exception_in_a_stream_of_bedrock_is_an_error() {
    let headers = [(":exception-type", "throttlingException"), (":message-type", "exception")];
    let failed = encode_event(&headers, b"{\"message\":\"slow down\"}");
    let mut tape = Tape::default();
    record(&mut tape, "/model/m-1/converse-stream", &converse_request(&[]), &failed);
    assert_eq!(tape.lines().last().unwrap(), "system error: throttlingException: slow down");
}

#[test]
fn models_that_are_invoked_speak_their_own_words() {
    let request = json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hello"}]});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 1}});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let chunks: Vec<_> = events
        .iter()
        .map(|event| ("chunk", json!({"bytes": BASE64.encode(event.to_string()), "p": "abc"})))
        .collect();
    let mut tape = Tape::default();
    let path = "/model/anthropic.claude-3-5-sonnet%3A0/invoke-with-response-stream";
    record(&mut tape, path, &request, &aws(&chunks));
    assert_eq!(tape.lines(), ["user text: Hello", "assistant text: Hi"]);
    assert_eq!(tape.entries[1].model.as_deref(), Some("anthropic.claude-3-5-sonnet:0"));
    assert_eq!((tape.usage().input, tape.usage().output), (3, 2));
    check_cuts(path, &request, &aws(&chunks));
    // Vertex streams the same as server-sent events.
    let mut vertex = Tape::default();
    let path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict";
    vertex.stream(path, &request, &events);
    assert_eq!(vertex.lines(), tape.lines());
    // Llama reports usage in headers, and its prompt is text.
    let mut llama = Tape::default();
    let exchange = llama.ask("/model/meta.llama3/invoke", &json!({"prompt": "Hello"}));
    let mut head = TrafficPiece::new(TrafficPieceKind::Response, exchange.as_str());
    head.status = Some(200);
    head.headers = vec![
        ("X-Amzn-Bedrock-Input-Token-Count".to_owned(), "4".to_owned()),
        ("X-Amzn-Bedrock-Output-Token-Count".to_owned(), "6".to_owned()),
    ];
    llama.take(&head);
    llama.take(&TrafficPiece::new_chunk(
        &exchange,
        1,
        br#"{"generation":"Hi","stop_reason":"stop"}"#,
    ));
    llama.end(&exchange, None);
    assert_eq!(llama.lines(), ["user text: Hello", "assistant text: Hi"]);
    assert_eq!((llama.usage().input, llama.usage().output), (4, 6));
}

#[test]
fn cohere_chat() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}});
    let first = json!({"model": "m-1", "messages": [
        {"role": "system", "content": "Be brief"}, {"role": "user", "content": "What is in a.txt?"}]});
    let second = json!({"model": "m-1", "messages": [
        {"role": "system", "content": "Be brief"}, {"role": "user", "content": "What is in a.txt?"},
        {"role": "assistant", "tool_plan": "Hm", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "hello"}]});
    let usage = |counts: [u64; 2]| {
        json!({"billed_units": {"input_tokens": counts[0], "output_tokens": counts[1]},
            "tokens": {"input_tokens": 99, "output_tokens": 99}})
    };
    let whole = |id: &str, message: Value, reason: &str, counts: [u64; 2]| json!({"id": id, "message": message, "finish_reason": reason, "usage": usage(counts)});
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let mut plain = Tape::default();
    let asks = json!({"role": "assistant", "tool_plan": "Hm", "content": text("I look."), "tool_calls": [call]});
    plain.exchange("/v2/chat", &first, &whole("a", asks, "TOOL_CALL", [10, 5]));
    let says = json!({"role": "assistant", "content": text("It says hello.")});
    plain.exchange("/v2/chat", &second, &whole("b", says, "COMPLETE", [20, 7]));
    check(&plain, "cohere");
    let event = |kind: &str, message: Value| json!({"type": kind, "index": 0, "delta": {"message": message}});
    let start = |id: &str| json!({"type": "message-start", "id": id, "delta": {"message": {"role": "assistant"}}});
    let end = |reason: &str, counts: [u64; 2]| json!({"type": "message-end", "delta": {"finish_reason": reason, "usage": usage(counts)}});
    let opened =
        json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}});
    let events = [
        start("a"),
        event("tool-plan-delta", json!({"tool_plan": "Hm"})),
        event("content-start", json!({"content": {"type": "text", "text": ""}})),
        event("content-delta", json!({"content": {"text": "I look."}})),
        event("tool-call-start", json!({"tool_calls": opened})),
        event(
            "tool-call-delta",
            json!({"tool_calls": {"function": {"arguments": "{\"path\":\"a.txt\"}"}}}),
        ),
        json!({"type": "tool-call-end", "index": 0}),
        end("TOOL_CALL", [10, 5]),
    ];
    let mut streamed = Tape::default();
    streamed.stream("/v2/chat", &first, &events);
    let last = event("content-delta", json!({"content": {"text": "It says hello."}}));
    streamed.stream("/v2/chat", &second, &[start("b"), last, end("COMPLETE", [20, 7])]);
    check(&streamed, "cohere");
    check_cuts("/v2/chat", &first, sse(&events).as_bytes());
}

#[test]
fn cohere_chat_of_the_first_version() {
    let request = json!({"model": "m-1", "preamble": "Be brief", "message": "And now?",
        "chat_history": [{"role": "USER", "message": "Hello"}, {"role": "CHATBOT", "message": "Hi"}]});
    let answer = json!({"text": "Now.", "generation_id": "g", "finish_reason": "COMPLETE",
        "meta": {"billed_units": {"input_tokens": 3, "output_tokens": 2}}});
    let expected = [
        "system text: Be brief",
        "user text: Hello",
        "assistant text: Hi",
        "user text: And now?",
        "assistant text: Now.",
    ];
    let mut plain = Tape::default();
    plain.exchange("/v1/chat", &request, &answer);
    assert_eq!(plain.lines(), expected);
    let stream = lines(&[
        json!({"event_type": "stream-start", "is_finished": false}),
        json!({"event_type": "text-generation", "text": "No"}),
        json!({"event_type": "text-generation", "text": "w."}),
        json!({"event_type": "stream-end", "finish_reason": "COMPLETE", "response": answer}),
    ]);
    let mut streamed = Tape::default();
    record(&mut streamed, "/v1/chat", &request, &stream);
    assert_eq!(streamed.lines(), expected);
    for tape in [plain, streamed] {
        assert_eq!((tape.usage().input, tape.usage().output), (3, 2));
    }
}

#[test]
fn older_completions() {
    let request = json!({"model": "m", "prompt": "Once"});
    let mut plain = Tape::default();
    plain.exchange(
        "/v1/completions",
        &request,
        &json!({"id": "cmpl-1", "object": "text_completion",
        "model": "m-1", "choices": [{"text": " upon", "index": 0, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
    );
    let chunk = |text: &str, reason: Value| {
        json!({"id": "cmpl-1", "object": "text_completion", "model": "m-1",
            "choices": [{"text": text, "index": 0, "finish_reason": reason}]})
    };
    let billed = json!({"id": "cmpl-1", "object": "text_completion", "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let mut streamed = Tape::default();
    streamed.stream(
        "/openai/deployments/d/completions",
        &request,
        &[chunk(" up", json!(null)), chunk("on", json!("stop")), billed],
    );
    for tape in [plain, streamed] {
        assert_eq!(tape.lines(), ["user text: Once", "assistant text:  upon"]);
        assert_eq!((tape.usage().input, tape.usage().output), (1, 2));
        assert_eq!(tape.entries[1].model.as_deref(), Some("m-1"));
    }
}

#[test]
fn thoughts_of_mistral_and_of_openrouter() {
    let path = "/v1/chat/completions";
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]});
    let chunk = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
    let end = json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}});
    let details = json!([{"type": "reasoning.text", "text": "Hm"}]);
    let streams = [
        [chunk(json!({"content": [thinking]})), chunk(json!({"content": "Hi"})), end.clone()],
        [
            chunk(json!({"reasoning_details": details})),
            chunk(json!({"content": "Hi"})),
            end.clone(),
        ],
    ];
    let expected = ["user text: Hello", "assistant thinking: Hm", "assistant text: Hi"];
    for events in streams {
        let mut tape = Tape::default();
        tape.stream(path, &request, &events);
        assert_eq!(tape.lines(), expected);
        assert_eq!(tape.decoder.total_reported_cost(), Some(0.25));
    }
    let content = json!([thinking, {"type": "text", "text": "Hi"}]);
    for message in [
        json!({"role": "assistant", "content": content}),
        json!({"role": "assistant", "content": "Hi", "reasoning_details": details}),
    ] {
        let mut tape = Tape::default();
        tape.exchange(
            path,
            &request,
            &json!({"id": "c", "choices": [{"index": 0, "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
        );
        assert_eq!(tape.lines(), expected);
        assert_eq!(tape.decoder.total_reported_cost(), None, "its tokens have no price yet");
    }
}

#[test]
fn costs_and_cache_writes_of_openrouter_are_taken_as_stated() {
    let usage = json!({"prompt_tokens": 194, "completion_tokens": 2, "cost": 0.5, "is_byok": true,
        "cost_details": {"upstream_inference_cost": 0.25},
        "prompt_tokens_details": {"cached_tokens": 50, "cache_write_tokens": 100}});
    let message = json!({"role": "assistant", "content": "Hi"});
    let mut tape = Tape::default();
    tape.exchange(
        "/api/v1/chat/completions",
        &json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}),
        &json!({"id": "gen-1", "choices": [{"index": 0, "message": message}], "usage": usage}),
    );
    let Usage { input, cache_read, cache_write, .. } = tape.usage();
    assert_eq!((input, cache_read, cache_write), (44, 50, 100));
    assert_eq!(tape.decoder.total_reported_cost(), Some(0.75));
}

#[test]
fn chunks_without_ids_are_one_answer() {
    let chunk = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let mut tape = Tape::default();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    let exchange = tape.ask("/v1/chat/completions", &request);
    tape.say(&exchange, 200, &[&sse(&[chunk("Hel"), chunk("lo")]), "data: [DONE]\n\n"]);
    tape.end(&exchange, None);
    assert_eq!(tape.lines(), ["user text: Hello", "assistant text: Hello"]);
}

#[test]
fn embeddings_pictures_and_speech_are_calls_with_their_tokens() {
    let cases = [
        (
            "/v1/embeddings",
            json!({"model": "e", "input": ["one", "two"]}),
            json!({"object": "list", "model": "e-1", "usage": {"prompt_tokens": 8, "total_tokens": 8},
                "data": [{"embedding": [0.1, 0.2, 0.3]}, {"embedding": [0.1, 0.2, 0.3]}]}),
            ["user text: one\n\ntwo", "assistant text: [2 embeddings of 3 numbers]"],
        ),
        (
            "/v2/embed",
            json!({"model": "e", "texts": ["one"]}),
            json!({"embeddings": {"float": [[0.5, 0.5]]}, "meta": {"billed_units": {"input_tokens": 8}}}),
            ["user text: one", "assistant text: [1 embeddings of 2 numbers]"],
        ),
        (
            "/api/embed",
            json!({"model": "e", "input": "one"}),
            json!({"model": "e", "embeddings": [[0.5]], "prompt_eval_count": 8}),
            ["user text: one", "assistant text: [1 embeddings of 1 numbers]"],
        ),
        (
            "/v1/images/generations",
            json!({"model": "i", "prompt": "a heron"}),
            json!({"data": [{"url": "https://x.example/1.png"}], "usage": {"input_tokens": 8, "output_tokens": 9}}),
            ["user text: a heron", "assistant text: [image, https://x.example/1.png]"],
        ),
        (
            "/v1/messages/batches",
            json!({"requests": [{"custom_id": "a", "params": {}}]}),
            json!({"id": "msgbatch_1", "processing_status": "in_progress"}),
            ["user text: [batch of 1 requests]", "assistant text: [batch msgbatch_1: in_progress]"],
        ),
    ];
    for (path, request, answer, expected) in cases {
        let mut tape = Tape::default();
        tape.exchange(path, &request, &answer);
        assert_eq!(tape.lines(), expected, "{path}");
        let expected = if path.ends_with("batches") { 0 } else { 8 };
        assert_eq!(tape.usage().input, expected, "{path}");
    }
    let mut tape = Tape::default();
    let exchange =
        tape.ask("/v1/audio/speech", &json!({"model": "tts", "input": "Hello", "voice": "v"}));
    tape.say(&exchange, 200, &[]);
    tape.take(&TrafficPiece::new_chunk(&exchange, 1, b"\xff\xfb\x90"));
    tape.end(&exchange, None);
    let spoken =
        format!("assistant text: [data, 3 bytes, blake3 {}]", blake3::hash(b"\xff\xfb\x90"));
    assert_eq!(tape.lines(), ["user text: Hello", &spoken]);
    assert_eq!(tape.entries[1].model.as_deref(), Some("tts"));
}

#[test]
fn the_results_of_a_batch_are_billed_once_each() {
    let result = |id: &str, output: u64| {
        json!({"custom_id": id, "result": {"type": "succeeded", "message": {"id": format!("msg_{id}"),
            "type": "message", "role": "assistant", "model": "m-1", "content": [{"type": "text", "text": id}],
            "usage": {"input_tokens": 1, "output_tokens": output}}}})
    };
    let failed =
        json!({"custom_id": "c", "result": {"type": "errored", "error": {"message": "no"}}});
    let tape =
        downloaded("/v1/messages/batches/b/results", &[result("a", 2), result("b", 3), failed]);
    assert_eq!(tape.lines()[..2], ["assistant text: a", "assistant text: b"]);
    assert!(tape.lines()[2].starts_with("system error: "));
    assert_eq!((tape.usage().input, tape.usage().output), (2, 5));
    assert_eq!(tape.entries[1].message_id.as_deref(), Some("msg_b"));
    assert_eq!(about(&tape.entries[1], "custom_id"), json!("b"));
}

/// A fetched file with these lines.
fn downloaded(path: &str, objects: &[Value]) -> Tape {
    let mut tape = Tape::default();
    let mut piece = TrafficPiece::new(TrafficPieceKind::Request, "x");
    (piece.method, piece.path) = (Some("GET".into()), Some(path.to_owned().into()));
    tape.take(&piece);
    tape.say("x", 200, &[]);
    tape.take(&TrafficPiece::new_chunk("x", 1, &lines(objects)));
    tape.end("x", None);
    tape
}

#[test]
fn the_results_of_a_batch_may_be_a_file() {
    let completion = json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let response = json!({"status_code": 200, "body": completion});
    let path = "/v1/files/file-1/content";
    let tape = downloaded(path, &[json!({"custom_id": "a", "response": response, "error": null})]);
    assert_eq!(tape.lines(), ["assistant text: Hi"]);
    assert_eq!((tape.usage().input, tape.usage().output), (3, 2));
    assert_eq!(downloaded(path, &[json!({"prompt": "x"})]).entries, []);
}
