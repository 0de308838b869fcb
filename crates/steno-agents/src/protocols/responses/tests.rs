use serde_json::json;

use super::*;

fn of(item: Value) -> Option<Entry> {
    item_entry(item.as_object().unwrap())
}

#[test]
fn parts_become_one_text() {
    let message = of(json!({"type": "message", "role": "user", "id": "m", "content": [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,Zm9v"},
        {"type": "input_image", "image_url": null},
    ]}))
    .unwrap();
    let lines: Vec<_> = message.content.lines().collect();
    assert_eq!((lines[0], lines[2]), ("look", "[input_image]"));
    assert!(lines[1].starts_with("[image/png, 3 bytes, blake3 "));
    assert_eq!(message.message_id.as_deref(), Some("m"));
}

#[test]
fn calls_have_structured_arguments() {
    let call = of(
        json!({"type": "function_call", "name": "ls", "arguments": "{\"a\":1.50}", "call_id": "c"}),
    )
    .unwrap();
    assert_eq!(call.tool_input, serde_json::from_str("{\"a\":1.50}").ok());
    let patch =
        of(json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"}));
    assert_eq!(patch.unwrap().tool_input, Some(json!("*** Begin")));
    let search =
        of(json!({"type": "web_search_call", "id": "w", "action": {"query": "x"}})).unwrap();
    assert_eq!(search.tool_name.as_deref(), Some("web_search"));
    assert_eq!(search.tool_call_id.as_deref(), Some("w"));
    let code =
        of(json!({"type": "code_interpreter_call", "id": "k", "code": "1+1", "outputs": []}));
    assert_eq!(code.unwrap().tool_input, Some(json!({"code": "1+1"})));
}

#[test]
fn failed_tools_are_marked() {
    let failed = |item: Value| of(item).unwrap().metadata.is_some();
    let output =
        |output: Value| json!({"type": "function_call_output", "call_id": "c", "output": output});
    assert!(failed(output(json!("Exit code: 1\nOutput:\nno"))));
    assert!(failed(output(json!({"content": "no", "success": false}))));
    assert!(failed(output(json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":2}}"))));
    assert!(!failed(output(json!("Output:\nExit code: 1"))));
    assert!(!failed(output(json!([{"type": "input_text", "text": "yes"}]))));
}

#[test]
fn ciphertext_is_no_thought_and_unknown_items_survive() {
    assert_eq!(of(json!({"type": "reasoning", "summary": [], "encrypted_content": "x"})), None);
    let thought =
        of(json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}));
    assert_eq!(thought.unwrap().content, "hm");
    let unknown = of(json!({"type": "ghost_snapshot", "n": 1})).unwrap();
    assert_eq!(unknown.kind, EntryKind::Other);
    assert_eq!(unknown.metadata.unwrap()["n"], json!(1));
}
