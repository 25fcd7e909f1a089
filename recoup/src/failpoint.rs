//! A failpoint: the instant just before or just after finished work becomes visible, by a commit or by
//! a rename. Tests stop the process at each and then run the same command again.
//!
//! Every transaction and every rename goes through `commit`, so none can be made without a name here,
//! and [`Failpoint::ALL`] is the whole list that the tests go through.
//!
//! The points are in every build: a feature or a `cfg` would test another program than the one that is
//! shipped, and build the library twice. They cost a look at one atomic a commit and do nothing by
//! themselves: this library reads no variable and stops no process. Whoever runs it may [`watch`] them
//! once, from its own code; the program does so for a hidden flag that builds without debug assertions
//! do not have.

use std::sync::OnceLock;

/// Which side of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The work is done and not yet visible.
    Before,
    /// The work is visible and nobody knows yet.
    After,
}

impl Side {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

macro_rules! failpoints {
    ($($(#[$doc:meta])* $variant:ident $name:literal)*) => {
        /// A commit or rename.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Failpoint {$($(#[$doc])* $variant,)*}

        impl Failpoint {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

failpoints! {
    /// The copy of a project of an older format.
    Backup "backup"
    /// A project made, or brought to this format.
    Migration "migration"
    /// Messages of a run larger than a commit, but not its last ones.
    ImportAhead "import-ahead"
    /// Imported runs.
    Import "import"
    /// Labels that found their runs.
    Join "join"
    /// Sketches of runs that an older program stored.
    Sketches "sketches"
    /// Sides of tasks and goals.
    SplitLinks "split-links"
    /// Sides of runs.
    SplitRuns "split-runs"
    /// Verdicts: outcomes, labels, diagnoses.
    Verdicts "verdicts"
    /// Tasks that a stage has finished.
    Done "done"
    /// An answer of a model, or a note of what is under way to one.
    Reply "reply"
    /// Rows of forgotten runs.
    Forget "forget"
    /// The end of forgetting.
    Forgotten "forgotten"
    /// Rows that nothing refers to.
    Sweep "sweep"
    /// Packs written anew.
    Repack "repack"
    /// A training file.
    Rows "rows"
    /// What describes a training file.
    Manifest "manifest"
    /// A file of the report.
    Report "report"
    /// A run in the format of another program.
    Export "export"
}

type Watcher = Box<dyn Fn(Failpoint, Side) + Send + Sync>;

static WATCHER: OnceLock<Watcher> = OnceLock::new();

/// Calls `watcher` at every failpoint of this process from now on. The first watcher stays.
pub fn watch(watcher: impl Fn(Failpoint, Side) + Send + Sync + 'static) {
    let _ = WATCHER.set(Box::new(watcher));
}

/// Makes work visible.
pub(crate) fn commit<T>(point: Failpoint, work: impl FnOnce() -> T) -> T {
    reach(point, Side::Before);
    let done = work();
    reach(point, Side::After);
    done
}

fn reach(point: Failpoint, side: Side) {
    if let Some(watcher) = WATCHER.get() {
        watcher(point, side);
    }
}
