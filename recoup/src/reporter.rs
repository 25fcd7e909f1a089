//! A reporter: how long work says how far it is, without knowing who listens.

/// Receives progress. The program draws bars, tests and libraries pass `&mut ()`.
pub trait Reporter {
    /// A stage begins; `total` is in the unit of [`Reporter::advance`], where it is known.
    fn stage(&mut self, name: &str, total: Option<u64>);

    /// `count` more units of the stage are done.
    fn advance(&mut self, count: u64);

    /// Something a person should know now: a file was passed over, a run was left out.
    fn note(&mut self, message: &str);
}

/// Nobody listens.
impl Reporter for () {
    fn stage(&mut self, _: &str, _: Option<u64>) {}
    fn advance(&mut self, _: u64) {}
    fn note(&mut self, _: &str) {}
}
