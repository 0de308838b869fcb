//! Deserializes JSON fields that change type between versions. A value of an unexpected type counts as absent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Any JSON value. Objects are deserialized as `T`; numbers are dropped.
#[derive(Debug, Default)]
pub(super) enum LenientValue<'a, T> {
    #[default]
    Absent,
    Flag(bool),
    Text(Cow<'a, str>),
    List(Vec<LenientValue<'a, T>>),
    Object(Box<T>),
}

/// A value read only as text or boolean.
pub(super) type LenientScalar<'a> = LenientValue<'a, IgnoredAny>;

impl<T> LenientValue<'_, T> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            LenientValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn owned_text(&self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    pub(super) fn into_text(self) -> Option<String> {
        match self {
            LenientValue::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self, LenientValue::Flag(true))
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, LenientValue::Absent)
    }

    pub(super) fn object(&self) -> Option<&T> {
        match self {
            LenientValue::Object(object) => Some(object),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for LenientValue<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientValueVisitor(PhantomData))
    }
}

struct LenientValueVisitor<'a, T>(PhantomData<(&'a (), T)>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for LenientValueVisitor<'a, T> {
    type Value = LenientValue<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(LenientValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(LenientValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(LenientValue::Text(Cow::Owned(text)))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(LenientValue::Flag(flag))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(LenientValue::Absent)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(LenientValue::Absent)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(LenientValue::Absent)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(LenientValue::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(LenientValue::List(list))
    }

    // With arbitrary precision, serde_json passes a number as a map, which `T` reads as an object without known fields.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
            .map(|object| LenientValue::Object(Box::new(object)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_taken() {
        let parse = |json: &str| match serde_json::from_str::<LenientScalar<'_>>(json).unwrap() {
            LenientValue::Absent => "absent".to_owned(),
            LenientValue::Flag(flag) => flag.to_string(),
            LenientValue::Text(Cow::Borrowed(text)) => format!("borrowed {text}"),
            LenientValue::Text(Cow::Owned(text)) => format!("owned {text}"),
            LenientValue::List(list) => format!("{} items", list.len()),
            LenientValue::Object(_) => "object".to_owned(),
        };
        let given = ["null", "true", r#""a""#, r#""\n""#, "[1, [], {}]", "{}", "1e400"];
        let wanted = ["absent", "true", "borrowed a", "owned \n", "3 items", "object", "object"];
        assert_eq!(given.map(parse), wanted);
    }
}
