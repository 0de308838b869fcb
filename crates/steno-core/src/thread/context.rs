//! Renders `<thread_context>`, which lists a thread's assets as paths for its agent.

use super::assets::Asset;
use super::error::{ThreadError, Warning};
use super::store::{BASE, RELATIONS, ThreadStore};

impl ThreadStore {
    /// Renders the assets of a thread and of the threads it references directly, as XML without a final newline.
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
