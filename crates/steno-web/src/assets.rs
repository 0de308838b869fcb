//! The page's own style and scripts, built into the program.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// One file.
pub(crate) struct Asset {
    /// Its name in the address.
    pub(crate) name: &'static str,
    /// Its type.
    pub(crate) media_type: &'static str,
    /// What it holds.
    pub(crate) text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All files.
pub(crate) const ALL: &[Asset] = &[
    Asset { name: "style.css", media_type: "text/css; charset=utf-8", text: STYLE },
    Asset { name: "places.js", media_type: SCRIPT, text: PLACES },
    Asset { name: "highlight.js", media_type: SCRIPT, text: HIGHLIGHT },
    Asset { name: "reader.js", media_type: SCRIPT, text: READER },
    Asset { name: "find.js", media_type: SCRIPT, text: FIND },
    Asset { name: "app.js", media_type: SCRIPT, text: include_str!("../assets/app.js") },
    Asset { name: "live.js", media_type: SCRIPT, text: include_str!("../assets/live.js") },
    Asset { name: "window.js", media_type: SCRIPT, text: include_str!("../assets/window.js") },
    Asset { name: "notes.js", media_type: SCRIPT, text: include_str!("../assets/notes.js") },
    Asset { name: "replay.js", media_type: SCRIPT, text: include_str!("../assets/replay.js") },
];

/// How everything looks.
pub(crate) const STYLE: &str = include_str!("../assets/style.css");
const PLACES: &str = include_str!("../assets/places.js");
const HIGHLIGHT: &str = include_str!("../assets/highlight.js");
const READER: &str = include_str!("../assets/reader.js");
const FIND: &str = include_str!("../assets/find.js");

/// A name for exactly these files, so that a browser may keep them for good.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut sum = Sha256::new();
    ALL.iter().for_each(|asset| sum.update(asset.text));
    sum.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// The scripts of a file that is shared, as one.
pub(crate) static BUNDLE: LazyLock<String> =
    LazyLock::new(|| [PLACES, HIGHLIGHT, READER, FIND].map(joined).concat());

/// A module without what joins it to others: they stand in the same file.
fn joined(module: &str) -> String {
    let lines =
        module.lines().filter(|line| !line.starts_with("import ") && !line.starts_with("//"));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n").collect()
}

/// What allows exactly this text in a page: `'sha256-...'`.
pub(crate) fn permit(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
