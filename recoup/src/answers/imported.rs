//! What `import` and `label` say.

use serde::Serialize;

/// The formats that can be read (`import --formats`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Formats {
    /// Their names.
    pub formats: Vec<&'static str>,
}

/// A file that was looked at (`import --dry-run`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Found<'a> {
    /// The file.
    pub uri: &'a str,
    /// Its format, `not a trace`, `beside a trace` (read with another file) or `unreadable`.
    pub format: &'a str,
}

/// What a look at a watched folder has brought (`import --watch`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Look<'a> {
    /// Files that were read: new ones, and those that have changed.
    pub files: Vec<&'a str>,
    /// Runs that were not stored before, revisions included.
    pub new: u64,
    /// New runs that are another revision of a stored one: sessions that went on.
    pub revisions: u64,
    /// Runs that were stored before, with the same content.
    pub duplicates: u64,
    /// Records that cannot be read.
    pub quarantined: u64,
    /// Records at the end of a file that are not whole yet; they are read when the file has grown.
    pub unfinished: u64,
}

/// What watching a folder has brought (`import --watch`): the last line.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Watched {
    /// Times that the folder was looked at.
    pub looks: u64,
    /// Files that were read, each as often as it was.
    pub files: u64,
    /// Runs that were not stored before, revisions included.
    pub new: u64,
    /// New runs that are another revision of a stored one.
    pub revisions: u64,
    /// Records and files that cannot be read, those that are still unfinished included.
    pub quarantined: u64,
}

/// What was labelled (`label`).
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Labelled {
    /// Runs whose label changed.
    pub labelled: u64,
}
