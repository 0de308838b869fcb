//! Decodes traffic pieces into entries, each message once and with the time it was sent.
//!
//! The decoder emits instructions and prompts when the request arrives, the model's output when the response has ended,
//! and tool results when the next request carries them.

mod entry_metadata;

use std::collections::{HashMap, HashSet, VecDeque};

use self::entry_metadata::{error_entry, exchange_metadata, omission_notice, response_metadata};
use super::conversations::{ConversationAnswer, ConversationIndex, ConversationTracker};
use super::decoded_body::{MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, too_large_message};
use super::decoded_request::DecodedRequest;
use super::decoded_response::{DecodedResponse, find_response_error};
use super::dialect::{ApiDialect, requested_model};
use super::exchange::ApiExchange;
use super::piece::{TrafficPiece, TrafficPieceKind};
use super::request_retries::{AttemptEnd, RequestKey, RequestRetry, RetryLog, attempt_outcome};
use super::socket_exchanges::SocketExchanges;
use crate::decoding::json_fields::text_field;
use blake3::Hash;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{Object, Value};

/// Limit for buffered response bytes of all open exchanges together.
const MAX_OPEN_BYTES: usize = 2 * MAX_RESPONSE_BYTES;

/// Decodes the pieces of one recording. Holds the conversations so far and the open exchanges.
#[derive(Clone, Debug, Default)]
pub struct TrafficDecoder {
    conversations: ConversationTracker,
    /// Exchanges that have not ended, by id. Exchanges with the same id end in the order they began.
    open_exchanges: HashMap<String, VecDeque<OpenExchange>>,
    /// Number of requests so far.
    request_count: u64,
    /// Buffered response bytes of the open exchanges.
    buffered_bytes: usize,
    /// Entries of response items by item id, for later requests that only refer to an item.
    response_items: HashMap<String, Option<Entry>>,
    /// Tool names by call id.
    tool_names: HashMap<String, String>,
    retries: RetryLog,
    reported_cost: ReportedCost,
    /// Whether all entries go to the primary source.
    is_single_source: bool,
    /// Open WebSocket connections.
    sockets: SocketExchanges,
    /// Exchanges that moved to other sessions. They are skipped here.
    moved_exchanges: HashSet<String>,
    /// The conversation of the last request.
    last_conversation: Option<ConversationIndex>,
    /// With a single source, entries queued by exchange. Entries of a later exchange wait until the earlier one ends,
    /// so a prompt and its answer stay together.
    queued: VecDeque<QueuedEntries>,
}

/// Sum of the costs that providers reported.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedCost {
    dollars: Option<f64>,
    /// Whether some billed tokens had no reported cost, so the sum is incomplete.
    is_partial: bool,
}

/// Entries of one exchange, queued behind an earlier exchange.
#[derive(Clone, Debug)]
struct QueuedEntries {
    exchange_number: u64,
    entries: Vec<Entry>,
    is_ended: bool,
}

#[derive(Clone, Debug)]
struct OpenExchange {
    /// The exchange's id in the recording.
    id: String,
    exchange: ApiExchange,
    /// The request's number, from 0.
    number: u64,
    /// The conversation and its hash at this request; `None` if no message was decoded.
    conversation_point: Option<(ConversationIndex, Hash)>,
    is_structured: bool,
    /// The requested model.
    model: Option<String>,
    key: RequestKey,
    retry: Option<RequestRetry>,
    /// Whether the request expects no response.
    expects_no_response: bool,
}

impl TrafficDecoder {
    /// Skips exchanges that moved to other sessions.
    pub fn skip_exchanges(&mut self, moved: HashSet<String>) {
        self.moved_exchanges = moved;
    }

    /// Decodes a piece and returns its entries, not yet numbered.
    pub fn decode_piece(&mut self, piece: TrafficPiece<'_>) -> Vec<Entry> {
        if self.moved_exchanges.contains(piece.exchange.as_ref()) {
            return Vec::new();
        }
        let pieces = self.sockets.push_piece(piece);
        pieces.into_iter().flat_map(|piece| self.decode_exchange_piece(piece)).collect()
    }

    fn decode_exchange_piece(&mut self, piece: TrafficPiece<'_>) -> Vec<Entry> {
        match piece.traffic {
            TrafficPieceKind::Moved => Vec::new(),
            TrafficPieceKind::Settings => {
                self.is_single_source = piece.subagents == Some(false);
                Vec::new()
            }
            TrafficPieceKind::Request => self.begin_exchange(&piece),
            TrafficPieceKind::Upload | TrafficPieceKind::UploadEnd => self.append_upload(piece),
            TrafficPieceKind::Informational => {
                if let Some(open) = self.find_open(&piece.exchange) {
                    open.exchange.push_piece(piece);
                }
                Vec::new()
            }
            TrafficPieceKind::Response | TrafficPieceKind::Chunk => {
                let room = MAX_OPEN_BYTES.saturating_sub(self.buffered_bytes);
                let added = self.find_open(&piece.exchange).map(|open| {
                    // An unknown dialect is not decoded, so its bytes are not buffered.
                    let is_read = open.exchange.dialect() != ApiDialect::Other;
                    open.exchange.push_piece_limited(piece, if is_read { room } else { 0 })
                });
                self.buffered_bytes += added.unwrap_or_default();
                Vec::new()
            }
            TrafficPieceKind::Sent | TrafficPieceKind::Received => Vec::new(),
            TrafficPieceKind::End => {
                let Some(mut open) = self.remove_open(&piece.exchange) else { return Vec::new() };
                self.buffered_bytes -=
                    open.exchange.chunks.first().map_or(0, |(_, bytes)| bytes.len());
                open.exchange.push_piece(piece);
                self.end_exchange(open)
            }
        }
    }

    /// Emits the entries of exchanges that never ended.
    pub fn finish(&mut self) -> Vec<Entry> {
        let pieces = self.sockets.finish();
        let mut entries: Vec<_> =
            pieces.into_iter().flat_map(|piece| self.decode_exchange_piece(piece)).collect();
        let mut open: Vec<OpenExchange> =
            std::mem::take(&mut self.open_exchanges).into_values().flatten().collect();
        self.buffered_bytes = 0;
        open.sort_by_key(|open| (open.exchange.started_at.map(|at| at.instant()), open.number));
        for open in open {
            entries.extend(self.end_exchange(open));
        }
        entries
    }

    /// Emits the remaining entries of an ended exchange.
    fn end_exchange(&mut self, mut open: OpenExchange) -> Vec<Entry> {
        let mut entries = Vec::new();
        if std::mem::take(&mut open.exchange.is_uploading) {
            entries = self.decode_request(&mut open);
        }
        entries.extend(self.decode_response(&open));
        self.release_in_order(open.number, entries, true)
    }

    /// Queues the entries of an exchange and returns those that no longer wait. Without a single source, nothing waits.
    fn release_in_order(&mut self, number: u64, entries: Vec<Entry>, is_ended: bool) -> Vec<Entry> {
        if !self.is_single_source {
            return entries;
        }
        match self.queued.iter_mut().find(|waiting| waiting.exchange_number == number) {
            Some(waiting) => {
                waiting.entries.extend(entries);
                waiting.is_ended = is_ended;
            }
            None => {
                self.queued.push_back(QueuedEntries { exchange_number: number, entries, is_ended })
            }
        }
        let mut released = Vec::new();
        while let Some(first) = self.queued.front_mut() {
            released.append(&mut first.entries);
            if !first.is_ended {
                break;
            }
            self.queued.pop_front();
        }
        released
    }

    /// The cost of all responses, or `None` if a billed response reported none.
    pub fn total_reported_cost(&self) -> Option<f64> {
        self.reported_cost.dollars.filter(|_| !self.reported_cost.is_partial)
    }

    /// Removes the oldest open exchange with this id.
    fn remove_open(&mut self, id: &str) -> Option<OpenExchange> {
        let same_id = self.open_exchanges.get_mut(id)?;
        let open = same_id.pop_front();
        if same_id.is_empty() {
            self.open_exchanges.remove(id);
        }
        open
    }

    /// Response bytes buffered now.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let open = self.open_exchanges.values().flatten().flat_map(|open| &open.exchange.chunks);
        open.map(|(_, bytes)| bytes.len()).sum()
    }

    fn find_open(&mut self, id: &str) -> Option<&mut OpenExchange> {
        self.open_exchanges.get_mut(id)?.front_mut()
    }

    fn begin_exchange(&mut self, piece: &TrafficPiece<'_>) -> Vec<Entry> {
        let exchange = ApiExchange::from_request(piece);
        let key = RequestKey::new(&exchange);
        let retry = self.retries.find_retry(key, &exchange.request_headers);
        let (id, number) = (piece.exchange.clone().into_owned(), self.request_count);
        let (asked, structured, model) = (None, false, None);
        let is_unanswered = false;
        let mut open = OpenExchange {
            id,
            exchange,
            number,
            conversation_point: asked,
            is_structured: structured,
            expects_no_response: is_unanswered,
            model,
            key,
            retry,
        };
        self.request_count += 1;
        let entries =
            if open.exchange.is_uploading { Vec::new() } else { self.decode_request(&mut open) };
        self.open_exchanges.entry(open.id.clone()).or_default().push_back(open);
        self.release_in_order(number, entries, false)
    }

    /// Appends bytes to a request's body. The request is decoded when the body is complete.
    fn append_upload(&mut self, piece: TrafficPiece<'_>) -> Vec<Entry> {
        let id = piece.exchange.clone().into_owned();
        let Some(mut open) = self.remove_open(&id) else { return Vec::new() };
        let was_uploading = open.exchange.is_uploading;
        if was_uploading {
            // One byte over the limit shows that the body is too large.
            let has_room = open.exchange.request_bytes.len() <= MAX_REQUEST_BYTES;
            if has_room || piece.traffic == TrafficPieceKind::UploadEnd {
                open.exchange.push_piece(piece);
            }
        }
        let mut entries = Vec::new();
        if was_uploading && !open.exchange.is_uploading {
            open.key = RequestKey::new(&open.exchange);
            open.retry = self.retries.find_retry(open.key, &open.exchange.request_headers);
            entries = self.decode_request(&mut open);
        }
        let number = open.number;
        self.open_exchanges.entry(id).or_default().push_front(open);
        self.release_in_order(number, entries, false)
    }

    /// Decodes a request. Its body must be complete.
    fn decode_request(&mut self, open: &mut OpenExchange) -> Vec<Entry> {
        let exchange = &open.exchange;
        let dialect = exchange.dialect();
        let body = (dialect != ApiDialect::Other).then(|| exchange.decode_request_body());
        let is_too_large = body.as_ref().is_some_and(|body| body.is_too_large);
        let body = body.filter(|body| !body.is_too_large);
        let request = body.and_then(|body| exchange.request_format().parse_fields(&body.bytes));
        let model = requested_model(&exchange.path, request.as_ref());
        let decoded = request.map(|request| DecodedRequest::from_object(dialect, request));
        open.is_structured = decoded.as_ref().is_some_and(|decoded| decoded.is_structured);
        open.expects_no_response =
            decoded.as_ref().is_some_and(|decoded| decoded.expects_no_response);
        open.model = model;
        // The response is decoded without the request body.
        open.exchange.request_bytes = Vec::new();
        let mut entries =
            decoded.map(|decoded| self.emit_new_messages(decoded, open)).unwrap_or_default();
        if is_too_large {
            entries.push(error_entry(
                too_large_message("request", MAX_REQUEST_BYTES),
                exchange_metadata(open),
            ));
        }
        let error = open.exchange.upload_error.take();
        entries.extend(error.map(|error| error_entry(error, exchange_metadata(open))));
        let measured = open.exchange.measured_request.as_ref();
        entries
            .extend(measured.and_then(|measured| {
                omission_notice("request", measured, exchange_metadata(open))
            }));
        for entry in &mut entries {
            entry.created_at = entry.created_at.or(open.exchange.started_at);
        }
        entries
    }

    /// Emits the messages of a request that its conversation does not have yet.
    fn emit_new_messages(
        &mut self,
        mut decoded: DecodedRequest,
        open: &mut OpenExchange,
    ) -> Vec<Entry> {
        decoded.messages = decoded
            .messages
            .into_iter()
            .filter_map(|entry| self.resolve_reference(entry))
            .collect();
        let matched = self.conversations.match_request(
            &decoded.messages,
            decoded.previous_response_id.as_deref(),
            &decoded.instructions,
        );
        open.conversation_point = Some((
            matched.conversation,
            self.conversations.last_request_hash(matched.conversation),
        ));
        let system = decoded.instructions.into_iter();
        let mut entries: Vec<_> = system
            .filter(|entry| self.conversations.add_instruction(matched.conversation, entry))
            .collect();
        let is_repeated = entries.is_empty() && matched.known_entries == decoded.messages.len();
        // In a shared source, an answer alone would appear to belong to another conversation's prompt.
        let is_apart = self.is_single_source
            && self.last_conversation.replace(matched.conversation) != Some(matched.conversation);
        let known = if is_repeated && is_apart {
            last_prompt_start(&decoded.messages)
        } else {
            matched.known_entries
        };
        entries.extend(decoded.messages.into_iter().skip(known));
        let mut metadata = exchange_metadata(open);
        if let Some(retry) = &open.retry {
            metadata.insert("attempt".to_owned(), retry.attempt.into());
        }
        if let Some(left) = matched.fork_of {
            metadata.insert("fork_of".to_owned(), self.conversations.source(left).into());
        }
        for entry in &mut entries {
            entry.created_at = open.exchange.started_at;
            self.add_metadata(entry, metadata.clone());
        }
        self.assign_source(entries, Some(matched.conversation))
    }

    /// Emits the response of an exchange, or the error in its place.
    fn decode_response(&mut self, open: &OpenExchange) -> Vec<Entry> {
        let exchange = &open.exchange;
        let measured = exchange.measured_response.as_ref();
        let omitted = measured
            .and_then(|measured| omission_notice("answer", measured, exchange_metadata(open)));
        if exchange.dialect() == ApiDialect::Other {
            return self.assign_source(omitted.into_iter().collect(), None);
        }
        let mut reply = DecodedResponse::from_exchange(exchange);
        if let Some((conversation, request_hash)) = open.conversation_point {
            let (entries, is_failed) = (&reply.entries, reply.error.is_some());
            let answer = ConversationAnswer { entries, id: reply.id.as_deref(), is_failed };
            self.conversations.record_answer(conversation, request_hash, answer);
        }
        self.record_attempt(open, &mut reply);
        reply.model = reply.model.or_else(|| open.model.clone());
        if open.expects_no_response && exchange.end.as_ref().is_some_and(|end| end.error.is_none())
        {
            reply = reply.without_entries(find_response_error(exchange));
            if reply.error.is_none() && reply.usage.is_none() {
                return Vec::new();
            }
        }
        self.response_items.extend(std::mem::take(&mut reply.response_items));
        let mut entries = std::mem::take(&mut reply.entries);
        let is_batch = exchange.dialect() == ApiDialect::BatchResults;
        if is_batch && reply.batch_entries.is_empty() {
            // The file holds no batch results.
            return self.assign_source(omitted.into_iter().collect(), None);
        }
        if entries.is_empty() && !is_batch && (reply.usage.is_some() || reply.error.is_none()) {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        let metadata = response_metadata(open, &reply);
        self.add_reply_fields(&mut entries, &reply, open.is_structured, &metadata);
        if let Some(last) = entries.last_mut() {
            last.usage = reply.usage;
            let stated = reply.provider_usage.map(|usage| ("usage".to_owned(), usage));
            last.metadata.get_or_insert_default().extend(stated);
        }
        for mut entry in reply.batch_entries {
            self.add_metadata(&mut entry, exchange_metadata(open));
            entries.push(entry);
        }
        entries.extend(reply.error.map(|error| error_entry(error, metadata)));
        entries.extend(omitted);
        let end = exchange.end.as_ref().map(|end| end.after_micros);
        let end = end.unwrap_or(exchange.last_chunk_micros);
        entries.iter_mut().for_each(|entry| entry.created_at = exchange.timestamp_after(end));
        self.assign_source(entries, open.conversation_point.map(|(conversation, _)| conversation))
    }

    /// Adds message id, model and metadata of a response to its entries.
    fn add_reply_fields(
        &mut self,
        entries: &mut [Entry],
        reply: &DecodedResponse,
        is_structured: bool,
        metadata: &Object,
    ) {
        let is_final = !entries.iter().any(|entry| entry.kind == EntryKind::ToolCall);
        for entry in entries {
            entry.message_id.clone_from(&reply.id);
            entry.model.clone_from(&reply.model);
            let mut metadata = metadata.clone();
            if is_final && entry.kind == EntryKind::Text {
                metadata.insert("has_structured_output".to_owned(), is_structured.into());
            }
            self.add_metadata(entry, metadata);
        }
    }

    /// Records how an attempt ended. A response billed with an earlier attempt counts no tokens.
    fn record_attempt(&mut self, open: &OpenExchange, reply: &mut DecodedResponse) {
        let (id, error) = (reply.id.as_deref(), reply.error.as_deref());
        let outcome = attempt_outcome(open.exchange.status, id, error);
        if self.retries.is_already_billed(open.key, id) {
            (reply.usage, reply.cost) = (None, None);
        }
        match (reply.cost, &reply.usage) {
            (Some(cost), _) => *self.reported_cost.dollars.get_or_insert_default() += cost,
            (None, Some(_)) => self.reported_cost.is_partial = true,
            (None, None) => {}
        }
        let end = AttemptEnd { retry: open.retry.as_ref(), outcome };
        self.retries.record_attempt(open.key, &open.id, end);
    }

    /// Resolves an entry that only refers to an earlier item. Returns `None` if that item was ciphertext.
    fn resolve_reference(&self, entry: Entry) -> Option<Entry> {
        let metadata = entry.metadata.as_ref().filter(|_| entry.kind == EntryKind::Other);
        let reference =
            metadata.filter(|metadata| text_field(metadata, "type") == Some("item_reference"));
        let known =
            reference.and_then(|reference| self.response_items.get(text_field(reference, "id")?));
        known.cloned().unwrap_or(Some(entry))
    }

    /// Adds the exchange's metadata and the tool name to an entry. The entry's own fields win.
    fn add_metadata(&mut self, entry: &mut Entry, mut metadata: Object) {
        let own = entry.metadata.take().unwrap_or_default();
        let id = entry.tool_call_id.clone();
        match (entry.kind, id, &entry.tool_name) {
            (EntryKind::ToolCall, Some(id), Some(name)) => {
                drop(self.tool_names.insert(id, name.clone()))
            }
            (EntryKind::ToolResult, Some(id), None) => {
                entry.tool_name = self.tool_names.get(&id).cloned()
            }
            _ => {}
        }
        if entry.kind == EntryKind::ToolResult {
            let failed = own.get("is_error") == Some(&Value::Bool(true));
            metadata.insert("success".to_owned(), (!failed).into());
        }
        metadata.extend(own);
        entry.metadata = Some(metadata);
    }

    /// Assigns the conversation's source. Entries without a conversation go to the primary source, as all do with a
    /// single source.
    fn assign_source(
        &self,
        mut entries: Vec<Entry>,
        conversation: Option<ConversationIndex>,
    ) -> Vec<Entry> {
        let conversation = conversation.filter(|_| !self.is_single_source);
        let source = conversation
            .map_or(PRIMARY_SOURCE, |conversation| self.conversations.source(conversation));
        entries.iter_mut().for_each(|entry| source.clone_into(&mut entry.source));
        entries
    }
}

/// The index of the first entry after the model's last output.
fn last_prompt_start(messages: &[Entry]) -> usize {
    let answer = messages.iter().rposition(|entry| entry.role == Role::Assistant);
    answer.map_or(0, |at| at + 1)
}
