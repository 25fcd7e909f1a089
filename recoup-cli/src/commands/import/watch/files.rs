//! The files beneath watched folders: how each looked last, and which are to be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Looks after which a file that never comes to rest is read all the same.
const RESTLESS_LOOKS: u32 = 15;

/// What changes where a file is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// How a file looks; `None` where it is gone.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// A file that was looked at.
struct Seen {
    stamp: Stamp,
    /// How it looked when it was read.
    read: Option<Stamp>,
    /// Looks since it differs from what was read.
    waits: u32,
    /// Whether this look has met it.
    met: bool,
}

/// Every file that was met.
#[derive(Default)]
pub(super) struct Files(BTreeMap<PathBuf, Seen>);

impl Files {
    /// Whether a file is to be read: it has changed, and then come to rest for a look, or never does. A file
    /// that nobody has touched for an interval rests when it is met first.
    pub(super) fn is_due(&mut self, path: &Path, stamp: Stamp, now: SystemTime, interval: Duration) -> bool {
        let touched = stamp.modified.and_then(|modified| now.duration_since(modified).ok());
        let old = touched.is_some_and(|since| since >= interval);
        let seen =
            self.0.entry(path.to_path_buf()).or_insert(Seen { stamp, read: None, waits: 0, met: true });
        seen.met = true;
        if seen.read == Some(stamp) {
            seen.stamp = stamp;
            seen.waits = 0;
            return false;
        }
        let rests = old || seen.waits > 0 && seen.stamp == stamp;
        seen.stamp = stamp;
        seen.waits += 1;
        if rests || seen.waits > RESTLESS_LOOKS {
            seen.read = Some(stamp);
            seen.waits = 0;
            return true;
        }
        false
    }

    /// Drops what the last look has not met.
    pub(super) fn forget_unseen(&mut self) {
        self.0.retain(|_, seen| std::mem::take(&mut seen.met));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{Files, RESTLESS_LOOKS, Stamp};

    const INTERVAL: Duration = Duration::from_secs(2);

    fn stamp(bytes: u64, now: SystemTime, age: u64) -> Stamp {
        Stamp { bytes, modified: Some(now - Duration::from_secs(age)) }
    }

    #[test]
    fn a_file_is_read_once_when_it_rests() {
        let (mut files, now) = (Files::default(), SystemTime::now());
        let mut due = |bytes, age| files.is_due(Path::new("a"), stamp(bytes, now, age), now, INTERVAL);
        assert!(due(1, 60), "an old file at once");
        assert!(!due(1, 60));
        assert!(!due(2, 0), "it grows");
        assert!(!due(3, 0), "and grows");
        assert!(due(3, 0), "and rests");
        assert!(!due(3, 0));
        assert!(!due(1, 1), "it was cut");
        assert!(due(1, 1));
    }

    #[test]
    fn a_file_that_never_rests_is_read_now_and_then() {
        let (mut files, now) = (Files::default(), SystemTime::now());
        let looks = u64::from(RESTLESS_LOOKS) * 4;
        let read =
            (0..looks).filter(|look| files.is_due(Path::new("a"), stamp(*look, now, 0), now, INTERVAL));
        assert_eq!(read.count(), 3);
    }

    #[test]
    fn a_file_that_was_gone_is_new() {
        let (mut files, now) = (Files::default(), SystemTime::now());
        assert!(files.is_due(Path::new("a"), stamp(1, now, 9), now, INTERVAL));
        files.forget_unseen();
        assert!(!files.is_due(Path::new("a"), stamp(1, now, 9), now, INTERVAL));
        files.forget_unseen();
        files.forget_unseen();
        assert!(files.is_due(Path::new("a"), stamp(1, now, 9), now, INTERVAL));
    }
}
