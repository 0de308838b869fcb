use super::*;

fn registration(name: &str) -> HookRegistration<'static> {
    let agent = hooked_agents().find(|agent| agent.name == name).unwrap();
    HookRegistration { agent, program: "/opt/my tools/steno" }
}

#[test]
fn a_new_file_has_only_our_hooks() {
    insta::assert_snapshot!(registration("cursor").add_to("").unwrap(), @r#"
    {
      "version": 1,
      "hooks": {
        "sessionStart": [
          {
            "command": "'/opt/my tools/steno' hook cursor"
          }
        ],
        "stop": [
          {
            "command": "'/opt/my tools/steno' hook cursor"
          }
        ],
        "subagentStop": [
          {
            "command": "'/opt/my tools/steno' hook cursor"
          }
        ],
        "preCompact": [
          {
            "command": "'/opt/my tools/steno' hook cursor"
          }
        ],
        "sessionEnd": [
          {
            "command": "'/opt/my tools/steno' hook cursor"
          }
        ]
      }
    }
    "#);
    let codex = registration("codex").add_to("").unwrap();
    assert_eq!(codex, "notify = [\"/opt/my tools/steno\", \"hook\", \"codex\"]\n");
}

/// Settings with comments, after adding our hooks.
const WITH_HOOKS: &str = r#"{
  // mine
  "model": "opus", /* why */
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "beep" }] }, // loud
      {
        "hooks": [
          {
            "type": "command",
            "command": "'/opt/my tools/steno' hook claude-code",
          },
        ],
      },
    ],
    "SessionStart": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "'/opt/my tools/steno' hook claude-code"
          }
        ]
      }
    ],
    "SubagentStop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "'/opt/my tools/steno' hook claude-code"
          }
        ]
      }
    ],
    "PreCompact": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "'/opt/my tools/steno' hook claude-code"
          }
        ]
      }
    ],
    "SessionEnd": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "'/opt/my tools/steno' hook claude-code"
          }
        ]
      }
    ],
  },
}
"#;

#[test]
fn other_settings_and_comments_stay() {
    let before = "{\n  // mine\n  \"model\": \"opus\", /* why */\n  \"hooks\": {\n    \"Stop\": [\n      \
        { \"hooks\": [{ \"type\": \"command\", \"command\": \"beep\" }] }, // loud\n    ],\n  },\n}\n";
    let after = registration("claude-code").add_to(before).unwrap();
    assert_eq!(after, WITH_HOOKS);
    assert_eq!(registration("claude-code").remove_from(&after).unwrap(), before);
}

#[test]
fn another_program_to_notify_is_called_too() {
    let before =
        "# mine\nmodel = \"o3\" # best\nnotify = [\"say\", \"done\"] # loud\n\n[tui]\nx = 1\n";
    let codex = registration("codex");
    let after = codex.add_to(before).unwrap();
    insta::assert_snapshot!(after, @r#"
    # mine
    model = "o3" # best
    notify = ["/opt/my tools/steno", "hook", "codex", "--", "say", "done"] # loud

    [tui]
    x = 1
    "#);
    assert_eq!(codex.remove_from(&after).unwrap(), before);
    assert_eq!(codex.add_to(&after).unwrap(), after);
    let tables = "[tui]\nx = 1\n";
    let after = codex.add_to(tables).unwrap();
    insta::assert_snapshot!(after, @r#"
    notify = ["/opt/my tools/steno", "hook", "codex"]
    [tui]
    x = 1
    "#);
    assert_eq!(codex.remove_from(&after).unwrap(), tables);
}

#[test]
fn lines_end_as_they_did() {
    let codex = registration("codex");
    for before in [
        "# mine\r\nmodel = \"o3\"\r\n\r\n[tui]\r\nx = 1\r\n",
        "model = \"o3\"\r\nnotify = [\"say\"]\r\n[tui]\r\nx = 1",
        "a = 1\nb = 2\r\nc = \"\"\"\r\nx\n\"\"\"\r\n",
    ] {
        let after = codex.add_to(before).unwrap();
        let new = after.split_inclusive('\n').find(|line| line.contains("steno")).unwrap();
        assert_eq!(new.ends_with("\r\n"), !before.starts_with("a = 1\n"), "{after:?}");
        assert_eq!(codex.remove_from(&after).unwrap(), before);
    }
    let after = codex.add_to("model = \"o3\"\r\nx = 1").unwrap();
    assert!(after.starts_with("model = \"o3\"\r\nx = 1\r\nnotify = "), "{after:?}");
    let claude = registration("claude-code");
    let before = "{\r\n  \"model\": \"opus\"\r\n}\r\n";
    let after = claude.add_to(before).unwrap();
    assert!(after.contains("\"model\": \"opus\",\r\n"), "{after:?}");
    assert_eq!(claude.remove_from(&after).unwrap(), before);
}

#[test]
fn the_state_distinguishes_another_program() {
    for agent in hooked_agents() {
        let now = HookRegistration { agent, program: "/new/steno" };
        let text = HookRegistration { agent, program: "/old it's/steno" }.add_to("").unwrap();
        assert_eq!(now.state("").unwrap(), RegistrationState::NotInstalled);
        assert_eq!(now.state(&text).unwrap(), RegistrationState::Outdated, "{text}");
        let text = now.add_to(&text).unwrap();
        assert_eq!(now.state(&text).unwrap(), RegistrationState::Installed, "{text}");
        assert!(!text.contains("old"));
    }
}

#[test]
fn settings_that_cannot_be_read_are_refused_with_their_line() {
    let refused = |name: &str, text: &str| registration(name).add_to(text).unwrap_err();
    assert_eq!(refused("claude-code", "{\n  \"a\": 1,\n  oops\n}").line, 3);
    assert_eq!(refused("claude-code", "[]").reason, "the settings should be an object");
    assert_eq!(refused("qwen", "{\"hooks\": 1}").reason, "`hooks` should be an object");
    assert_eq!(refused("gemini", "{\"hooks\": {\"SessionEnd\": 1}}").line, 1);
    assert_eq!(refused("codex", "a = 1\nb = \n").line, 2);
    assert_eq!(refused("codex", "notify = \"x\"").reason, "`notify` should be a list of strings");
}
