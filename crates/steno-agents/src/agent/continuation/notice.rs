//! The notice at the start of a session that continues another one.

use super::context_cut::ContextCut;
use super::conversation::ConversationCounts;
use steno_model::prompt::{CONTINUED_SESSION_TAG, continued_session_start};

/// What a notice states.
#[derive(Clone, Copy, Debug)]
pub struct ContinuationNotice<'a> {
    /// The name of the agent of the continued session, as sessions are stored.
    pub agent: &'a str,
    /// The name of that agent for people.
    pub display_name: &'a str,
    /// Steno's id of the continued session.
    pub session: &'a str,
    /// What the conversation has.
    pub counts: ConversationCounts,
    /// What was left out.
    pub cut: Option<&'a ContextCut>,
}

impl ContinuationNotice<'_> {
    /// The text of the notice.
    pub fn to_text(self) -> String {
        let Self { agent, display_name, session, counts, cut } = self;
        let mut lines = vec![
            continued_session_start(agent, session),
            format!("Continued from {display_name}, session {session}."),
            format!(
                "The messages below were copied from its record: {} of the user, {} of the model, {} tool calls with \
                 their results.",
                counts.prompts, counts.answers, counts.calls
            ),
            "Thinking is left out. The tools have the names that they had there; use your own tools from here on."
                .to_owned(),
        ];
        if counts.open_calls > 0 {
            lines.push(format!("{} tool calls have no recorded result.", counts.open_calls));
        }
        lines.extend(cut.into_iter().flat_map(|cut| cut_lines(cut, session)));
        lines.push(format!("</{CONTINUED_SESSION_TAG}>"));
        lines.join("\n")
    }
}

fn cut_lines(cut: &ContextCut, session: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if cut.units > 0 {
        lines.push(format!(
            "The first {} requests of the user and all that followed them ({} messages and tool calls) are left out: the \
             conversation is longer than the context.",
            cut.units,
            cut.items - cut.items_in_last_unit
        ));
    }
    if cut.items_in_last_unit > 0 {
        lines.push(format!(
            "{} messages and tool calls after the first request below are left out: the conversation is longer than the \
             context.",
            cut.items_in_last_unit
        ));
    }
    if cut.units == 0 && cut.items_in_last_unit == 0 {
        lines.push(format!(
            "{} messages and tool calls at the start are left out: the conversation is longer than the context.",
            cut.items
        ));
    }
    lines.push(format!("`steno show {session}` prints the whole record."));
    if let Some(summary) = &cut.summary {
        lines.push("The earlier agent's summary of what is left out:".to_owned());
        lines.push(summary.clone());
    }
    lines
}
