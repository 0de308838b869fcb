use steno_agents::registry::session_locations::mcp_client_settings;

use super::*;

const PROGRAM: &str = "/opt/my tools/steno";

fn registration(name: &str) -> McpRegistration<'static> {
    let clients = mcp_client_settings(std::path::Path::new("/u"), &|_| None);
    let client = clients.into_iter().find(|client| client.agent == name).unwrap();
    McpRegistration { shape: client.shape, program: PROGRAM, serves_all: false, store: None }
}

fn agent_names() -> Vec<&'static str> {
    let clients = mcp_client_settings(std::path::Path::new("/u"), &|_| None);
    clients.into_iter().map(|client| client.agent).collect()
}

#[test]
fn a_new_file_has_only_our_server() {
    insta::assert_snapshot!(registration("claude-code").add_to("").unwrap(), @r#"
    {
      "mcpServers": {
        "steno": {
          "type": "stdio",
          "command": "/opt/my tools/steno",
          "args": ["mcp"]
        }
      }
    }
    "#);
    insta::assert_snapshot!(registration("opencode").add_to("").unwrap(), @r#"
    {
      "mcp": {
        "steno": {
          "type": "local",
          "command": ["/opt/my tools/steno", "mcp"],
          "enabled": true
        }
      }
    }
    "#);
    insta::assert_snapshot!(registration("zed").add_to("").unwrap(), @r#"
    {
      "context_servers": {
        "steno": {
          "source": "custom",
          "command": "/opt/my tools/steno",
          "args": ["mcp"]
        }
      }
    }
    "#);
    insta::assert_snapshot!(registration("codex").add_to("").unwrap(), @r#"
    [mcp_servers.steno]
    command = "/opt/my tools/steno"
    args = ["mcp"]
    "#);
}

#[test]
fn other_settings_and_comments_stay() {
    let json = "{\n  // mine\n  \"mcpServers\": {\n    \"own\": { \"command\": \"x\" }, // loud\n  },\n}\n";
    let gemini = registration("gemini");
    let after = gemini.add_to(json).unwrap();
    assert!(after.contains("// loud") && after.contains(PROGRAM), "{after}");
    assert_eq!(gemini.remove_from(&after).unwrap(), json);
    let codex = registration("codex");
    for toml in [
        "# mine\r\nmodel = \"o3\"\r\n\r\n[mcp_servers.own]\r\ncommand = \"x\" # loud\r\n\r\n[tui]\r\nx = 1\r\n",
        "[tui]\nx = 1\n",
        "model = \"o3\"",
    ] {
        let after = codex.add_to(toml).unwrap();
        assert_eq!(codex.state(&after).unwrap(), RegistrationState::Installed, "{after}");
        assert_eq!(codex.remove_from(&after).unwrap().trim_end(), toml.trim_end(), "{after}");
    }
}

#[test]
fn the_state_distinguishes_another_program_and_scope() {
    for name in agent_names() {
        let now = registration(name);
        let older = McpRegistration { program: "/old it's/steno", ..registration(name) };
        let all = McpRegistration { serves_all: true, ..registration(name) };
        assert_eq!(now.state("").unwrap(), RegistrationState::NotInstalled);
        let elsewhere = McpRegistration { store: Some("/old store"), ..registration(name) };
        let text = elsewhere.add_to("").unwrap();
        assert_eq!(elsewhere.state(&text).unwrap(), RegistrationState::Installed, "{text}");
        assert!(text.contains("STENO_HOME"), "{text}");
        for other in [older, all, elsewhere] {
            let text = other.add_to("").unwrap();
            assert_eq!(now.state(&text).unwrap(), RegistrationState::Outdated, "{text}");
            let text = now.add_to(&text).unwrap();
            assert_eq!(now.state(&text).unwrap(), RegistrationState::Installed, "{text}");
            assert!(!text.contains("old") && !text.contains("--all"), "{text}");
        }
    }
}

#[test]
fn a_foreign_server_of_this_name_is_refused() {
    let text = registration("cursor").add_to("").unwrap().replace(PROGRAM, "/usr/bin/stenographer");
    let refused = registration("cursor").add_to(&text).unwrap_err();
    assert_eq!(refused.reason, "another server has the name `steno`");
    assert_eq!(registration("cursor").remove_from(&text).unwrap_err(), refused);
    let text = "[mcp_servers.steno]\ncommand = \"other\"\n";
    assert_eq!(registration("codex").state(text).unwrap_err(), refused);
}

#[test]
fn settings_that_cannot_be_read_are_refused() {
    let refused = |name: &str, text: &str| registration(name).add_to(text).unwrap_err();
    assert_eq!(refused("gemini", "{\n  \"a\": 1,\n  oops\n}").line, 3);
    assert_eq!(
        refused("zed", "{\"context_servers\": 1}").reason,
        "`context_servers` should be an object"
    );
    assert_eq!(refused("codex", "a = 1\nb = \n").line, 2);
    let reason = "`mcp_servers` should be a table of tables";
    assert_eq!(refused("codex", "mcp_servers = 1").reason, reason);
}
