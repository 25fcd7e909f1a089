//! A fork: how far the history reaches that was copied into a session.
//!
//! The head of a forked session names the session that it came from, or that one's own head follows it. Then its
//! lines follow, written in one go: each within a moment of the line before, under the time of the copy (or older
//! times, where the copy kept them). The first line after a pause is the session's own.

/// A pause between two lines that no copying makes, in milliseconds.
const PAUSE: u64 = 1000;

/// How far the copied history reaches.
#[derive(Default)]
pub(super) struct Fork {
    /// When the session began, and when the last line was written.
    began: Option<String>,
    last: Option<String>,
    forked: bool,
    own: bool,
}

impl Fork {
    /// The session says that it is a fork.
    pub(super) fn begin(&mut self) {
        self.forked = true;
    }

    /// Passes a line, written at that time.
    pub(super) fn pass(&mut self, at: Option<&str>) {
        let Some(at) = at else { return };
        let began = self.began.get_or_insert_with(|| at.to_owned());
        let at_once = match self.last.as_deref().and_then(moment).zip(moment(at)) {
            Some((last, now)) => now < last + PAUSE,
            None => self.last.is_none(),
        };
        self.own |= !at_once && at > began.as_str();
        self.last = Some(at.to_owned());
    }

    /// Whether the line at hand is copied.
    pub(super) fn is_copying(&self) -> bool {
        self.forked && !self.own
    }
}

/// Milliseconds that grow with a time written as RFC 3339 in UTC (months count as 31 days); `None` for anything
/// else.
fn moment(at: &str) -> Option<u64> {
    let (date, clock) = at.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let numbers = |text: &str, separator| -> Option<[u64; 3]> {
        let mut parts = text.split(separator).map(|part| part.parse::<u16>().ok().map(u64::from));
        Some([parts.next()??, parts.next()??, parts.next()??])
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(clock, ':')?);
    let digits = fraction.bytes().chain(*b"000").take(3);
    let millis = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0') % 10));
    let days = (year * 12 + month) * 31 + day;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::{Fork, moment};

    fn copied(times: &[&str]) -> Vec<bool> {
        let mut fork = Fork::default();
        fork.begin();
        let pass = |at: &&str| {
            fork.pass(Some(at));
            fork.is_copying()
        };
        times.iter().map(pass).collect()
    }

    #[test]
    fn what_is_written_in_one_go_is_copied() {
        let times = ["2026-01-31T23:59:59.900Z", "2026-01-31T23:59:59.950Z", "2026-02-01T00:00:00.100Z"];
        assert_eq!(copied(&times), [true; 3], "over the end of a month");
        let then = [
            "2026-01-01T10:00:00.000Z",
            "2026-01-01T10:00:00.900Z",
            "2026-01-01T10:00:02Z",
            "2026-01-01T10:00:02Z",
        ];
        assert_eq!(copied(&then), [true, true, false, false]);
        let kept =
            ["2026-01-02T00:00:00Z", "2026-01-01T07:00:00Z", "2026-01-01T09:00:00Z", "2026-01-02T00:00:09Z"];
        assert_eq!(copied(&kept), [true, true, true, false], "times that the copy kept");
    }

    #[test]
    fn a_session_that_is_no_fork_copies_nothing() {
        let mut fork = Fork::default();
        fork.pass(Some("2026-01-01T10:00:00Z"));
        fork.pass(None);
        assert!(!fork.is_copying());
        for hostile in [
            "",
            "T",
            "2026-01-01",
            "99999999999999999999-1-1T0:0:0Z",
            "2026-01-01T99999999999999:0:0Z",
            "x-y-zTa:b:cZ",
        ] {
            let _ = moment(hostile);
            fork.pass(Some(hostile));
        }
        assert_eq!(moment("yesterday"), None);
    }
}
