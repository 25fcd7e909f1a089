//! A data URL: media that stand inside the text of a trace.

use crate::id::Hash;
use crate::trajectory::{Media, Trajectory};

/// The media that a URL means. A data URL's bytes go to the run's media and are referred to by hash;
/// any other URL, or one whose base64 is damaged, is kept as text and never followed.
pub(super) fn media(url: &str, mime_guess: &str, run: &mut Trajectory) -> Media {
    let by_reference =
        |mime: &str| Media { mime: mime.to_owned(), blob: None, reference: Some(url.to_owned()) };
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return by_reference(mime_guess);
    };
    let mime = head.split(';').next().filter(|mime| !mime.is_empty()).unwrap_or(mime_guess);
    let bytes = if head.ends_with(";base64") { decode_base64(data) } else { None };
    bytes.map_or_else(|| by_reference(mime), |bytes| embedded(mime, bytes, run))
}

/// Media whose bytes are at hand.
pub(super) fn embedded(mime: &str, bytes: Vec<u8>, run: &mut Trajectory) -> Media {
    let blob = Hash::of(&bytes);
    run.media.insert(blob, bytes);
    Media { mime: mime.to_owned(), blob: Some(blob), reference: None }
}

/// The bytes of a base64 text (standard or URL-safe alphabet, padding and line breaks optional), or
/// `None` where it is none.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut bits, mut padding) = (0u32, 0, 0);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' => continue,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        group = group << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((group >> bits) as u8);
            group &= (1 << bits) - 1;
        }
    }
    // A last group of one digit holds no byte; left-over bits must be zero.
    (bits < 6 && group == 0 && padding <= 2).then_some(bytes)
}

/// The data URL of some bytes.
pub(crate) fn encode(mime: &str, bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut url = format!("data:{mime};base64,");
    url.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            url.push(if digit <= group.len() { DIGITS[index as usize] as char } else { '=' });
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::{decode_base64, encode, media};
    use crate::id::Hash;
    use crate::task::Task;
    use crate::trajectory::Trajectory;

    #[test]
    fn base64_is_decoded_or_refused() {
        assert_eq!(decode_base64("aGk=").as_deref(), Some(b"hi".as_slice()));
        assert_eq!(decode_base64("_-8"), Some(vec![0xff, 0xef]));
        assert_eq!(decode_base64("").as_deref(), Some(b"".as_slice()));
        for damaged in ["a", "a=b", "{b64_img}", "aGk", "aGl"] {
            let expected = (damaged == "aGk").then(|| b"hi".to_vec());
            assert_eq!(decode_base64(damaged), expected, "{damaged}");
        }
    }

    #[test]
    fn base64_reads_back() {
        for bytes in [b"".as_slice(), b"a", b"ab", b"abc", &[0xff, 0xfe, 0x00, 0x10]] {
            let url = encode("image/png", bytes);
            let data = url.strip_prefix("data:image/png;base64,").unwrap();
            assert_eq!((decode_base64(data).as_deref(), data.len() % 4), (Some(bytes), 0));
        }
    }

    #[test]
    fn bytes_travel_with_the_run_and_urls_do_not_move() {
        let mut run = Trajectory::new("test", Task::from_goal(""));
        let image = media("data:image/png;base64,aGk=", "image/*", &mut run);
        assert_eq!((image.mime.as_str(), image.blob), ("image/png", Some(Hash::of(b"hi"))));
        assert_eq!(run.media[&Hash::of(b"hi")], b"hi");
        for url in ["https://example.org/a.png", "data:image/png;base64,{b64_img}"] {
            let image = media(url, "image/*", &mut run);
            assert_eq!((image.blob, image.reference.as_deref()), (None, Some(url)));
        }
    }
}
