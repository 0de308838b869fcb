//! Checks the API against its description.

use serde_json::{Value, json};

use crate::guarded::{asked, sent, site};
use crate::site::Site;

/// The server's list of routes.
const ROUTES: &str = include_str!("../../../steno-web/src/routes.rs");

/// Returns why a value does not match a schema.
fn fault(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return fault(document, document.pointer(&name[1..]).unwrap(), value);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().any(|choice| fault(document, choice, value).is_none());
        return (!fits).then(|| format!("{value} is none of {schema}"));
    }
    if let Some(known) = schema["enum"].as_array() {
        return (!known.contains(value)).then(|| format!("{value} is not one of {schema}"));
    }
    let kinds = match &schema["type"] {
        Value::Null => return None,
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    if !kinds.iter().any(|kind| is(value, kind.as_str().unwrap())) {
        return Some(format!("{value} is not {kinds:?}"));
    }
    let missing = schema["required"].as_array().into_iter().flatten();
    if let Some(missing) = missing
        .filter(|_| value.is_object())
        .find(|name| value.get(name.as_str().unwrap()).is_none())
    {
        return Some(format!("{missing} is missing in {value}"));
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let items = value.as_array().filter(|_| !schema["items"].is_null()).into_iter().flatten();
    let in_fields = fields.filter_map(|(name, schema)| Some((schema, value.get(name)?)));
    let mut parts = in_fields.chain(items.map(|item| (&schema["items"], item)));
    parts.find_map(|(schema, value)| fault(document, schema, value))
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("a type that is not checked: {other}"),
    }
}

/// Serves a session with a note. Returns the site, its API description, and the required headers.
fn described() -> (Site, Value, Vec<String>) {
    let (site, host, cookie) = site();
    site.steno(&["annotate", "one:0", "noted #here"]);
    let headers = vec![
        host,
        cookie,
        format!("Origin: {}", site.at("")),
        "Content-Type: application/json".to_owned(),
    ];
    let document = body(&asked(&site, "GET /api/openapi.json", &headers).1);
    (site, document, headers)
}

/// A query of all parameters that are described. An empty one is the same as none.
fn example_query(described: &Value) -> String {
    let parameters = described["parameters"].as_array().into_iter().flatten();
    let in_query = parameters.filter(|parameter| parameter["in"] == "query");
    let pairs = in_query.filter_map(|parameter| match parameter["name"].as_str().unwrap() {
        "q" => Some("q=hello".to_owned()),
        name @ ("a" | "b") => Some(format!("{name}=claude-code/one")),
        _ if parameter["schema"]["type"] != "string" => None,
        name => Some(format!("{name}=")),
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn body(answer: &str) -> Value {
    let text = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn responses_match_the_description() {
    let (site, document, headers) = described();
    let notes = body(&asked(&site, "GET /api/notes", &headers).1);
    let note = notes[0]["id"].as_str().unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, printed) in methods.as_object().unwrap() {
            let address = path.replace("{agent}", "claude-code").replace("{id}", "one");
            let address = address.replace("{note}", note);
            let request = format!("{} {address}?{}", method.to_uppercase(), example_query(printed));
            let (status, answer) = sent(&site, &request, &headers, r#"{"text":"x","entry":0}"#);
            // The agent's folder does not exist.
            let expected = if path.ends_with("/resume") { 400 } else { 200 };
            assert_eq!(status, expected, "{request}: {answer}");
            let name = if status == 200 { "200" } else { "default" };
            let schema = &printed["responses"][name]["content"]["application/json"]["schema"];
            assert!(schema.is_object(), "{request} has no schema");
            assert_eq!(fault(&document, schema, &body(&answer)), None, "{request}");
        }
    }
}

#[test]
fn every_address_is_described_and_every_error_is_an_object() {
    let (site, document, headers) = described();
    let routes = ROUTES.split("\"/api/").skip(1).map(|rest| rest.split('"').next().unwrap());
    for route in routes.filter(|route| *route != "openapi.json") {
        assert!(document["paths"].get(format!("/api/{route}")).is_some(), "/api/{route}");
    }
    let wrong = [
        "GET /api/sessions/claude-code/none/entries",
        "GET /api/sessions/claude-code/one/entries?from=x",
        "GET /api/search?q=%22open",
        "GET /api/cost?since=never",
        "POST /api/sessions/claude-code/one/notes",
        "DELETE /api/sessions/claude-code/one/notes/x",
    ];
    for request in wrong {
        let (status, answer) = asked(&site, request, &headers);
        assert!((400..500).contains(&status), "{request}: {answer}");
        let schema = json!({"$ref": "#/components/schemas/Error"});
        assert_eq!(fault(&document, &schema, &body(&answer)), None, "{request}");
    }
}
