//! A few records of each format, written by hand.

/// File names and their content.
pub(crate) const SAMPLES: [(&str, &str); 23] = [
    ("aider.chat.history.md", AIDER),
    ("T-1.json", AMP),
    ("trajectory.json", ATIF),
    ("chat.json", CHAT_COMPLETION),
    ("claude.jsonl", CLAUDE),
    ("ui_messages.json", CLINE),
    ("rollout-2026-01-01T00-00-00-a.jsonl", CODEX),
    ("events.jsonl", COPILOT),
    ("cursor.jsonl", CURSOR),
    ("droid.jsonl", DROID),
    ("session-2026.json", GEMINI),
    ("session-2026.jsonl", GEMINI_LINES),
    ("goose.jsonl", GOOSE),
    ("log.json", INSPECT),
    ("litellm.jsonl", LITELLM),
    ("export.json", OPENCODE),
    ("spans.json", OTEL),
    ("pi.jsonl", PI),
    ("qwen.jsonl", QWEN),
    ("run.traj", SWE_AGENT),
    ("ui.json", VERCEL),
    ("messages.jsonl", VIBE),
    ("vscode.json", VSCODE),
];

const AIDER: &str = "
# aider chat started at 2026-01-01 00:00:00

> Main model: m with diff edit format  

#### Fix it  

Done.

> Tokens: 3.2k sent, 21 received. Cost: $0.0082 message, $0.0082 session.  
";

const AMP: &str = r#"{"v":3,"id":"T-1","created":1770000000000,"title":"Fix","messages":[
{"role":"user","messageId":0,"content":[{"type":"text","text":"Fix it"}],"meta":{"sentAt":1770000000000}},
{"role":"assistant","messageId":1,"content":[{"type":"thinking","thinking":"Hm"},{"type":"tool_use","id":"t","name":"Read","input":{"path":"a"}}],"state":{"type":"complete","stopReason":"tool_use"},"usage":{"model":"m","inputTokens":3,"outputTokens":2,"cacheReadInputTokens":1,"cacheCreationInputTokens":0}},
{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"t","run":{"status":"done","result":"a"}}]}
],"usageLedger":{"events":[{"id":"e","timestamp":"2026-01-01T00:00:00Z","model":"m","credits":1,"tokens":{"input":3,"output":2},"operationType":"inference","toMessageId":1}]}}
"#;

const ATIF: &str = r#"{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"a","version":"1","model_name":"m"},"steps":[
{"step_id":1,"source":"user","message":"Fix it"},
{"step_id":2,"timestamp":"2026-01-01T00:00:00Z","source":"agent","message":"","tool_calls":[{"tool_call_id":"c","function_name":"ls","arguments":{}}],"observation":{"results":[{"source_call_id":"c","content":"a"}]},"metrics":{"prompt_tokens":3,"completion_tokens":2}}
]}
"#;

const CHAT_COMPLETION: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1770000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],
"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}
"#;

const CLAUDE: &str = r#"{"type":"summary","summary":"Fix","leafUuid":"u2"}
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","version":"2.1.0","gitBranch":"main","isSidechain":false,"userType":"external","message":{"role":"user","content":"Fix it"}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","isSidechain":false,"requestId":"r","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Hm","signature":"x"}],"usage":{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":1}}}
{"type":"assistant","uuid":"u3","parentUuid":"u2","sessionId":"s","timestamp":"2026-01-01T00:00:02.000Z","isSidechain":false,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a"}}],"usage":{"input_tokens":3,"output_tokens":9}}}
{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}],"is_error":true}]},"toolUseResult":{"stdout":"a"}}
{"type":"system","subtype":"compact_boundary","uuid":"u5","parentUuid":null,"logicalParentUuid":"u4","sessionId":"s","timestamp":"2026-01-01T00:00:04.000Z","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9}}
{"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-01T00:00:05.000Z","sessionId":"s","content":"more"}
"#;

const CLINE: &str = r#"[{"ts":1770000000000,"type":"say","say":"task","text":"Fix it","images":["data:image/png;base64,aGk="]},
{"ts":1770000001000,"type":"say","say":"api_req_started","text":"{\"request\":\"r\",\"tokensIn\":3,\"tokensOut\":2,\"cost\":0.1}"},
{"ts":1770000002000,"type":"say","say":"text","text":"Look"},
{"ts":1770000003000,"type":"ask","ask":"command","text":"ls","partial":true},
{"ts":1770000004000,"type":"say","say":"command_output","text":"a"}]
"#;

const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.140.0","git":{"branch":"main"}}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"turn_context","payload":{"cwd":"/w","model":"m"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Fix it"}}
{"timestamp":"2026-01-01T00:00:02.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look"}]}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"a"}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":3,"reasoning_output_tokens":1,"total_tokens":12}}}}
{"timestamp":"2026-01-01T00:00:06.000Z","type":"compacted","payload":{"message":"short"}}
"#;

const COPILOT: &str = r#"{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"1.0.0","startTime":"2026-01-01T00:00:00.000Z"},"id":"e1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}
{"type":"user.message","data":{"content":"Fix it","attachments":[]},"id":"e2","timestamp":"2026-01-01T00:00:01.000Z","parentId":"e1"}
{"type":"assistant.message","data":{"messageId":"m1","content":"Look","toolRequests":[{"toolCallId":"c","name":"bash","arguments":{"command":"ls"}}]},"id":"e3","timestamp":"2026-01-01T00:00:02.000Z","parentId":"e2"}
{"type":"tool.execution_complete","data":{"toolCallId":"c","success":true,"result":{"content":"a"}},"id":"e4","timestamp":"2026-01-01T00:00:03.000Z","parentId":"e3"}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":9,"outputTokens":2,"cacheReadTokens":4}}}},"id":"e5","timestamp":"2026-01-01T00:00:04.000Z","parentId":"e4"}
"#;

const CURSOR: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nFix it\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"Look"},{"type":"tool_use","name":"Read","input":{"path":"a"}}]}}
"#;

const DROID: &str = r#"{"type":"session_start","id":"s","title":"Fix","cwd":"/w","version":2}
{"type":"message","id":"m1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"Fix it"}]}}
{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"LS","input":{}}]}}
{"type":"message","id":"m3","parentId":"m2","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}}
"#;

const GEMINI: &str = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:09.000Z","messages":[
{"id":"1","timestamp":"2026-01-01T00:00:00.000Z","type":"user","content":"Fix it"},
{"id":"2","timestamp":"2026-01-01T00:00:01.000Z","type":"gemini","content":"Look","model":"m","thoughts":[{"subject":"a","description":"b","timestamp":"2026-01-01T00:00:01.000Z"}],"tokens":{"input":9,"output":2,"cached":4,"thoughts":1,"tool":0,"total":12},"toolCalls":[{"id":"c","name":"ls","args":{},"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a"}}}],"status":"success"}]}
]}
"#;

const GEMINI_LINES: &str = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}
{"id":"1","timestamp":"2026-01-01T00:00:00.000Z","type":"user","content":[{"text":"Fix it"}]}
{"id":"2","timestamp":"2026-01-01T00:00:01.000Z","type":"gemini","content":"Look","model":"m","tokens":{"input":9,"output":2,"cached":4,"thoughts":1,"tool":0,"total":12}}
{"$set":{"lastUpdated":"2026-01-01T00:00:02.000Z"}}
{"$rewindTo":"2"}
"#;

const GOOSE: &str = r#"{"working_dir":"/w","description":"Fix","message_count":2,"total_tokens":9,"input_tokens":7,"output_tokens":2}
{"role":"user","created":1770000000,"content":[{"type":"text","text":"Fix it"}]}
{"role":"assistant","created":1770000001,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]}
{"role":"user","created":1770000002,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"a"}]}}]}
"#;

const INSPECT: &str = r#"{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[
{"id":1,"epoch":1,"messages":[{"id":"a","role":"user","content":"2+2","source":"input"},{"id":"b","role":"assistant","content":[{"type":"text","text":"4"}]}],"scores":{"s":{"value":NaN}},"model_usage":{"m":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}
]}
"#;

const LITELLM: &str = r#"{"id":"l1","trace_id":"t","call_type":"acompletion","stream":false,"response_cost":0.1,"status":"success","model":"m","custom_llm_provider":"openai","prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"startTime":1770000000.5,"endTime":1770000001.5,"messages":[{"role":"user","content":"Fix it"}],"response":{"id":"r","choices":[{"message":{"role":"assistant","content":"Done"}}]}}
{"id":"l2","trace_id":"t","call_type":"acompletion","stream":false,"response_cost":0.1,"status":"failure","model":"m","startTime":1770000002.5,"endTime":1770000003.5,"messages":[{"role":"user","content":"Fix it"},{"role":"assistant","content":"Done"},{"role":"user","content":"More"}],"response":{},"error_str":"no"}
"#;

const OPENCODE: &str = r#"{"info":{"id":"ses_1","version":"1.0","projectID":"p","directory":"/w","title":"Fix","time":{"created":1770000000000,"updated":1770000009000}},"messages":[
{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1770000000000}},"parts":[{"id":"prt_1","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"Fix it"}]},
{"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":"msg_1","modelID":"m","providerID":"p","time":{"created":1770000001000,"completed":1770000002000},"cost":0.1,"tokens":{"input":3,"output":2,"reasoning":1,"cache":{"read":4,"write":0}}},"parts":[{"id":"prt_2","messageID":"msg_2","sessionID":"ses_1","type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a","time":{"start":1770000001000,"end":1770000002000}}}]}
]}
"#;

const OTEL: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[
{"traceId":"t","spanId":"1","parentSpanId":"1","name":"chat m","startTimeUnixNano":"1770000000000000000","endTimeUnixNano":"1770000001000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"3"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Hi\"}]}]"}}],"status":{"code":2,"message":"no"}}
]}]}]}
"#;

const PI: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Fix it"}],"timestamp":1770000000000}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}],"provider":"p","model":"m","usage":{"input":3,"output":2,"cacheRead":1,"cacheWrite":0,"totalTokens":6,"cost":{"total":0.1}},"stopReason":"toolUse","timestamp":1770000001000}}
{"type":"message","id":"d","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"a"}],"isError":false,"timestamp":1770000002000}}
{"type":"compaction","id":"e","parentId":"d","timestamp":"2026-01-01T00:00:04.000Z","summary":"short","firstKeptEntryId":"b","tokensBefore":9}
"#;

const QWEN: &str = r#"{"uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","type":"user","cwd":"/w","version":"0.20.0","gitBranch":"main","message":{"role":"user","parts":[{"text":"Fix it"}]}}
{"uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","type":"assistant","cwd":"/w","version":"0.20.0","model":"m","message":{"role":"model","parts":[{"text":"Hm","thought":true},{"functionCall":{"id":"c","name":"ls","args":{}}}]},"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"cachedContentTokenCount":4,"thoughtsTokenCount":1,"totalTokenCount":12}}
{"uuid":"u3","parentUuid":"u2","sessionId":"s","timestamp":"2026-01-01T00:00:02.000Z","type":"tool_result","cwd":"/w","version":"0.20.0","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a"}}}]},"toolCallResult":{"callId":"c","status":"success"}}
"#;

const SWE_AGENT: &str = r#"{"environment":"e","trajectory":[{"action":"ls","observation":"a","thought":"Look"}],"history":[
{"role":"system","content":"You are"},
{"role":"user","content":"Fix it"},
{"role":"assistant","content":"Look","thought":"Look","action":"ls"},
{"role":"user","content":"a"}
],"info":{"exit_status":"submitted","model_stats":{"instance_cost":0.1,"tokens_sent":3,"tokens_received":2}}}
"#;

const VERCEL: &str = r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"Fix it"}]},
{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"Hm"},{"type":"tool-ls","toolCallId":"c","state":"output-available","input":{},"output":"a"},{"type":"text","text":"Done","state":"done"}]}]
"#;

const VIBE: &str = r#"{"role": "user", "content": "Fix it", "message_id": "m1"}
{"role": "assistant", "content": "Done", "reasoning_content": "Hm", "message_id": "m2", "tool_calls": [{"id": "c", "index": 0, "function": {"name": "ls", "arguments": "{}"}}]}
{"role": "tool", "content": "a", "name": "ls", "tool_call_id": "c", "message_id": "m3"}
"#;

const VSCODE: &str = r#"{"version":3,"requesterUsername":"u","responderUsername":"GitHub Copilot","initialLocation":"panel","sessionId":"s","creationDate":1770000000000,"lastMessageDate":1770000009000,"requests":[
{"requestId":"request_1","message":{"text":"Fix it","parts":[]},"variableData":{"variables":[]},"timestamp":1770000000000,"modelId":"copilot/m","response":[{"value":"Done"},{"kind":"toolInvocationSerialized","toolId":"t","toolCallId":"c","invocationMessage":"ls","isComplete":true}],"result":{"timings":{"totalElapsed":9}}}
]}
"#;
