//! Finds the conversation of a request.

use super::*;

const CHAT: &str = "/v1/chat/completions";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn request(messages: &[Value]) -> Value {
    json!({"model": "m", "messages": messages})
}

fn completion(text: &str) -> Value {
    json!({"id": format!("id-{text}"), "object": "chat.completion", "model": "m-1",
        "choices": [{"index": 0, "message": assistant(text), "finish_reason": "stop"}]})
}

fn calling(id: &str) -> Value {
    let call =
        json!({"id": id, "type": "function", "function": {"name": "task", "arguments": "{}"}});
    json!({"id": format!("id-{id}"), "object": "chat.completion", "model": "m-1", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": null, "tool_calls": [call]},
        "finish_reason": "tool_calls"}]})
}

#[test]
fn parallel_conversations_have_sources_of_their_own() {
    let mut tape = Tape::default();
    let first = tape.ask(CHAT, &request(&[user("One")]));
    let second = tape.ask(CHAT, &request(&[user("Two")]));
    let same = tape.ask(CHAT, &request(&[user("Two")]));
    for (exchange, text) in [(&second, "two"), (&first, "one"), (&same, "deux")] {
        tape.say(exchange, 200, &[&completion(text).to_string()]);
        tape.end(exchange, None);
    }
    tape.exchange(CHAT, &request(&[user("Two"), assistant("two"), user("More")]), &completion("2"));
    tape.exchange(CHAT, &request(&[user("One"), assistant("one"), user("More")]), &completion("1"));
    assert_eq!(
        tape.lines_with_source(),
        [
            "primary user text: One",
            "subagent:1 user text: Two",
            "subagent:2 user text: Two",
            "subagent:1 assistant text: two",
            "primary assistant text: one",
            "subagent:2 assistant text: deux",
            "subagent:1 user text: More",
            "subagent:1 assistant text: 2",
            "primary user text: More",
            "primary assistant text: 1",
        ]
    );
}

#[test]
fn a_subagent_works_while_the_call_that_began_it_waits() {
    let mut tape = Tape::default();
    tape.exchange(CHAT, &request(&[user("Do it")]), &calling("call_1"));
    tape.exchange(CHAT, &request(&[user("Look")]), &completion("Seen"));
    let call = calling("call_1")["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "Seen"});
    tape.exchange(CHAT, &request(&[user("Do it"), call, result]), &completion("Done"));
    assert_eq!(
        tape.lines_with_source(),
        [
            "primary user text: Do it",
            "primary assistant tool_call: task({})",
            "subagent:1 user text: Look",
            "subagent:1 assistant text: Seen",
            "primary tool tool_result: task: Seen",
            "primary assistant text: Done",
        ]
    );
}

#[test]
fn successive_conversations_share_the_primary_source() {
    let mut tape = Tape::default();
    tape.exchange(CHAT, &request(&[user("One")]), &completion("one"));
    tape.exchange(CHAT, &request(&[user("Two")]), &completion("two"));
    // The same request again, now to its end.
    tape.exchange(CHAT, &request(&[user("One")]), &completion("one"));
    tape.exchange(CHAT, &request(&[user("One"), assistant("one"), user("More")]), &completion("1"));
    let sources: Vec<_> = tape.entries.iter().map(|entry| entry.source.as_str()).collect();
    assert_eq!(sources, ["primary"; 8]);
    assert_eq!(tape.lines()[4..6], ["user text: One", "assistant text: one"]);
}

#[test]
fn a_fork_emits_only_new_messages() {
    let mut tape = Tape::default();
    let opening = [user("One"), assistant("one")];
    tape.exchange(CHAT, &request(&opening[..1]), &completion("one"));
    tape.exchange(CHAT, &request(&[&opening[..], &[user("Two")]].concat()), &completion("two"));
    tape.exchange(CHAT, &request(&[&opening[..], &[user("Three")]].concat()), &completion("three"));
    assert_eq!(
        tape.lines_with_source()[2..],
        [
            "primary user text: Two",
            "primary assistant text: two",
            "subagent:1 user text: Three",
            "subagent:1 assistant text: three",
        ]
    );
    assert_eq!(about(&tape.entries[4], "fork_of"), json!("primary"));
}

#[test]
fn instructions_may_change_and_answers_come_back_in_other_words() {
    let mut tape = Tape::default();
    let with = |system: &str, rest: &[Value]| {
        request(&[&[json!({"role": "system", "content": system})][..], rest].concat())
    };
    tape.exchange(CHAT, &with("It is noon", &[user("Hi")]), &completion("Hello  you \n"));
    for echo in ["Hello you", "Hello"] {
        let mut again = Tape { decoder: tape.decoder.clone(), exchanges: 5, ..Tape::default() };
        let messages = [user("Hi"), assistant(echo), user("Bye")];
        again.exchange(CHAT, &with("It is one", &messages), &completion("Bye"));
        assert_eq!(
            again.lines_with_source(),
            [
                "primary system text: It is one",
                "primary user text: Bye",
                "primary assistant text: Bye",
            ]
        );
    }
}

#[test]
fn emits_an_unrecorded_history_completely() {
    let mut tape = Tape::default();
    let messages = [user("Hi"), assistant("Hello"), user("Bye")];
    tape.exchange(CHAT, &request(&messages), &completion("Bye"));
    let texts = ["user text: Hi", "assistant text: Hello", "user text: Bye", "assistant text: Bye"];
    assert_eq!(tape.lines(), texts);
}

#[test]
fn settings_may_put_all_into_one_source() {
    let mut tape = Tape::default();
    tape.take(&TrafficPiece::new_settings(false));
    let first = tape.ask(CHAT, &request(&[user("One")]));
    tape.exchange(CHAT, &request(&[user("Two")]), &completion("two"));
    tape.say(&first, 200, &[&completion("one").to_string()]);
    tape.end(&first, None);
    assert!(tape.entries.iter().all(|entry| entry.source == "primary"));
    // Entries of another exchange follow the answer, so a prompt and its answer stay together.
    assert_eq!(
        tape.lines(),
        ["user text: One", "assistant text: one", "user text: Two", "assistant text: two"]
    );
}

#[test]
fn a_retry_in_one_source_repeats_its_prompt_if_others_have_come_since() {
    let failing = |tape: &mut Tape| {
        let failed = tape.ask(CHAT, &request(&[user("One")]));
        tape.say(&failed, 503, &[]);
        // A client that retries does not wait for the rest.
        tape.end(&failed, Some("the client closed the connection"));
    };
    let mut tape = Tape::default();
    tape.take(&TrafficPiece::new_settings(false));
    failing(&mut tape);
    tape.exchange(CHAT, &request(&[user("Two")]), &completion("two"));
    tape.exchange(CHAT, &request(&[user("One")]), &completion("one"));
    assert_eq!(
        tape.lines(),
        [
            "user text: One",
            "system error: HTTP 503",
            "user text: Two",
            "assistant text: two",
            "user text: One",
            "assistant text: one",
        ]
    );
    assert_eq!(about(&tape.entries[4], "attempt"), json!(2));
    let mut tape = Tape::default();
    tape.take(&TrafficPiece::new_settings(false));
    failing(&mut tape);
    tape.exchange(CHAT, &request(&[user("One")]), &completion("one"));
    assert_eq!(tape.lines(), ["user text: One", "system error: HTTP 503", "assistant text: one"]);
}

#[test]
fn emits_unended_exchanges_of_one_source_in_order() {
    let mut tape = Tape::default();
    tape.take(&TrafficPiece::new_settings(false));
    tape.ask(CHAT, &request(&[user("One")]));
    tape.exchange(CHAT, &request(&[user("Two")]), &completion("two"));
    assert_eq!(tape.lines(), ["user text: One"]);
    let rest: Vec<_> = tape.decoder.finish().iter().map(line).collect();
    let cut = "primary system error: the recording ended in the middle of it";
    assert_eq!(rest, [cut, "primary user text: Two", "primary assistant text: two"]);
}

#[test]
fn a_conversation_that_goes_on_while_another_waits_gets_a_source_of_its_own() {
    let mut tape = Tape::default();
    tape.exchange(CHAT, &request(&[user("One")]), &completion("one"));
    let waiting = tape.ask(CHAT, &request(&[user("Two")]));
    tape.exchange(CHAT, &request(&[user("One"), assistant("one"), user("More")]), &completion("1"));
    tape.say(&waiting, 200, &[&completion("two").to_string()]);
    tape.end(&waiting, None);
    let history = [user("One"), assistant("one"), user("More"), assistant("1"), user("Last")];
    tape.exchange(CHAT, &request(&history), &completion("!"));
    assert_eq!(
        tape.lines_with_source(),
        [
            "primary user text: One",
            "primary assistant text: one",
            "primary user text: Two",
            "subagent:1 user text: More",
            "subagent:1 assistant text: 1",
            "primary assistant text: two",
            "subagent:1 user text: Last",
            "subagent:1 assistant text: !",
        ]
    );
    assert_eq!(about(&tape.entries[3], "fork_of"), json!("primary"));
}

#[test]
fn a_prompt_and_its_answer_name_the_same_exchange() {
    let mut tape = Tape::default();
    let exchanges: Vec<_> =
        (0..5).map(|n| tape.ask(CHAT, &request(&[user(&format!("ask {n}"))]))).collect();
    for (n, exchange) in exchanges.iter().enumerate().rev() {
        tape.say(exchange, 200, &[&completion(&format!("answer {n}")).to_string()]);
        tape.end(exchange, None);
    }
    for (n, exchange) in exchanges.iter().enumerate() {
        let own = tape.entries.iter().filter(|entry| about(entry, "exchange") == exchange.as_str());
        let (texts, sources): (Vec<_>, Vec<_>) =
            own.map(|entry| (entry.content.as_str(), entry.source.as_str())).unzip();
        assert_eq!(texts, [format!("ask {n}"), format!("answer {n}")]);
        assert_eq!(sources[0], sources[1]);
    }
}

#[test]
fn odd_arguments_of_calls_are_kept() {
    let call = |arguments: &str| {
        json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message":
            {"role": "assistant", "tool_calls": [{"id": "t", "function": {"arguments": arguments}}]}}]})
    };
    let decode_call = |arguments: &str| {
        let mut tape = Tape::default();
        tape.exchange(CHAT, &request(&[user("x")]), &call(arguments));
        let entry = tape.entries.remove(1);
        (entry.tool_name, entry.tool_input, entry.content)
    };
    let unknown = Some("unknown".to_owned());
    assert_eq!(
        decode_call("no {"),
        (unknown.clone(), Some(json!({"raw": "no {"})), "no {".to_owned())
    );
    assert_eq!(decode_call("[1]"), (unknown.clone(), None, "[\n  1\n]".to_owned()));
    assert_eq!(decode_call(""), (unknown, Some(json!({})), "{}".to_owned()));
}

#[test]
fn an_item_may_be_sent_back_as_a_reference() {
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "text": "I look."}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
        "arguments": "{}"});
    let thought =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let response = |id: &str, output: Value| json!({"id": id, "object": "response", "status": "completed", "model": "m-1", "output": output});
    let reference = |id: &str| json!({"type": "item_reference", "id": id});
    let mut tape = Tape::default();
    tape.exchange(
        "/v1/responses",
        &json!({"model": "m", "input": "Go"}),
        &response("r1", json!([thought, message, call])),
    );
    let input = json!([user("Go"), reference("rs_1"), reference("msg_1"), reference("fc_1"),
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"}]);
    tape.exchange(
        "/v1/responses",
        &json!({"model": "m", "input": input}),
        &response("r2", json!([message])),
    );
    assert_eq!(
        tape.lines_with_source(),
        [
            "primary user text: Go",
            "primary assistant text: I look.",
            "primary assistant tool_call: read({})",
            "primary tool tool_result: read: ok",
            "primary assistant text: I look.",
        ]
    );
}

#[test]
fn gemini_calls_may_get_ids_and_other_names_from_the_client() {
    let path = "/v1beta/models/m:generateContent";
    let part = |part: Value| json!({"candidates": [{"content": {"parts": [{"text": "I look."}, part]}, "finishReason": "STOP"}]});
    let ask = json!({"role": "user", "parts": [{"text": "Go"}]});
    let mut tape = Tape::default();
    let call = json!({"functionCall": {"name": "read", "args": {"b": 1, "a": 2}}});
    tape.exchange(path, &json!({"contents": [ask]}), &part(call));
    let echo =
        json!({"function_call": {"name": "read", "args": {"a": 2, "b": 1}, "id": "made-up"}});
    let result = json!({"function_response": {"name": "read", "id": "made-up", "response": {"output": "ok"}}});
    let contents = json!([ask, {"role": "model", "parts": [{"text": "I look."}, echo]},
        {"role": "user", "parts": [result]}]);
    tape.exchange(path, &json!({"contents": contents}), &part(json!({"text": "Done"})));
    assert_eq!(
        tape.lines_with_source()[3..],
        [
            "primary tool tool_result: read: ok",
            "primary assistant text: I look.",
            "primary assistant text: Done"
        ]
    );
}
