//! The scanner returns what `serde_json` parses.

use std::fmt;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::RawJson;

/// A JSON value, without the text of numbers that are not integers.
#[derive(Debug, PartialEq)]
enum Tree {
    Null,
    Flag(bool),
    Whole(i128),
    Text(String),
    List(Vec<Tree>),
    Fields(Vec<(String, Tree)>),
}

/// The name under which serde_json passes the text of a number.
const NUMBER: &str = "$serde_json::private::Number";

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Tree, E> {
        Ok(Tree::Flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Whole(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Whole(number.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value()?;
            if name != NUMBER {
                fields.push((name, value));
            }
        }
        Ok(Tree::Fields(fields))
    }
}

fn first_of<'a, T: Deserialize<'a>>(text: &'a str) -> Option<(T, usize)> {
    super::parse_first_object(text, usize::MAX)
}

/// The first value that serde_json parses.
fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Option<(T, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

fn check(text: &str) {
    if let Some((tree, length)) = first_of::<Tree>(text) {
        assert_eq!(parsed::<Tree>(text), Some((tree, length)), "{text}");
    }
    if let Some((_, length)) = first_of::<IgnoredAny>(text) {
        let parsed = parsed::<IgnoredAny>(text).map(|(_, length)| length);
        assert_eq!(parsed, Some(length), "{text}");
    }
    if let Some((raw, _)) = first_of::<RawJson<'_>>(text) {
        assert_eq!(parsed::<RawJson<'_>>(text).map(|(raw, _)| raw.0), Some(raw.0), "{text}");
    }
}

/// Any JSON value, including characters that need escapes.
fn value() -> impl Strategy<Value = Value> {
    let text = "[a-z\"\\\\/\n\t\u{7f}é😀 ]{0,12}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let fields = prop::collection::vec(("[a-z]{0,4}", inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn plain_json_is_skimmed(value in value()) {
        let text = format!("{}, {value}", serde_json::json!({ "a": value }));
        prop_assert!(first_of::<Tree>(&text).is_some());
        check(&text);
    }

    #[test]
    fn changed_json_is_rejected_or_equal(
        value in value(), at in any::<prop::sample::Index>(), with in "[\"\\\\{}\\[\\],:0-9eE.+\\-un dcDC8ftr ]{0,3}",
    ) {
        let text = serde_json::json!({ "a": value }).to_string();
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        let place = places[at.index(places.len())];
        let next = text[place..].chars().next().map_or(0, char::len_utf8);
        check(&format!("{}{with}{}", &text[..place], &text[place + next..]));
        check(&text[..place]);
    }
}

#[test]
fn odd_json_is_left_to_others() {
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    let odd = [
        "[1,]",
        "{,}",
        "01",
        "-0.",
        "1.",
        "-",
        "1e",
        "nul",
        "\"\\q\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"a\tb\"",
        "\"",
        "{\"a\" 1}",
        "[1 2]",
        "{\"\\n\":1}",
        "\"\\u12\"",
        "1,",
        &deep,
    ];
    for text in ["", "[]", "1", "{"] {
        assert!(first_of::<Tree>(text).is_none(), "{text}");
    }
    for text in odd {
        let text = format!("{{\"a\":{text}}}");
        assert!(first_of::<Tree>(&text).is_none(), "{text}");
        check(&text);
    }
}

#[test]
fn escapes_and_spaces_are_read() {
    let text = r#" { "a" : [ "x\"\\\/\b\f\n\r\tA😀" , null ] } rest"#;
    let (tree, length) = first_of::<Tree>(text).unwrap();
    let content = "x\"\\/\u{8}\u{c}\n\r\tA\u{1f600}";
    let list = Tree::List(vec![Tree::Text(content.to_owned()), Tree::Null]);
    assert_eq!(tree, Tree::Fields(vec![("a".to_owned(), list)]));
    assert_eq!(&text[length..], " rest");
    check(text);
}

#[test]
fn of_long_texts_the_beginning_will_do() {
    let long = "x".repeat(30);
    let text = format!(
        r#"{{"own":"a\n{long}","in":{{"cut":"b\n{long}","element":"<b\n{long}","blank":"\n{long}","short":"c\n"}}}}"#
    );
    let (tree, length) = super::parse_first_object::<Tree>(&text, 20).unwrap();
    assert_eq!(length, text.len());
    let (whole, _) = first_of::<Tree>(&text).unwrap();
    let mut wanted = whole;
    let Tree::Fields(fields) = &mut wanted else { panic!("an object") };
    let Tree::Fields(inner) = &mut fields[1].1 else { panic!("an object") };
    inner[0].1 = Tree::Text("b".to_owned());
    assert_eq!(tree, wanted);
    assert!(super::parse_first_object::<Tree>(r#"{"a":{"b":"c\n0123456789\q"}}"#, 5).is_none());
}
