//! Parses the index nodes of a store: protobuf messages with the ordered child blobs in field 1.

use steno_model::varint;

/// The ids of a node's children in hexadecimal. Empty if the bytes are not a node.
pub(super) fn child_ids(bytes: &[u8]) -> Vec<String> {
    let mut input = bytes;
    let mut children = Vec::new();
    while !input.is_empty() {
        match read_field(&mut input) {
            Some((1, Some(id))) if id.len() == 32 => children.push(to_hex(id)),
            Some(_) => {}
            None => break,
        }
    }
    children
}

/// Reads the next field: its number, and its bytes if it is length-delimited.
fn read_field<'a>(input: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let tag = varint::read_varint(input)?;
    let bytes = match tag & 7 {
        0 => varint::read_varint(input).map(|_| None)?,
        1 => input.split_off(..8).map(|_| None)?,
        2 => {
            let length = usize::try_from(varint::read_varint(input)?).ok()?;
            Some(input.split_off(..length)?)
        }
        5 => input.split_off(..4).map(|_| None)?,
        _ => return None,
    };
    Some((tag >> 3, bytes))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_first_field_lists_children() {
        let node = [&[0x10, 0x96, 0x01, 0x0a, 32][..], &[7; 32], &[0x12, 32], &[8; 32]].concat();
        assert_eq!(child_ids(&node), ["07".repeat(32)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            child_ids(&bytes);
        }
    }
}
