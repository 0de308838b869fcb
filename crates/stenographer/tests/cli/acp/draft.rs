//! Draft 2 of the protocol: a state ends a turn, messages have ids and can be replaced, terminals belong to the
//! agent.

use super::*;

/// An agent that speaks draft 2.
const SECOND: &str = r#"
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-0002","update":'"$1"'}}'; }
while read -r line; do
case "$line" in
*initialize*) say '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"toy","version":"2"},"capabilities":{}}}';;
*session/new*) say '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"sess-0002"}}';;
*session/prompt*)
 say '{"jsonrpc":"2.0","id":2,"result":{"messageId":"u1"}}'
 update '{"sessionUpdate":"user_message","messageId":"u1","content":[{"type":"text","text":"what is here?"}]}'
 update '{"sessionUpdate":"state_update","state":"running"}'
 update '{"sessionUpdate":"agent_thought_chunk","messageId":"m1","content":{"type":"text","text":"Let me see"}}'
 update '{"sessionUpdate":"tool_call_update","toolCallId":"call-1","title":"ls","kind":"execute","status":"pending","rawInput":{"command":"ls"},"content":[{"type":"terminal","terminalId":"t1"}]}'
 say '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"sess-0002","title":"Run ls?","subject":{"type":"tool_call","toolCall":{"toolCallId":"call-1"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}';;
*optionId*)
 update '{"sessionUpdate":"terminal_output_chunk","terminalId":"t1","data":"YS50"}'
 update '{"sessionUpdate":"terminal_output_chunk","terminalId":"t1","data":"eHQ="}'
 update '{"sessionUpdate":"terminal_update","terminalId":"t1","exitStatus":{"exitCode":0}}'
 update '{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"completed"}'
 update '{"sessionUpdate":"agent_message","messageId":"m1","content":[]}'
 update '{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"One "}}'
 update '{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"file."}}'
 update '{"sessionUpdate":"agent_message","messageId":"m1","content":[{"type":"text","text":"One file."}]}'
 update '{"sessionUpdate":"from_the_future","x":1}'
 update '{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","usage":{"totalTokens":12,"inputTokens":10,"outputTokens":2}}';;
esac
done
exit 7
"#;

#[test]
fn a_conversation_in_draft_2_is_the_same_conversation() {
    let home = Home::new();
    let mut editor = Editor::start(home.command(&["acp", "--", "sh", "-c", SECOND, "sh"]));
    editor.ask(&INITIALIZE.replace("\"protocolVersion\":1", "\"protocolVersion\":2"));
    editor.ask(NEW);
    let mut heard = editor.ask(&PROMPT.replace("sess-0001", "sess-0002"));
    while !heard.contains("request_permission") {
        heard = editor.heard();
    }
    heard = editor.ask(ALLOW);
    while !heard.contains("\"idle\"") {
        heard = editor.heard();
    }
    assert_eq!(editor.leave(), Some(7));
    let shown = home.steno(&["show", "sess-0002", "--json"]).ok();
    let (future, known): (Vec<_>, Vec<_>) =
        shown.lines().partition(|line| line.contains("from_the_future"));
    assert_eq!(future.len(), 1, "{shown}");
    let entries = assert_conversation(&known.join("\n"), "a.txt");
    assert_eq!(entries[0]["message_id"], "u1");
    assert_eq!(entries[5]["usage"]["input"], 10, "{}", entries[5]);
    let listed = home.steno(&["list", "--json"]).ok();
    assert!(listed.contains("\"agent\":\"toy\""), "{listed}");
    assert!(kept(&home, AcpSide::Agent).ends_with(b"\"outputTokens\":2}}}}\n"));
}

#[test]
fn an_agent_of_draft_2_only_is_detected_at_once() {
    let home = Home::new();
    home.file("second.sh", SECOND);
    let ran = home.finish(home.command(&["run", "--agent", "sh second.sh", "look"]), b"");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("the agent uses version 2 of the protocol, not 1"), "{ran}");
}
