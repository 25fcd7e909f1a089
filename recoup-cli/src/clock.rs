//! The clock: the one place that looks at it. Everything else gets the time as a value.

use std::time::SystemTime;

/// Now, in RFC 3339, to the second.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
