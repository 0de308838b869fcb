//! `<thread_context>`: what an agent is told about its thread, as paths.

use super::assets::Asset;
use super::error::{ThreadError, Warning};
use super::store::{BASE, RELATIONS, ThreadStore};

impl ThreadStore {
    /// The assets of a thread and of the threads it refers to directly, as XML without a newline at the end.
    pub fn context(&self, id: &str) -> Result<(String, Vec<Warning>), ThreadError> {
        let relations = self.relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let mut blocks = vec![lines(&self.assets(&thread.id)?, "  ")];
        let mut warnings = Vec::new();
        for other in relations.links.get(id).map_or(&[][..], |links| &links.references_to) {
            if !relations.threads.contains_key(other) {
                warnings.push(Warning::ReferencedNotFound(other.to_string()));
                continue;
            }
            let assets = lines(&self.assets(other)?, "    ");
            blocks
                .push(format!("  <ref thread=\"{}\">\n{assets}\n  </ref>", escape(other.as_str())));
        }
        let xml = format!(
            "<thread_context thread=\"{}\" objective=\"{}\" relations_file=\"{BASE}/{RELATIONS}\">\n\
             {}\n</thread_context>",
            escape(thread.id.as_str()),
            escape(thread.objective.as_str()),
            blocks.join("\n")
        );
        Ok((xml, warnings))
    }
}

/// What stands before the task in a prompt that tells of its thread.
const BEFORE: [&str; 4] =
    ["thread_context", "thread_injections", "thread_inbox", "thread_conversation"];

/// The task in a prompt, without what tells of its thread.
pub fn task_of(prompt: &str) -> &str {
    let mut rest = prompt;
    for name in BEFORE {
        let told = rest.trim_start().strip_prefix('<').and_then(|told| told.strip_prefix(name));
        let told = told.filter(|told| told.starts_with(['>', ' ']));
        if let Some((_, after)) = told.and_then(|told| told.split_once(&format!("</{name}>"))) {
            rest = after.trim_start();
        }
    }
    rest
}

fn lines(assets: &[Asset], indent: &str) -> String {
    let line = |asset: &Asset| {
        let (kind, path) = (asset.kind.as_str(), escape(&asset.path));
        format!("{indent}<asset type=\"{kind}\" path=\"{path}\" />")
    };
    assets.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_is_what_follows() {
        let context = "<thread_context thread=\"t\">\n\n</thread_context>\n\n";
        let more = "<thread_injections>\n  <injection>a</injection>\n</thread_injections>\n\n";
        assert_eq!(task_of(&format!("{context}{more}Go\n\non ")), "Go\n\non ");
        assert_eq!(task_of(&format!("{more}Go")), "Go");
        for task in ["Go", " <thread_contexts>x</thread_context>", "<thread_context>never closed"] {
            assert_eq!(task_of(task), task);
        }
    }
}
