//! Lists of node ids as bytes: the difference to the id before, zigzag, 7 bits a byte. The ids of a
//! fresh run follow each other, so most take one byte.

/// Writes ids.
pub(super) fn encode(ids: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut previous = 0_i64;
    for id in ids {
        let step = id.wrapping_sub(previous);
        let mut rest = ((step << 1) ^ (step >> 63)) as u64;
        while rest >= 0x80 {
            out.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
        previous = id;
    }
    out
}

/// Reads ids back; `None` where the bytes are not such a list.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<i64>> {
    let mut ids = Vec::with_capacity(bytes.len());
    let (mut previous, mut rest, mut shift) = (0_i64, 0_u64, 0_u32);
    for byte in bytes {
        if shift > 63 {
            return None;
        }
        rest |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let step = (rest >> 1) as i64 ^ -((rest & 1) as i64);
            previous = previous.wrapping_add(step);
            ids.push(previous);
            (rest, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{decode, encode};

    proptest! {
        #[test]
        fn ids_read_back(ids in proptest::collection::vec(any::<i64>(), 0..20)) {
            assert_eq!(decode(&encode(ids.iter().copied())), Some(ids));
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn following_ids_take_a_byte_each() {
        assert_eq!(encode(1000..1030).len(), 31);
        assert_eq!(decode(&[0x80]), None);
    }
}
