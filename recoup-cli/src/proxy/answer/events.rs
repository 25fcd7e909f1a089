//! Server-sent events: lines that may come in any pieces, blank lines between events.

use memchr::memchr;

/// Longest line and longest event, in bytes.
const EVENT_MAX: usize = 32 << 20;

/// Cuts a stream into the data of its events.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    overlong: bool,
}

impl Events {
    /// Hands on the data of every event that these bytes complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut event: impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (head, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            if self.line.is_empty() {
                self.take(head, &mut event);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.take(&line, &mut event);
                line.clear();
                self.line = line;
            }
        }
        if self.line.len() + bytes.len() > EVENT_MAX {
            self.overlong = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn take(&mut self, line: &[u8], event: &mut impl FnMut(&[u8])) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if self.has_data {
                event(&self.data);
                self.data.clear();
                self.has_data = false;
            }
            return;
        }
        let Some(data) = line.strip_prefix(b"data:") else { return };
        if self.data.len() + data.len() > EVENT_MAX {
            self.overlong = true;
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        self.has_data = true;
    }

    /// Whether a line or an event was too long to be kept.
    pub(super) fn is_overlong(&self) -> bool {
        self.overlong
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    #[test]
    fn events_come_in_any_pieces() {
        let stream = b": hi\r\nevent: x\ndata: one\n\ndata:two\ndata: three\r\n\r\nid: 4\n\ndata: [DONE]\n\n";
        for size in 1..stream.len() {
            let (mut events, mut found) = (Events::default(), Vec::new());
            for piece in stream.chunks(size) {
                events.feed(piece, |data| found.push(String::from_utf8_lossy(data).into_owned()));
            }
            assert_eq!(found, ["one", "two\nthree", "[DONE]"], "in pieces of {size}");
        }
    }
}
