//! Renders `<thread_context>`, which lists a thread's assets as paths for its agent.

use super::assets::ThreadAsset;
use super::error::{ThreadError, ThreadWarning};
use super::store::{BASE_FOLDER, RELATIONS_FILE, ThreadStore};

impl ThreadStore {
    /// Renders the assets of a thread and of the threads it references directly, as XML without a final newline.
    pub fn render_thread_context(
        &self,
        id: &str,
    ) -> Result<(String, Vec<ThreadWarning>), ThreadError> {
        let relations = self.load_relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let mut blocks = vec![asset_lines(&self.list_assets(&thread.id)?, "  ")];
        let mut warnings = Vec::new();
        for other in relations.links.get(id).map_or(&[][..], |links| &links.references_to) {
            if !relations.threads.contains_key(other) {
                warnings.push(ThreadWarning::ReferencedNotFound(other.to_string()));
                continue;
            }
            let assets = asset_lines(&self.list_assets(other)?, "    ");
            blocks.push(format!(
                "  <ref thread=\"{}\">\n{assets}\n  </ref>",
                escape_xml(other.as_str())
            ));
        }
        let xml = format!(
            "<thread_context thread=\"{}\" objective=\"{}\" relations_file=\"{BASE_FOLDER}/{RELATIONS_FILE}\">\n\
             {}\n</thread_context>",
            escape_xml(thread.id.as_str()),
            escape_xml(thread.objective.as_str()),
            blocks.join("\n")
        );
        Ok((xml, warnings))
    }
}

fn asset_lines(assets: &[ThreadAsset], indent: &str) -> String {
    let line = |asset: &ThreadAsset| {
        let (kind, path) = (asset.kind.as_str(), escape_xml(&asset.path));
        format!("{indent}<asset type=\"{kind}\" path=\"{path}\" />")
    };
    assets.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn escape_xml(text: &str) -> String {
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
