//! Data URLs: the bytes of an image or a sound that a harness wrote into the trace itself.

use std::collections::BTreeMap;

use crate::id::Hash;
use crate::trajectory::{Media, Part};

/// A media part for a URL: the bytes go to `media` where the URL holds them in base64; any other URL
/// is a reference, which nobody follows.
pub(super) fn media_part(url: &str, media: &mut BTreeMap<Hash, Vec<u8>>) -> Part {
    let Some((mime, bytes)) = decode(url) else {
        return Part::Media(Media { mime: mime_of(url), blob: None, reference: Some(url.to_owned()) });
    };
    let blob = Hash::of(&bytes);
    media.insert(blob, bytes);
    Part::Media(Media { mime: mime.to_owned(), blob: Some(blob), reference: None })
}

fn decode(url: &str) -> Option<(&str, Vec<u8>)> {
    let (head, body) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    Some((mime, base64(body)?))
}

/// The MIME type a reference's ending says, else that of unknown bytes.
fn mime_of(reference: &str) -> String {
    let path = reference.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => "application/octet-stream",
    }
    .to_owned()
}

/// Standard or URL-safe base64 with or without padding; `None` for anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0u32;
        for byte in group {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(digit);
        }
        match group.len() {
            4 => out.extend_from_slice(&bits.to_be_bytes()[1..]),
            3 => out.extend_from_slice(&(bits << 6).to_be_bytes()[1..3]),
            2 => out.extend_from_slice(&(bits << 12).to_be_bytes()[1..2]),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{base64, media_part};
    use crate::trajectory::Part;

    #[test]
    fn base64_of_every_length() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob")] {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(base64("{b64_img}"), None);
        assert_eq!(base64("Z"), None);
    }

    #[test]
    fn a_placeholder_stays_a_reference() {
        let mut media = BTreeMap::new();
        let Part::Media(held) = media_part("data:image/png;base64,Zm9v", &mut media) else { panic!() };
        assert_eq!(
            (held.mime.as_str(), media.values().next().unwrap().as_slice()),
            ("image/png", &b"foo"[..])
        );
        let Part::Media(named) = media_part("https://x/a.PNG?y", &mut media) else { panic!() };
        assert_eq!((named.mime.as_str(), named.blob), ("image/png", None));
        assert_eq!(media.len(), 1);
    }
}
