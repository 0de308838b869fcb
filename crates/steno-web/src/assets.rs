//! The style sheet and scripts of the page, built into the program.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// A file that the server serves.
pub(crate) struct WebAsset {
    /// The file name in its address.
    pub(crate) name: &'static str,
    /// The media type.
    pub(crate) media_type: &'static str,
    /// The content.
    pub(crate) text: &'static str,
}

const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";

/// All files.
pub(crate) const WEB_ASSETS: &[WebAsset] = &[
    WebAsset { name: "style.css", media_type: "text/css; charset=utf-8", text: STYLE },
    WebAsset { name: "places.js", media_type: SCRIPT_TYPE, text: PLACES },
    WebAsset { name: "highlight.js", media_type: SCRIPT_TYPE, text: HIGHLIGHT },
    WebAsset { name: "subagents.js", media_type: SCRIPT_TYPE, text: SUBAGENTS },
    WebAsset { name: "marks.js", media_type: SCRIPT_TYPE, text: MARKS },
    WebAsset { name: "entrytools.js", media_type: SCRIPT_TYPE, text: ENTRY_TOOLS },
    WebAsset { name: "pictures.js", media_type: SCRIPT_TYPE, text: PICTURES },
    WebAsset { name: "sections.js", media_type: SCRIPT_TYPE, text: SECTIONS },
    WebAsset { name: "reader.js", media_type: SCRIPT_TYPE, text: READER },
    WebAsset { name: "find.js", media_type: SCRIPT_TYPE, text: FIND },
    WebAsset { name: "app.js", media_type: SCRIPT_TYPE, text: include_str!("../assets/app.js") },
    WebAsset { name: "live.js", media_type: SCRIPT_TYPE, text: include_str!("../assets/live.js") },
    WebAsset {
        name: "palette.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/palette.js"),
    },
    WebAsset { name: "more.js", media_type: SCRIPT_TYPE, text: include_str!("../assets/more.js") },
    WebAsset {
        name: "sessions.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/sessions.js"),
    },
    WebAsset {
        name: "window.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/window.js"),
    },
    WebAsset {
        name: "notes.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/notes.js"),
    },
    WebAsset {
        name: "replay.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/replay.js"),
    },
    WebAsset {
        name: "neighbours.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/neighbours.js"),
    },
    WebAsset {
        name: "report.js",
        media_type: SCRIPT_TYPE,
        text: include_str!("../assets/report.js"),
    },
    WebAsset { name: "zone.js", media_type: SCRIPT_TYPE, text: include_str!("../assets/zone.js") },
];

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("../assets/style.css");
const PLACES: &str = include_str!("../assets/places.js");
const HIGHLIGHT: &str = include_str!("../assets/highlight.js");
const SUBAGENTS: &str = include_str!("../assets/subagents.js");
const MARKS: &str = include_str!("../assets/marks.js");
const ENTRY_TOOLS: &str = include_str!("../assets/entrytools.js");
const PICTURES: &str = include_str!("../assets/pictures.js");
const SECTIONS: &str = include_str!("../assets/sections.js");
const READER: &str = include_str!("../assets/reader.js");
const FIND: &str = include_str!("../assets/find.js");

/// A hash of all files, which is part of their addresses: browsers may cache them forever.
pub(crate) static ASSETS_VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut sum = Sha256::new();
    WEB_ASSETS.iter().for_each(|asset| sum.update(asset.text));
    sum.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// The scripts of an exported file, as one.
pub(crate) static SCRIPT_BUNDLE: LazyLock<String> = LazyLock::new(|| {
    [PLACES, HIGHLIGHT, SUBAGENTS, MARKS, READER, ENTRY_TOOLS, PICTURES, SECTIONS, FIND]
        .map(strip_module_syntax)
        .concat()
});

/// Removes imports and exports from a module, so that modules can share one file.
fn strip_module_syntax(module: &str) -> String {
    let lines =
        module.lines().filter(|line| !line.starts_with("import ") && !line.starts_with("//"));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n").collect()
}

/// The hash that allows this text in a content security policy: `'sha256-...'`.
pub(crate) fn csp_hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest size of all scripts and styles, in bytes.
    const MAX_PAGE_WEIGHT: usize = 150_000;

    #[test]
    fn scripts_and_styles_are_light() {
        let weight: usize = WEB_ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(weight < MAX_PAGE_WEIGHT, "{weight} bytes");
    }
}
