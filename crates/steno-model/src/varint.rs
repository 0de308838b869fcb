//! Variable-length integers with seven bits per byte, so that small numbers are short.

/// Appends a number.
pub fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number from the front; `None` if the bytes do not hold a complete one.
pub fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_values_are_read_back(numbers: Vec<u64>) {
            let mut bytes = Vec::new();
            let numbers = numbers.into_iter().map(|number| number >> (number % 64));
            let numbers: Vec<_> = numbers.inspect(|number| write_varint(&mut bytes, *number)).collect();
            let mut rest = bytes.as_slice();
            let read: Vec<_> = std::iter::from_fn(|| read_varint(&mut rest)).collect();
            prop_assert_eq!(read, numbers);
        }
    }
}
