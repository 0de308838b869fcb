//! Sums of tokens and dollars as JSON objects.

use serde_json::{Map, Value, json};

use crate::cost::block::Block;
use crate::cost::charge::Charges;
use crate::cost::report::{By, Row, Sum};
use crate::timestamp::Timestamp;
use crate::view::amount::rounded;

/// The name of a missing model.
const NO_MODEL: &str = "unknown";

/// The fields of `key`, then those of the sum.
pub fn sum(mut key: Map<String, Value>, charges: &Charges, sum: &Sum) -> Map<String, Value> {
    let mut add = |name: &str, value: Value| _ = key.insert(name.to_owned(), value);
    add("tokens", json!(sum.tokens()));
    add("cost", json!(sum.cost().map(rounded)));
    add("unpriced", json!(unpriced(charges, sum)));
    add("sessions", json!(sum.sessions.len()));
    key
}

/// The key of the total.
pub fn total_key() -> Map<String, Value> {
    Map::from_iter([("total".to_owned(), Value::Bool(true))])
}

/// The key of a row.
pub fn row_key(charges: &Charges, by: By, row: &Row) -> Map<String, Value> {
    let mut fields = Map::new();
    if by != By::Session {
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
pub fn block_key(block: &Block, now: i64) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
    add("block", json!(moment(block.start)));
    add("end", json!(moment(block.end)));
    add("gap", json!(block.is_gap));
    add("active", json!(block.is_active(now)));
    add("first", json!(block.sum.first.and_then(moment)));
    add("last", json!(block.sum.last.and_then(moment)));
    let burn = block.burn().filter(|_| block.is_active(now));
    let burn = burn.map(|burn| {
        json!({"tokens_per_minute": rounded(burn.tokens_per_minute),
               "cost_per_hour": burn.cost_per_hour.map(rounded)})
    });
    add("burn", json!(burn));
    let projection = block.projection(now).map(|end| {
        json!({"minutes_left": end.minutes_left, "tokens": end.tokens, "cost": end.cost.map(rounded)})
    });
    add("projection", json!(projection));
    fields
}

/// The models of a sum without a known price.
pub fn unpriced<'a>(charges: &'a Charges, sum: &Sum) -> Vec<&'a str> {
    let name = |model: &usize| match charges.models[*model].as_str() {
        "" => NO_MODEL,
        name => name,
    };
    let mut names: Vec<_> = sum.unpriced.iter().map(name).collect();
    names.sort_unstable();
    names
}

/// A timestamp from milliseconds since 1970.
pub fn moment(at: i64) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_millisecond(at).ok()?;
    Some(Timestamp::from_instant(instant, if at % 1000 == 0 { 0 } else { 3 }))
}
