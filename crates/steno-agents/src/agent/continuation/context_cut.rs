//! Cuts a conversation to the size of an agent's context: at the last compaction, or else at whole units from the start.

use super::conversation::{ContinuedConversation, ContinuedItem, ContinuedItemKind};

/// Approximate bytes per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Divisor of the context: the conversation may use half, the rest is for the work.
const CONTEXT_DIVISOR: u64 = 2;

/// Bytes for the names and braces around an item.
const ITEM_OVERHEAD: u64 = 64;

/// Bytes for an image, whatever its size: about as many tokens as models charge.
const IMAGE_SIZE: u64 = 6_000;

/// What was left out of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextCut {
    /// Units at the start.
    pub units: usize,
    /// Prompts, answers and calls, including those of the units.
    pub items: usize,
    /// Items after the prompt of the only unit that is left.
    pub items_in_last_unit: usize,
    /// The agent's summary of what was left out.
    pub summary: Option<String>,
}

/// The bytes that a conversation may have for an agent with this context.
pub fn conversation_limit(context_tokens: u64) -> u64 {
    context_tokens * BYTES_PER_TOKEN / CONTEXT_DIVISOR
}

impl ContinuedConversation {
    /// Leaves out items from the start until the rest has at most `limit` bytes. `None` if all of it fits.
    ///
    /// The last prompt and the last item after it always stay.
    pub fn cut_to_limit(&mut self, limit: u64) -> Option<ContextCut> {
        let sizes: Vec<u64> = self.items.iter().map(item_size).collect();
        if sizes.iter().sum::<u64>() <= limit {
            return None;
        }
        let starts = self.unit_starts();
        let units_before = |item: usize| starts.iter().filter(|start| **start < item).count();
        let (mut size, mut first_fitting) = (0, self.items.len());
        while first_fitting > 0 && size + sizes[first_fitting - 1] <= limit {
            size += sizes[first_fitting - 1];
            first_fitting -= 1;
        }
        if let Some(last) = self.compactions.last()
            && (first_fitting..self.items.len()).contains(&last.position)
        {
            let summary = Some(last.summary.clone()).filter(|text| !text.trim().is_empty());
            let cut = ContextCut {
                units: units_before(last.position),
                items: last.position,
                summary,
                ..ContextCut::default()
            };
            self.items.drain(..last.position);
            return Some(cut);
        }
        let cut = match starts.iter().find(|start| **start >= first_fitting) {
            Some(start) => {
                let cut = ContextCut {
                    units: units_before(*start),
                    items: *start,
                    ..ContextCut::default()
                };
                self.items.drain(..*start);
                cut
            }
            None => self.cut_last_unit(starts.last().copied(), first_fitting),
        };
        Some(cut)
    }

    /// Leaves only the prompt of the last unit, and its last items from `first_fitting` on.
    fn cut_last_unit(&mut self, start: Option<usize>, first_fitting: usize) -> ContextCut {
        let start = start.unwrap_or(0);
        let is_prompt = |item: &ContinuedItem| matches!(item.kind, ContinuedItemKind::Prompt(_));
        let prompts = self.items[start..].iter().take_while(|item| is_prompt(item)).count();
        let rest = (start + prompts).min(self.items.len());
        let kept = first_fitting.max(rest).min(self.items.len().saturating_sub(1)).max(rest);
        let units = self.unit_starts().iter().filter(|unit| **unit < start).count();
        self.items.drain(rest..kept);
        self.items.drain(..start);
        ContextCut {
            units,
            items: start + kept - rest,
            items_in_last_unit: kept - rest,
            summary: None,
        }
    }

    /// The items with which a unit starts: a prompt after something else than a prompt.
    fn unit_starts(&self) -> Vec<usize> {
        let is_prompt = |at: usize| matches!(self.items[at].kind, ContinuedItemKind::Prompt(_));
        (0..self.items.len())
            .filter(|at| is_prompt(*at) && (*at == 0 || !is_prompt(at - 1)))
            .collect()
    }
}

/// The approximate size of an item in a request.
fn item_size(item: &ContinuedItem) -> u64 {
    let text_size = |text: &str| {
        let images = text.matches(" bytes, blake3 ").count() as u64;
        text.len() as u64 + images * IMAGE_SIZE
    };
    ITEM_OVERHEAD
        + match &item.kind {
            ContinuedItemKind::Prompt(text) | ContinuedItemKind::Answer(text) => text_size(text),
            ContinuedItemKind::Call(call) => {
                let input = serde_json::to_string(&call.input).unwrap_or_default();
                (call.name.len() + input.len()) as u64 + text_size(&call.result)
            }
        }
}
