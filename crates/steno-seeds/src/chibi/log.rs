//! Renders the output of `chibi -g`: the active conversation with the names of the senders.

use super::context_line::ContextLine;

/// Maximum number of bytes of a tool's arguments on the tool's line.
const MAX_PREVIEW_BYTES: usize = 60;

/// Selects the last `count` lines, the first if `count` is negative, all if it is zero.
pub fn select_lines(lines: &[ContextLine], count: i64) -> &[ContextLine] {
    let selected = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(lines.len());
    match count {
        0 => lines,
        1.. => &lines[lines.len() - selected..],
        _ => &lines[..selected],
    }
}

/// The layout of the log, which depends on the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChibiLogStyle {
    /// The documented layout, and that of releases up to v0.5.0: name and text on one line.
    #[default]
    Documented,
    /// The layout that v0.10.10 prints to a pipe: the name on its own line.
    V0_10_10,
}

/// Renders lines. `verbose` shows tools in full, and records that are not messages.
pub fn render_log(lines: &[ContextLine], style: ChibiLogStyle, verbose: bool) -> String {
    lines.iter().map(|line| render_log_line(line, style, verbose)).collect()
}

fn render_log_line(line: &ContextLine, style: ChibiLogStyle, verbose: bool) -> String {
    let content = &line.content;
    let is_documented = style == ChibiLogStyle::Documented;
    match (line.entry_type.as_str(), verbose) {
        ("message", _) if is_documented => format!("[{}]: {content}\n\n", line.from.to_uppercase()),
        ("message", _) => format!("[{}]\n{content}\n\n", line.from.to_uppercase()),
        ("tool_call", true) => format!("[TOOL CALL: {}]\n{content}\n\n", line.to),
        ("tool_call", false) => format!("[TOOL: {}] {}\n", line.to, preview_arguments(content)),
        ("tool_result", true) => format!("[TOOL RESULT: {}]\n{content}\n\n", line.from),
        ("tool_result", false) => {
            let arrow = if is_documented { "→" } else { "->" };
            format!("  {arrow} {}\n", format_size(content.len()))
        }
        (other, true) => format!("[{}]: {content}\n\n", other.to_uppercase()),
        (_, false) => String::new(),
    }
}

fn preview_arguments(content: &str) -> String {
    if content.len() <= MAX_PREVIEW_BYTES {
        return content.to_owned();
    }
    let end = (0..=MAX_PREVIEW_BYTES).rev().find(|at| content.is_char_boundary(*at));
    format!("{}...", &content[..end.unwrap_or(0)])
}

fn format_size(bytes: usize) -> String {
    if bytes > 1024 { format!("{:.1}kb", bytes as f64 / 1024.0) } else { format!("{bytes}b") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(entry_type: &str, content: &str) -> ContextLine {
        ContextLine {
            from: "straße".to_owned(),
            to: "ls".to_owned(),
            entry_type: entry_type.to_owned(),
            content: content.to_owned(),
            ..ContextLine::default()
        }
    }

    #[test]
    fn counts_choose_from_either_end() {
        let lines: Vec<_> = ["a", "b", "c"].map(|text| line("message", text)).into();
        for (count, expected) in [(0, "abc"), (2, "bc"), (-2, "ab"), (9, "abc"), (i64::MIN, "abc")]
        {
            let chosen: String =
                select_lines(&lines, count).iter().map(|line| line.content.as_str()).collect();
            assert_eq!(chosen, expected, "{count}");
        }
    }

    #[test]
    fn tools_are_short_unless_asked_for() {
        let long = format!("{}é and more", "x".repeat(59));
        assert_eq!(
            render_log(&[line("tool_call", &long)], ChibiLogStyle::Documented, false),
            format!("[TOOL: ls] {}...\n", "x".repeat(59))
        );
        assert_eq!(
            render_log(&[line("tool_call", &"x".repeat(60))], ChibiLogStyle::Documented, false),
            format!("[TOOL: ls] {}\n", "x".repeat(60))
        );
        assert_eq!(
            render_log(&[line("tool_call", "{}")], ChibiLogStyle::Documented, true),
            "[TOOL CALL: ls]\n{}\n\n"
        );
        assert_eq!(
            render_log(&[line("tool_result", &"x".repeat(1024))], ChibiLogStyle::Documented, false),
            "  → 1024b\n"
        );
        assert_eq!(
            render_log(&[line("tool_result", &"x".repeat(1536))], ChibiLogStyle::Documented, false),
            "  → 1.5kb\n"
        );
    }

    #[test]
    fn later_releases_put_names_on_a_line_of_their_own() {
        let lines = [line("message", "hi"), line("tool_result", "x"), line("tool_call", "{}")];
        assert_eq!(
            render_log(&lines, ChibiLogStyle::V0_10_10, false),
            "[STRASSE]\nhi\n\n  -> 1b\n[TOOL: ls] {}\n"
        );
    }

    #[test]
    fn other_records_appear_only_when_asked_for() {
        let lines = [line("compaction", ""), line("novelty", "x"), line("message", "hi")];
        assert_eq!(render_log(&lines, ChibiLogStyle::Documented, false), "[STRASSE]: hi\n\n");
        assert_eq!(
            render_log(&lines, ChibiLogStyle::Documented, true),
            "[COMPACTION]: \n\n[NOVELTY]: x\n\n[STRASSE]: hi\n\n"
        );
    }
}
