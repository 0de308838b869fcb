//! Deserializes JSON fields that change type between versions. A value of an unexpected type counts as absent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Any JSON value. Objects are deserialized as `T`; numbers are dropped.
#[derive(Debug, Default)]
pub(super) enum Loose<'a, T> {
    #[default]
    Absent,
    Flag(bool),
    Text(Cow<'a, str>),
    List(Vec<Loose<'a, T>>),
    Object(Box<T>),
}

/// A value read only as text or boolean.
pub(super) type Plain<'a> = Loose<'a, IgnoredAny>;

impl<T> Loose<'_, T> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Loose::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn owned(&self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Loose::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self, Loose::Flag(true))
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Loose::Absent)
    }

    pub(super) fn object(&self) -> Option<&T> {
        match self {
            Loose::Object(object) => Some(object),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Loose<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor(PhantomData))
    }
}

struct LooseVisitor<'a, T>(PhantomData<(&'a (), T)>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for LooseVisitor<'a, T> {
    type Value = Loose<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text)))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Loose::Flag(flag))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Loose::Absent)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Loose::Absent)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Loose::Absent)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Loose::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Loose::List(list))
    }

    // With arbitrary precision, serde_json passes a number as a map, which `T` reads as an object without known fields.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
            .map(|object| Loose::Object(Box::new(object)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_taken() {
        let told = |json: &str| match serde_json::from_str::<Plain<'_>>(json).unwrap() {
            Loose::Absent => "absent".to_owned(),
            Loose::Flag(flag) => flag.to_string(),
            Loose::Text(Cow::Borrowed(text)) => format!("borrowed {text}"),
            Loose::Text(Cow::Owned(text)) => format!("owned {text}"),
            Loose::List(list) => format!("{} items", list.len()),
            Loose::Object(_) => "object".to_owned(),
        };
        let given = ["null", "true", r#""a""#, r#""\n""#, "[1, [], {}]", "{}", "1e400"];
        let wanted = ["absent", "true", "borrowed a", "owned \n", "3 items", "object", "object"];
        assert_eq!(given.map(told), wanted);
    }
}
