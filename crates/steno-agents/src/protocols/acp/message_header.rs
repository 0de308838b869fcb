//! The routing fields of a JSON-RPC message: method, id and session id.
//!
//! One pass parses them and validates that the line is JSON, because every line of a connection goes through here. It
//! takes 0.65 of the CPU time of parsing the whole message, and no more than only validating it (`json_passes` in the
//! benches of `steno-store`).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The routing fields of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcpMessageHeader<'a> {
    /// The method of a request or notification. `None` for a response.
    pub method: Option<Cow<'a, str>>,
    /// The request id, as raw JSON. A response repeats the id of its request.
    pub id: Option<&'a str>,
    /// The session id in `params` or `result`.
    pub session: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct AcpMessageFields<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: OptionalText<'a>,
    #[serde(borrow, default)]
    params: SessionIdField<'a>,
    #[serde(borrow, default)]
    result: SessionIdField<'a>,
}

impl<'a> AcpMessageHeader<'a> {
    /// Parses the header of a message. `None` if the line is not a JSON object.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let line = simdutf8::basic::from_utf8(line).ok()?;
        // Serde would also accept a list and take its items as fields in order.
        line.trim_ascii_start().starts_with('{').then_some(())?;
        let head: AcpMessageFields<'a> = serde_json::from_str(line).ok()?;
        let id = head.id.map(RawValue::get).filter(|id| *id != "null");
        let method = head.method.0;
        let named = if method.is_some() { head.params } else { head.result };
        Some(Self { method, id, session: named.0 })
    }

    /// Whether the message carries text of people or models.
    pub fn carries_conversation(&self) -> bool {
        self.method.as_deref().is_some_and(is_conversation_method)
    }
}

/// Whether messages of this method carry text of people or models.
pub(super) fn is_conversation_method(method: &str) -> bool {
    matches!(method, "session/prompt" | "session/update" | "session/request_permission")
}

/// The agent's name, if the line is a response to `initialize`.
pub fn parse_agent_name(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct InitializeResponse {
        result: InitializeResult,
    }
    #[derive(Deserialize)]
    struct InitializeResult {
        #[serde(default, rename = "agentInfo")]
        agent_info: Option<AcpAgentInfo>,
        #[serde(default)]
        info: Option<AcpAgentInfo>,
        #[serde(rename = "protocolVersion")]
        _version: IgnoredAny,
    }
    #[derive(Deserialize)]
    struct AcpAgentInfo {
        name: String,
    }
    let result = serde_json::from_slice::<InitializeResponse>(line).ok()?.result;
    Some(result.agent_info.or(result.info)?.name)
}

/// A string value. Values of other types parse as `None`.
#[derive(Default)]
struct OptionalText<'a>(Option<Cow<'a, str>>);

/// The `sessionId` field of an object. Values of other types parse as `None`.
#[derive(Default)]
struct SessionIdField<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for OptionalText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeaderFieldVisitor { takes_text: true }).map(OptionalText)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for SessionIdField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeaderFieldVisitor { takes_text: false }).map(SessionIdField)
    }
}

/// Takes a string, or the `sessionId` of an object, and skips everything else.
struct HeaderFieldVisitor {
    takes_text: bool,
}

impl<'de> Visitor<'de> for HeaderFieldVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.takes_text.then_some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.takes_text.then(|| Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut session = None;
        while let Some(OptionalText(key)) = map.next_key()? {
            if !self.takes_text && key.as_deref() == Some("sessionId") {
                session = map.next_value::<OptionalText<'de>>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(session)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(line: &str) -> Option<(Option<String>, Option<String>, Option<String>)> {
        let header = AcpMessageHeader::parse(line.as_bytes())?;
        let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Some((text(header.method), header.id.map(str::to_owned), text(header.session)))
    }

    #[test]
    fn parses_session_and_id_of_messages() {
        let some = |text: &str| Some(text.to_owned());
        let update = r#"{"method":"session/update","params":{"a":[1.50,{}],"sessionId":"s"}}"#;
        assert_eq!(address(update), Some((some("session/update"), None, some("s"))));
        let answer = r#"{"id":7,"result":{"sessionId":"a\u00e9"},"params":{"sessionId":"no"}}"#;
        assert_eq!(address(answer), Some((None, some("7"), some("aé"))));
        for odd in ["[1]", "null", "true", "-12345678901234567890123", "\"sessionId\""] {
            let line = format!(r#"{{"id":null,"method":"m","params":{odd}}}"#);
            assert_eq!(address(&line), Some((some("m"), None, None)), "{odd}");
        }
        assert_eq!(address(r#"{"method":1,"id":"x","result":{"sessionId":2}}"#).unwrap().2, None);
    }

    #[test]
    fn other_lines_have_no_header() {
        let lines =
            ["", "x", "[{}]", "{\"a\":1", "{\"method\":\"a\",\"method\":\"b\"}", "{}x", "{'a':1}"];
        for line in lines {
            assert_eq!(address(line), None, "{line}");
        }
        assert!(AcpMessageHeader::parse(b"{\"a\":\"\xff\"}").is_none());
    }
}
