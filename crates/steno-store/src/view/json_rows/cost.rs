//! Sums of tokens and dollars as JSON objects.

use serde_json::{Map, Value, json};

use crate::amount::round_for_json;
use crate::cost::billing_block::BillingBlock;
use crate::cost::charge::ChargeTable;
use crate::cost::report::{ChargeSum, GroupBy, ReportRow};
use steno_model::timestamp::Timestamp;

/// The name of a missing model.
const NO_MODEL: &str = "unknown";

/// The fields of `key`, then those of the sum.
pub fn sum_object(
    mut key: Map<String, Value>,
    charges: &ChargeTable,
    sum: &ChargeSum,
) -> Map<String, Value> {
    let mut add = |name: &str, value: Value| _ = key.insert(name.to_owned(), value);
    add("tokens", json!(sum.tokens()));
    add("cost", json!(sum.cost().map(round_for_json)));
    add("unpriced", json!(unpriced_models(charges, sum)));
    add("sessions", json!(sum.sessions.len()));
    key
}

/// The key of the total.
pub fn total_key() -> Map<String, Value> {
    Map::from_iter([("total".to_owned(), Value::Bool(true))])
}

/// The key of a row.
pub fn row_key(charges: &ChargeTable, by: GroupBy, row: &ReportRow) -> Map<String, Value> {
    let mut fields = Map::new();
    if by != GroupBy::Session {
        fields.insert(by.name().to_owned(), json!(row.key));
        return fields;
    }
    for account in row.sum.sessions.iter().map(|at| &charges.accounts[*at]) {
        fields.insert("session".to_owned(), json!(account.session));
        fields.insert("agent".to_owned(), json!(account.agent));
        fields.insert("project".to_owned(), json!(account.project));
        fields.insert("title".to_owned(), json!(account.title));
    }
    fields
}

/// The key of a block, with burn rate and projection if it is active.
pub fn block_key(block: &BillingBlock, now: i64) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
    add("block", json!(timestamp_from_millis(block.start)));
    add("end", json!(timestamp_from_millis(block.end)));
    add("gap", json!(block.is_gap));
    add("active", json!(block.is_active(now)));
    add("first", json!(block.sum.first.and_then(timestamp_from_millis)));
    add("last", json!(block.sum.last.and_then(timestamp_from_millis)));
    let burn = block.burn_rate().filter(|_| block.is_active(now));
    let burn = burn.map(|burn| {
        json!({"tokens_per_minute": round_for_json(burn.tokens_per_minute),
               "cost_per_hour": burn.cost_per_hour.map(round_for_json)})
    });
    add("burn", json!(burn));
    let projection = block.project_end(now).map(|end| {
        json!({"minutes_left": end.minutes_left, "tokens": end.tokens, "cost": end.cost.map(round_for_json)})
    });
    add("projection", json!(projection));
    fields
}

/// The models of a sum without a known price.
pub fn unpriced_models<'a>(charges: &'a ChargeTable, sum: &ChargeSum) -> Vec<&'a str> {
    let name = |model: &usize| match charges.models[*model].as_str() {
        "" => NO_MODEL,
        name => name,
    };
    let mut names: Vec<_> = sum.unpriced.iter().map(name).collect();
    names.sort_unstable();
    names
}

/// A timestamp from milliseconds since 1970.
pub fn timestamp_from_millis(at: i64) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_millisecond(at).ok()?;
    Some(Timestamp::from_instant(instant, if at % 1000 == 0 { 0 } else { 3 }))
}
