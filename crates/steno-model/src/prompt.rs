//! Removes the blocks that Steno and agents put before the user's text in a prompt.

/// Blocks that `steno run` puts before the task of a thread, in order.
const THREAD_BLOCKS: [&str; 4] =
    ["thread_context", "thread_injections", "thread_inbox", "thread_conversation"];

/// Blocks that agents put before the user's text.
const AGENT_BLOCKS: [&str; 4] =
    ["system-reminder", "session_context", "environment_context", "user_instructions"];

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
