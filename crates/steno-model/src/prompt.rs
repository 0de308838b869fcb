//! The blocks that Steno and agents put before the user's text in a prompt: removes them, and reads the one that names
//! the session which another one continues.

/// Blocks that `steno run` puts before the task of a thread, in order.
const THREAD_BLOCKS: [&str; 4] =
    ["thread_context", "thread_injections", "thread_inbox", "thread_conversation"];

/// Blocks that agents put before the user's text.
const AGENT_BLOCKS: [&str; 5] = [
    "system-reminder",
    "session_context",
    "environment_context",
    "user_instructions",
    CONTINUED_SESSION_TAG,
];

/// The tag of the notice at the start of a session that continues a session of another agent.
pub const CONTINUED_SESSION_TAG: &str = "continued_session";

/// The start tag of the notice that a session continues the session `id` of `agent`.
pub fn continued_session_start(agent: &str, id: &str) -> String {
    format!("<{CONTINUED_SESSION_TAG} agent=\"{agent}\" session=\"{id}\">")
}

/// The id of the session that a text at the start of another session says it continues.
pub fn continued_session_id(text: &str) -> Option<&str> {
    let tag = text.trim_start().strip_prefix('<')?.strip_prefix(CONTINUED_SESSION_TAG)?;
    let (_, after) = tag.split_once('>')?.0.split_once(" session=\"")?;
    after.split_once('"').map(|(id, _)| id).filter(|id| !id.is_empty())
}

/// Removes the blocks that describe a thread.
pub fn without_thread_blocks(prompt: &str) -> &str {
    let mut rest = prompt;
    for name in THREAD_BLOCKS {
        let block = rest.trim_start().strip_prefix('<').and_then(|tag| tag.strip_prefix(name));
        let block = block.filter(|block| block.starts_with(['>', ' ']));
        if let Some((_, after)) = block.and_then(|block| block.split_once(&format!("</{name}>"))) {
            rest = after.trim_start();
        }
    }
    rest
}

/// Removes the context blocks of an agent; the result is empty if the prompt has nothing else.
pub fn without_agent_blocks(prompt: &str) -> &str {
    let mut rest = prompt.trim_start();
    while let Some(name) = AGENT_BLOCKS
        .iter()
        .find(|name| rest.strip_prefix('<').is_some_and(|tag| tag.starts_with(**name)))
    {
        let end = format!("</{name}>");
        rest = rest.split_once(&end).map_or("", |(_, after)| after.trim_start());
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_of_a_continued_session_names_it() {
        let start = continued_session_start("codex", "s-1");
        let notice = format!("{start}\nText with session=\"x\"\n</{CONTINUED_SESSION_TAG}>\n");
        assert_eq!(continued_session_id(&notice), Some("s-1"));
        assert_eq!(without_agent_blocks(&format!("{notice}Go on")), "Go on");
        for other in [
            "",
            "<continued_session",
            "<continued_session> session=\"x\"",
            "Say <continued_session session=\"x\">",
        ] {
            assert_eq!(continued_session_id(other), None, "{other}");
        }
    }

    #[test]
    fn thread_blocks_are_removed_in_their_order() {
        let context = "<thread_context thread=\"t\">\n\n</thread_context>\n\n";
        let more = "<thread_injections>\n  <injection>a</injection>\n</thread_injections>\n\n";
        assert_eq!(without_thread_blocks(&format!("{context}{more}Go\n\non ")), "Go\n\non ");
        assert_eq!(without_thread_blocks(&format!("{more}Go")), "Go");
        for task in ["Go", " <thread_contexts>x</thread_context>", "<thread_context>never closed"] {
            assert_eq!(without_thread_blocks(task), task);
        }
    }
}
