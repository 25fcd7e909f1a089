//! Media inside the text of a trace: data URLs, bytes in base64, and references to what lies elsewhere.

use std::collections::BTreeMap;

use crate::id::Hash;
use crate::trajectory::{Media, Part};

/// The media that a URL means. A data URL's bytes go to `bytes` and are referred to by hash; any other
/// URL, or one whose base64 is damaged, is kept as text and never followed.
///
/// `mime` is the type that the trace states; where it states the kind only (`image/*`), the URL may
/// say more.
pub(super) fn media(url: &str, mime: &str, bytes: &mut BTreeMap<Hash, Vec<u8>>) -> Part {
    let by_reference = |mime: &str| {
        Part::Media(Media { mime: mime.to_owned(), blob: None, reference: Some(url.to_owned()) })
    };
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        let by_ending = mime_of(url).filter(|_| mime.ends_with("/*"));
        return by_reference(by_ending.unwrap_or(mime));
    };
    let mime = head.split(';').next().filter(|mime| !mime.is_empty()).unwrap_or(mime);
    let held = if head.ends_with(";base64") { encoded(mime, data, bytes) } else { None };
    held.unwrap_or_else(|| by_reference(mime))
}

/// Media whose bytes stand in the trace as base64; `None` where the text is none.
pub(super) fn encoded(mime: &str, text: &str, bytes: &mut BTreeMap<Hash, Vec<u8>>) -> Option<Part> {
    let decoded = decode_base64(text)?;
    let blob = Hash::of(&decoded);
    bytes.insert(blob, decoded);
    Some(Part::Media(Media { mime: mime.to_owned(), blob: Some(blob), reference: None }))
}

/// The MIME type of an image that a name's ending tells.
pub(super) fn mime_of(name: &str) -> Option<&'static str> {
    let path = name.split(['?', '#']).next().unwrap_or(name);
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

/// The bytes of a base64 text (standard or URL-safe alphabet, padding and line breaks optional), or
/// `None` where it is none.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
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
    use std::collections::BTreeMap;

    use super::{decode_base64, encode, encoded, media};
    use crate::id::Hash;
    use crate::trajectory::{Media, Part};

    #[test]
    fn base64_is_decoded_or_refused() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9v\r\nYg", "foob")]
        {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(decode_base64("_-8"), Some(vec![0xff, 0xef]));
        for damaged in ["a", "a=b", "{b64_img}", "aGl", "aGk==="] {
            assert_eq!(decode_base64(damaged), None, "{damaged}");
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
        let mut bytes = BTreeMap::new();
        let blob = Some(Hash::of(b"hi"));
        let held = Part::Media(Media { mime: "image/png".to_owned(), blob, reference: None });
        assert_eq!(media("data:image/png;base64,aGk=", "image/*", &mut bytes), held);
        assert_eq!(encoded("image/png", "aGk", &mut bytes), Some(held));
        assert_eq!(bytes.into_iter().collect::<Vec<_>>(), [(Hash::of(b"hi"), b"hi".to_vec())]);
        for (url, stated, mime) in [
            ("https://example.org/a.PNG?y", "image/*", "image/png"),
            ("https://example.org/a.png", "image/webp", "image/webp"),
            ("https://example.org/a", "audio/*", "audio/*"),
            ("data:image/png;base64,{b64_img}", "image/*", "image/png"),
        ] {
            let named = Media { mime: mime.to_owned(), blob: None, reference: Some(url.to_owned()) };
            assert_eq!(media(url, stated, &mut BTreeMap::new()), Part::Media(named));
        }
    }
}
