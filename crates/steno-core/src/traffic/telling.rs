//! Decodes traffic pieces into entries, each message once and with the time it was sent.
//!
//! The decoder emits instructions and prompts when the request arrives, the model's output when the response has ended,
//! and tool results when the next request carries them.

mod description;

use std::collections::{HashMap, HashSet, VecDeque};

use self::description::{answer_metadata, error_entry, exchange_metadata, omission_notice};
use super::body::{ANSWER_LIMIT, REQUEST_LIMIT, too_large};
use super::conversations::{Answer, Conversations, Place};
use super::dialect::{Dialect, requested_model};
use super::exchange::Exchange;
use super::piece::{Piece, PieceKind};
use super::reply::{Reply, stated_error};
use super::request::Asked;
use super::retries::{AttemptEnd, RequestKey, Retry, RetryLog, outcome};
use super::socket_exchanges::SocketExchanges;
use crate::agent::fields::text;
use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::json::{Object, Value};
use blake3::Hash;

/// Limit for buffered response bytes of all open exchanges together.
const OPEN_LIMIT: usize = 2 * ANSWER_LIMIT;

/// Decodes the pieces of one recording. Holds the conversations so far and the open exchanges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telling {
    conversations: Conversations,
    /// Exchanges that have not ended, by id. Exchanges with the same id end in the order they began.
    open: HashMap<String, VecDeque<Open>>,
    /// Number of requests so far.
    requests: u64,
    /// Buffered response bytes of the open exchanges.
    held: usize,
    /// Entries of response items by item id, for later requests that only refer to an item.
    items: HashMap<String, Option<Entry>>,
    /// Tool names by call id.
    tools: HashMap<String, String>,
    retries: RetryLog,
    cost: StatedCost,
    /// Whether all entries go to the primary source.
    joined: bool,
    /// Open WebSocket connections.
    sockets: SocketExchanges,
    /// Exchanges that moved to other sessions. They are skipped here.
    moved: HashSet<String>,
    /// The conversation of the last request.
    last_place: Option<Place>,
    /// With a single source, entries queued by exchange. Entries of a later exchange wait until the earlier one ends,
    /// so a prompt and its answer stay together.
    waiting: VecDeque<WaitingEntries>,
}

/// Sum of the costs that providers reported.
#[derive(Clone, Copy, Debug, Default)]
struct StatedCost {
    dollars: Option<f64>,
    /// Whether some billed tokens had no reported cost, so the sum is incomplete.
    is_partial: bool,
}

/// Entries of one exchange, queued behind an earlier exchange.
#[derive(Clone, Debug)]
struct WaitingEntries {
    number: u64,
    entries: Vec<Entry>,
    is_ended: bool,
}

#[derive(Clone, Debug)]
struct Open {
    /// The exchange's id in the recording.
    id: String,
    exchange: Exchange,
    /// The request's number, from 0.
    number: u64,
    /// The conversation and its hash at this request; `None` if no message was decoded.
    asked: Option<(Place, Hash)>,
    structured: bool,
    /// The requested model.
    model: Option<String>,
    key: RequestKey,
    retry: Option<Retry>,
    /// Whether the request expects no response.
    is_unanswered: bool,
}

impl Telling {
    /// Skips exchanges that moved to other sessions.
    pub(crate) fn leave_out(&mut self, moved: HashSet<String>) {
        self.moved = moved;
    }

    /// Decodes a piece and returns its entries, not yet numbered.
    pub(crate) fn take(&mut self, piece: Piece<'_>) -> Vec<Entry> {
        if self.moved.contains(piece.exchange.as_ref()) {
            return Vec::new();
        }
        let pieces = self.sockets.take(piece);
        pieces.into_iter().flat_map(|piece| self.take_exchange(piece)).collect()
    }

    fn take_exchange(&mut self, piece: Piece<'_>) -> Vec<Entry> {
        match piece.traffic {
            PieceKind::Moved => Vec::new(),
            PieceKind::Settings => {
                self.joined = piece.subagents == Some(false);
                Vec::new()
            }
            PieceKind::Request => self.request(&piece),
            PieceKind::Upload | PieceKind::UploadEnd => self.upload(piece),
            PieceKind::Informational => {
                if let Some(open) = self.find(&piece.exchange) {
                    open.exchange.take(piece);
                }
                Vec::new()
            }
            PieceKind::Response | PieceKind::Chunk => {
                let room = OPEN_LIMIT.saturating_sub(self.held);
                let added = self.find(&piece.exchange).map(|open| {
                    // An unknown dialect is not decoded, so its bytes are not buffered.
                    let is_read = open.exchange.dialect() != Dialect::Other;
                    open.exchange.take_some(piece, if is_read { room } else { 0 })
                });
                self.held += added.unwrap_or_default();
                Vec::new()
            }
            PieceKind::Sent | PieceKind::Received => Vec::new(),
            PieceKind::End => {
                let Some(mut open) = self.end(&piece.exchange) else { return Vec::new() };
                self.held -= open.exchange.chunks.first().map_or(0, |(_, bytes)| bytes.len());
                open.exchange.take(piece);
                self.conclude(open)
            }
        }
    }

    /// Emits the entries of exchanges that never ended.
    pub(crate) fn finish(&mut self) -> Vec<Entry> {
        let pieces = self.sockets.finish();
        let mut entries: Vec<_> =
            pieces.into_iter().flat_map(|piece| self.take_exchange(piece)).collect();
        let mut open: Vec<Open> = std::mem::take(&mut self.open).into_values().flatten().collect();
        self.held = 0;
        open.sort_by_key(|open| (open.exchange.at.map(|at| at.instant()), open.number));
        for open in open {
            entries.extend(self.conclude(open));
        }
        entries
    }

    /// Emits the remaining entries of an ended exchange.
    fn conclude(&mut self, mut open: Open) -> Vec<Entry> {
        let mut entries = Vec::new();
        if std::mem::take(&mut open.exchange.is_uploading) {
            entries = self.read_request(&mut open);
        }
        entries.extend(self.reply(&open));
        self.in_order(open.number, entries, true)
    }

    /// Queues the entries of an exchange and returns those that no longer wait. Without a single source, nothing waits.
    fn in_order(&mut self, number: u64, entries: Vec<Entry>, is_ended: bool) -> Vec<Entry> {
        if !self.joined {
            return entries;
        }
        match self.waiting.iter_mut().find(|waiting| waiting.number == number) {
            Some(waiting) => {
                waiting.entries.extend(entries);
                waiting.is_ended = is_ended;
            }
            None => self.waiting.push_back(WaitingEntries { number, entries, is_ended }),
        }
        let mut released = Vec::new();
        while let Some(first) = self.waiting.front_mut() {
            released.append(&mut first.entries);
            if !first.is_ended {
                break;
            }
            self.waiting.pop_front();
        }
        released
    }

    /// The cost of all responses, or `None` if a billed response reported none.
    pub(crate) fn stated_cost(&self) -> Option<f64> {
        self.cost.dollars.filter(|_| !self.cost.is_partial)
    }

    /// Removes the oldest open exchange with this id.
    fn end(&mut self, id: &str) -> Option<Open> {
        let same_id = self.open.get_mut(id)?;
        let open = same_id.pop_front();
        if same_id.is_empty() {
            self.open.remove(id);
        }
        open
    }

    /// Response bytes buffered now.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let open = self.open.values().flatten().flat_map(|open| &open.exchange.chunks);
        open.map(|(_, bytes)| bytes.len()).sum()
    }

    fn find(&mut self, id: &str) -> Option<&mut Open> {
        self.open.get_mut(id)?.front_mut()
    }

    fn request(&mut self, piece: &Piece<'_>) -> Vec<Entry> {
        let exchange = Exchange::begin(piece);
        let key = RequestKey::new(&exchange);
        let retry = self.retries.find(key, &exchange.request_headers);
        let (id, number) = (piece.exchange.clone().into_owned(), self.requests);
        let (asked, structured, model) = (None, false, None);
        let is_unanswered = false;
        let mut open =
            Open { id, exchange, number, asked, structured, is_unanswered, model, key, retry };
        self.requests += 1;
        let entries =
            if open.exchange.is_uploading { Vec::new() } else { self.read_request(&mut open) };
        self.open.entry(open.id.clone()).or_default().push_back(open);
        self.in_order(number, entries, false)
    }

    /// Appends bytes to a request's body. The request is decoded when the body is complete.
    fn upload(&mut self, piece: Piece<'_>) -> Vec<Entry> {
        let id = piece.exchange.clone().into_owned();
        let Some(mut open) = self.end(&id) else { return Vec::new() };
        let was_uploading = open.exchange.is_uploading;
        if was_uploading {
            // One byte over the limit shows that the body is too large.
            let has_room = open.exchange.body.len() <= REQUEST_LIMIT;
            if has_room || piece.traffic == PieceKind::UploadEnd {
                open.exchange.take(piece);
            }
        }
        let mut entries = Vec::new();
        if was_uploading && !open.exchange.is_uploading {
            open.key = RequestKey::new(&open.exchange);
            open.retry = self.retries.find(open.key, &open.exchange.request_headers);
            entries = self.read_request(&mut open);
        }
        let number = open.number;
        self.open.entry(id).or_default().push_front(open);
        self.in_order(number, entries, false)
    }

    /// Decodes a request. Its body must be complete.
    fn read_request(&mut self, open: &mut Open) -> Vec<Entry> {
        let exchange = &open.exchange;
        let dialect = exchange.dialect();
        let body = (dialect != Dialect::Other).then(|| exchange.request_body());
        let is_too_large = body.as_ref().is_some_and(|body| body.is_too_large);
        let body = body.filter(|body| !body.is_too_large);
        let request = body.and_then(|body| exchange.request_fields().read(&body.bytes));
        let model = requested_model(&exchange.path, request.as_ref());
        let decoded = request.map(|request| Asked::of(dialect, request));
        open.structured = decoded.as_ref().is_some_and(|decoded| decoded.structured);
        open.is_unanswered = decoded.as_ref().is_some_and(|decoded| decoded.is_unanswered);
        open.model = model;
        // The response is decoded without the request body.
        open.exchange.body = Vec::new();
        let mut entries = decoded.map(|decoded| self.tell(decoded, open)).unwrap_or_default();
        if is_too_large {
            entries.push(error_entry(too_large("request", REQUEST_LIMIT), exchange_metadata(open)));
        }
        let error = open.exchange.upload_error.take();
        entries.extend(error.map(|error| error_entry(error, exchange_metadata(open))));
        let measured = open.exchange.measured_request.as_ref();
        entries
            .extend(measured.and_then(|measured| {
                omission_notice("request", measured, exchange_metadata(open))
            }));
        for entry in &mut entries {
            entry.created_at = entry.created_at.or(open.exchange.at);
        }
        entries
    }

    /// Emits the messages of a request that its conversation does not have yet.
    fn tell(&mut self, mut decoded: Asked, open: &mut Open) -> Vec<Entry> {
        decoded.said = decoded.said.into_iter().filter_map(|entry| self.look_up(entry)).collect();
        let matched =
            self.conversations.place(&decoded.said, decoded.follows.as_deref(), &decoded.system);
        open.asked = Some((matched.place, self.conversations.asked(matched.place)));
        let system = decoded.system.into_iter();
        let mut entries: Vec<_> =
            system.filter(|entry| self.conversations.instructs(matched.place, entry)).collect();
        let is_repeated = entries.is_empty() && matched.known == decoded.said.len();
        // In a shared source, an answer alone would appear to belong to another conversation's prompt.
        let is_apart = self.joined && self.last_place.replace(matched.place) != Some(matched.place);
        let known =
            if is_repeated && is_apart { last_prompt(&decoded.said) } else { matched.known };
        entries.extend(decoded.said.into_iter().skip(known));
        let mut metadata = exchange_metadata(open);
        if let Some(retry) = &open.retry {
            metadata.insert("attempt".to_owned(), retry.attempt.into());
        }
        if let Some(left) = matched.fork_of {
            metadata.insert("fork_of".to_owned(), self.conversations.source(left).into());
        }
        for entry in &mut entries {
            entry.created_at = open.exchange.at;
            self.complete(entry, metadata.clone());
        }
        self.with_source(entries, Some(matched.place))
    }

    /// Emits the response of an exchange, or the error in its place.
    fn reply(&mut self, open: &Open) -> Vec<Entry> {
        let exchange = &open.exchange;
        let measured = exchange.measured_answer.as_ref();
        let omitted = measured
            .and_then(|measured| omission_notice("answer", measured, exchange_metadata(open)));
        if exchange.dialect() == Dialect::Other {
            return self.with_source(omitted.into_iter().collect(), None);
        }
        let mut reply = Reply::of(exchange);
        if let Some((conversation, request_hash)) = open.asked {
            let (entries, is_failed) = (&reply.entries, reply.error.is_some());
            let answer = Answer { entries, id: reply.id.as_deref(), is_failed };
            self.conversations.answered(conversation, request_hash, answer);
        }
        self.note_attempt(open, &mut reply);
        reply.model = reply.model.or_else(|| open.model.clone());
        if open.is_unanswered && exchange.end.as_ref().is_some_and(|end| end.error.is_none()) {
            let (usage, stated_usage) = (reply.usage.take(), reply.stated_usage.take());
            reply =
                Reply { error: stated_error(exchange), usage, stated_usage, ..Reply::default() };
            if reply.error.is_none() && reply.usage.is_none() {
                return Vec::new();
            }
        }
        self.items.extend(std::mem::take(&mut reply.items));
        let mut entries = std::mem::take(&mut reply.entries);
        let is_told = exchange.dialect() != Dialect::BatchResults;
        if !is_told && reply.own_entries.is_empty() {
            // The file holds no batch results.
            return self.with_source(omitted.into_iter().collect(), None);
        }
        if entries.is_empty() && is_told && (reply.usage.is_some() || reply.error.is_none()) {
            entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let metadata = answer_metadata(open, &reply);
        let is_final = !entries.iter().any(|entry| entry.kind == Kind::ToolCall);
        for entry in &mut entries {
            entry.message_id.clone_from(&reply.id);
            entry.model.clone_from(&reply.model);
            let mut metadata = metadata.clone();
            if is_final && entry.kind == Kind::Text {
                metadata.insert("has_structured_output".to_owned(), open.structured.into());
            }
            self.complete(entry, metadata);
        }
        if let Some(last) = entries.last_mut() {
            last.usage = reply.usage;
            let stated = reply.stated_usage.map(|usage| ("usage".to_owned(), usage));
            last.metadata.get_or_insert_default().extend(stated);
        }
        for mut entry in reply.own_entries {
            self.complete(&mut entry, exchange_metadata(open));
            entries.push(entry);
        }
        entries.extend(reply.error.map(|error| error_entry(error, metadata)));
        entries.extend(omitted);
        let end = exchange.end.as_ref().map(|end| end.after);
        let end = end.unwrap_or(exchange.last_after);
        entries.iter_mut().for_each(|entry| entry.created_at = exchange.moment(end));
        self.with_source(entries, open.asked.map(|(conversation, _)| conversation))
    }

    /// Records how an attempt ended. A response billed with an earlier attempt counts no tokens.
    fn note_attempt(&mut self, open: &Open, reply: &mut Reply) {
        let (id, error) = (reply.id.as_deref(), reply.error.as_deref());
        let outcome = outcome(open.exchange.status, id, error);
        if self.retries.is_billed(open.key, id) {
            (reply.usage, reply.cost) = (None, None);
        }
        match (reply.cost, &reply.usage) {
            (Some(cost), _) => *self.cost.dollars.get_or_insert_default() += cost,
            (None, Some(_)) => self.cost.is_partial = true,
            (None, None) => {}
        }
        let end = AttemptEnd { retry: open.retry.as_ref(), outcome };
        self.retries.note(open.key, &open.id, end);
    }

    /// Resolves an entry that only refers to an earlier item. Returns `None` if that item was ciphertext.
    fn look_up(&self, entry: Entry) -> Option<Entry> {
        let metadata = entry.metadata.as_ref().filter(|_| entry.kind == Kind::Other);
        let reference =
            metadata.filter(|metadata| text(metadata, "type") == Some("item_reference"));
        let known = reference.and_then(|reference| self.items.get(text(reference, "id")?));
        known.cloned().unwrap_or(Some(entry))
    }

    /// Adds the exchange's metadata and the tool name to an entry. The entry's own fields win.
    fn complete(&mut self, entry: &mut Entry, mut metadata: Object) {
        let own = entry.metadata.take().unwrap_or_default();
        let id = entry.tool_call_id.clone();
        match (entry.kind, id, &entry.tool_name) {
            (Kind::ToolCall, Some(id), Some(name)) => drop(self.tools.insert(id, name.clone())),
            (Kind::ToolResult, Some(id), None) => entry.tool_name = self.tools.get(&id).cloned(),
            _ => {}
        }
        if entry.kind == Kind::ToolResult {
            let failed = own.get("is_error") == Some(&Value::Bool(true));
            metadata.insert("success".to_owned(), (!failed).into());
        }
        metadata.extend(own);
        entry.metadata = Some(metadata);
    }

    /// Assigns the conversation's source. Entries without a conversation go to the primary source, as all do with a
    /// single source.
    fn with_source(&self, mut entries: Vec<Entry>, conversation: Option<Place>) -> Vec<Entry> {
        let conversation = conversation.filter(|_| !self.joined);
        let source =
            conversation.map_or(PRIMARY, |conversation| self.conversations.source(conversation));
        entries.iter_mut().for_each(|entry| source.clone_into(&mut entry.source));
        entries
    }
}

/// The index of the first entry after the model's last output.
fn last_prompt(messages: &[Entry]) -> usize {
    let answer = messages.iter().rposition(|entry| entry.role == Role::Assistant);
    answer.map_or(0, |at| at + 1)
}
