use std::io::{BufReader, Read};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use steno_model::json::Value;

fn walk(text: &[u8], buffer: usize) -> JsonWalker<Box<dyn BufRead>> {
    let input: Box<dyn Read> = Box::new(io::Cursor::new(text.to_vec()));
    JsonWalker::new(Box::new(BufReader::with_capacity(buffer, input)), 0)
}

fn push<T>(list: &mut Vec<T>, item: io::Result<T>) -> io::Result<()> {
    list.push(item?);
    Ok(())
}

/// The values of an object or a list, each with its byte range.
fn values(text: &[u8], buffer: usize) -> io::Result<Vec<Value>> {
    let (mut places, mut values) = (Vec::new(), Vec::new());
    let mut first = walk(text, buffer);
    first.for_each_field(&mut |walk, _| push(&mut places, walk.value_range()))?;
    first.expect_end()?;
    let mut second = walk(text, buffer);
    second.for_each_field(&mut |walk, _| {
        push(&mut values, walk.read_value()?.map_err(malformed_error))
    })?;
    let at = |place: &Range<u64>| &text[place.start as usize..place.end as usize];
    let again: Vec<Value> =
        places.iter().map(|place| serde_json::from_slice(at(place)).unwrap()).collect();
    assert_eq!(again, values);
    Ok(values)
}

#[test]
fn parts_are_found_however_the_bytes_come() {
    let text =
        b"\xef\xbb\xbf {\"a\" : 1.5,\"b\":\"\\\"]}\\\\\",\"c\":[ {\"d\":[]}, \"}\" ],\"e\":null}\n";
    for buffer in [3, 4, 7, 64, 1000] {
        let expected = [json!(1.5), json!("\"]}\\"), json!([{"d": []}, "}"]), json!(null)];
        assert_eq!(values(text, buffer).unwrap(), expected);
    }
    let mut inner = Vec::new();
    let walked = walk(text, 5).for_each_field(&mut |walk, name| match name {
        "c" => walk.for_each_item(&mut |walk| {
            push(&mut inner, walk.read_value::<Value>()?.map_err(malformed_error))
        }),
        _ => walk.for_each_item(&mut |_| panic!("no list")),
    });
    walked.unwrap();
    assert_eq!(inner, [json!({"d": []}), json!("}")]);
}

#[test]
fn reports_invalid_json_with_its_offset() {
    let whole = r#"{"a":[1,{"b":"c"}],"d":2}"#;
    for end in 0..whole.len() {
        let error = values(&whole.as_bytes()[..end], 4).unwrap_err();
        assert_eq!(error.to_string(), format!("not JSON: cut off at byte {end}"));
    }
    for text in ["{\"a\" 1}", "{\"a\":}", "{\"a\":1 2}", "{\"a\":[}", "{,}", "{} {}", "]", "{a:1}"]
    {
        assert_eq!(values(text.as_bytes(), 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_value_that_is_too_long_is_not_held() {
    let text = br#"["12345678",1,"1234567"]"#;
    let mut walk = JsonWalker { max_value_bytes: 9, ..walk(text, 4) };
    let mut held = Vec::new();
    walk.for_each_item(&mut |walk| push(&mut held, walk.read_value::<Value>())).unwrap();
    let too_long = Err("longer than 9 bytes".to_owned());
    assert_eq!(held, [too_long, Ok(json!(1)), Ok(json!("1234567"))]);
}

#[test]
fn a_bad_line_costs_only_itself() {
    let text = b"{\"a\":[1,2]}\n\n{\"a\":[3\n[4]{}\n {\"a\":[\"x\",5]}";
    let source = SessionFile::in_memory("x", "x", text.to_vec());
    let mut actual = Vec::new();
    fn take(walk: &mut JsonWalker<&mut SingleLineReader>) -> io::Result<Vec<Range<u64>>> {
        let mut places = Vec::new();
        walk.for_each_field(&mut |walk, _| {
            walk.for_each_item(&mut |walk| push(&mut places, walk.value_range()))
        })?;
        Ok(places)
    }
    let mut lines = JsonLineWalker::open(&source).unwrap();
    while let Some(places) = lines.walk_next(take).unwrap() {
        actual.push((lines.number, places));
    }
    let bad = |line, reason: &str| (line, Err(Problem::at_line(Path::new("x"), line, reason)));
    let expected = [
        (1, Ok(vec![6..7, 8..9])),
        bad(3, "not JSON: cut off at byte 20"),
        bad(4, "not JSON: unexpected character at byte 24"),
        (5, Ok(vec![34..37, 38..39])),
    ];
    assert_eq!(actual, expected);
    let mut parts = RangeReader::new(&source);
    for (range, bytes) in [(34..37, "\"x\""), (6..7, "1"), (8..9, "2"), (36..99, "\",5]}")] {
        assert_eq!(parts.read(&range).unwrap(), bytes.as_bytes());
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[\\\\\"\\[\\]{},:a é]{0,8}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map("[a\"\\\\]{0,3}", inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_walked(value in any_value(), buffer in 3..40_usize, is_pretty: bool) {
        let whole = json!({"first": value, "second": [value]});
        let text = if is_pretty { format!("{whole:#}") } else { whole.to_string() };
        prop_assert_eq!(values(text.as_bytes(), buffer).unwrap(), [value.clone(), json!([value])]);
    }

    #[test]
    fn any_bytes_end(bytes: Vec<u8>, text in "[{}\\[\\]\",:\\\\a1 ]{0,40}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let mut walk = walk(bytes, 4);
            let _ = walk.for_each_field(&mut |walk, _| walk.for_each_item(&mut |walk| walk.skip_value()));
            let _ = walk.expect_end();
        }
    }
}
