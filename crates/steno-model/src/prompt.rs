//! What a user wrote in a prompt, without the blocks that Steno and agents put in front of it.

/// Blocks that `steno run` puts before the task of a thread, in their order.
const THREAD_BLOCKS: [&str; 4] =
    ["thread_context", "thread_injections", "thread_inbox", "thread_conversation"];

/// Blocks that agents put before what the user wrote.
const AGENT_BLOCKS: [&str; 4] =
    ["system-reminder", "session_context", "environment_context", "user_instructions"];

/// A prompt without the blocks that describe its thread.
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

/// A prompt without the context that an agent put at its beginning; empty if there is nothing else.
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
