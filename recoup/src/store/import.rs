//! Importing: runs are taken in input order, planned in batches and committed.
//!
//! A run becomes visible by one row, which is committed with the last of its messages, so a process
//! that is killed leaves whole runs and no half ones; the same import started again finds them as
//! duplicates and goes on. Commits are what another process waits for, so what one writes is bounded
//! ([`BATCH_RUNS`], and messages and bytes by the [plan](super::plan)), and nothing is computed inside
//! the transaction that could be computed before. Of a run larger than that, the first messages are
//! committed ahead; a kill leaves them as rows that nothing refers to, which the same import uses again
//! and [`Store::gc`] drops.
//!
//! Runs are planned as they come, not when a commit is due: that way this thread has work all the
//! time that others parse.
//!
//! A killed process loses what was not committed. A power cut may also lose the last commits before
//! it, never part of one; once [`Import::finish`] has returned, everything is on the disk.

use std::collections::BTreeSet;

use super::apply::apply;
use super::plan::{Plan, Waiting, data_version};
use super::revisions::Fate;
use super::summary::{ImportSummary, Novelty};
use super::{Store, StoreError, join, load, split, verdicts};
use crate::failpoint::Failpoint;
use crate::importers::{Event, LooseLabel, Sink, SinkError};
use crate::trajectory::Sealed;
use crate::verdict::Verdict;
use crate::warning::Loss;

/// Most runs in one commit.
const BATCH_RUNS: usize = 1000;
/// Bytes of runs, new or not, that wait for a commit.
const BATCH_BYTES: usize = 16 << 20;
/// Bytes of runs that wait to be planned.
const PLAN_BYTES: usize = 256 << 10;

/// An import under way. What was not committed yet is lost when it is dropped without
/// [`Import::finish`].
pub struct Import<'a> {
    store: &'a mut Store,
    now: String,
    waiting: Vec<Waiting>,
    plan: Option<Plan>,
    labels: Vec<LooseLabel>,
    /// Bytes of the waiting runs, and of those that are not planned yet.
    bytes: usize,
    unplanned: usize,
    last_uri: Option<String>,
    threads: usize,
    summary: ImportSummary,
}

impl Store {
    /// Begins an import. `now` (RFC 3339) dates the verdicts that it makes: splits and the labels that
    /// sources carry.
    ///
    /// # Errors
    /// When the project was written by a newer version of the program.
    pub fn import(&mut self, now: &str) -> Result<Import<'_>, StoreError> {
        self.check_writable()?;
        Ok(Import {
            store: self,
            now: now.to_owned(),
            waiting: Vec::new(),
            plan: None,
            labels: Vec::new(),
            bytes: 0,
            unplanned: 0,
            last_uri: None,
            threads: 1,
            summary: ImportSummary::default(),
        })
    }
}

impl Sink for Import<'_> {
    fn event(&mut self, event: Event) -> Result<(), SinkError> {
        let taken = match event {
            Event::Trajectory(sealed) => self.run(*sealed),
            Event::Label(label) => self.label(label),
            Event::Quarantine(quarantine) => {
                self.summary.quarantine(quarantine);
                Ok(())
            }
            Event::Loss(loss) => {
                self.summary.loss(loss);
                Ok(())
            }
        };
        taken.map_err(|error| SinkError(Box::new(error)))
    }
}

impl Import<'_> {
    /// With more than one thread, packs are compressed beside the thread that plans and writes.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// What has been committed so far.
    pub fn summary(&self) -> &ImportSummary {
        &self.summary
    }

    /// Commits the rest, joins labels to the runs they name, and puts every new run on its side of
    /// the split.
    pub fn finish(mut self) -> Result<ImportSummary, StoreError> {
        self.commit()?;
        for loss in join::join_labels(self.store, &self.now)? {
            self.summary.loss(loss);
        }
        self.summary.excluded_by_split = split::assign(self.store, &self.now)?;
        self.store.sync()?;
        Ok(self.summary)
    }

    fn run(&mut self, sealed: Sealed) -> Result<(), StoreError> {
        let bytes = sealed.record.len()
            + sealed.bodies.iter().map(|body| body.bytes.len()).sum::<usize>()
            + sealed.media.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.bytes += bytes;
        self.unplanned += bytes;
        self.waiting.push(Waiting::new(sealed));
        if self.waiting.len() >= BATCH_RUNS || self.bytes >= BATCH_BYTES {
            return self.commit();
        }
        if self.unplanned >= PLAN_BYTES {
            let (plan, whole) = self.planned()?;
            if !whole {
                self.write(plan)?;
                return self.commit();
            }
            self.plan = Some(plan);
        }
        Ok(())
    }

    fn label(&mut self, label: LooseLabel) -> Result<(), StoreError> {
        self.labels.push(label);
        if self.labels.len() >= BATCH_RUNS {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits everything that waits.
    fn commit(&mut self) -> Result<(), StoreError> {
        while !(self.waiting.is_empty() && self.labels.is_empty()) {
            let (plan, _) = self.planned()?;
            self.write(plan)?;
        }
        self.bytes = 0;
        Ok(())
    }

    /// The plan for the runs that wait, as far as they fit, and whether that is all of them.
    fn planned(&mut self) -> Result<(Plan, bool), StoreError> {
        self.unplanned = 0;
        let reading = self.store.read()?;
        let version = data_version(&reading)?;
        let mut plan = match self.plan.take() {
            Some(plan) if plan.data_version == version => plan,
            _ => anew(version, self.threads, &mut self.waiting)?,
        };
        let whole = plan.extend(&reading, &mut self.waiting)?;
        reading.finish()?;
        Ok((plan, whole))
    }

    /// Writes a plan, and takes the runs that it finishes from those that wait.
    fn write(&mut self, mut plan: Plan) -> Result<(), StoreError> {
        let mut late = self.late_labels(&plan)?;
        let mut written = Vec::new();
        if !plan.is_empty() || !self.labels.is_empty() || !late.is_empty() {
            let transaction = self.store.write()?;
            let version = data_version(&transaction)?;
            if version != plan.data_version {
                plan = anew(version, self.threads, &mut self.waiting)?;
                plan.extend(&transaction, &mut self.waiting)?;
                late = self.late_labels(&plan)?;
            }
            written = apply(&transaction, &mut plan, &self.waiting, &self.now)?;
            for verdict in &late {
                verdicts::put(&transaction, load::seq(&transaction, verdict.subject)?, verdict)?;
            }
            join::keep_labels(&transaction, &self.labels)?;
            transaction.commit(if plan.begun.is_some() {
                Failpoint::ImportAhead
            } else {
                Failpoint::Import
            })?;
        }
        self.count(&plan);
        self.labels.clear();
        self.waiting.drain(..plan.runs.len());
        if let Some(begun) = self.waiting.first_mut() {
            begun.written = written;
        }
        Ok(())
    }

    /// Labels that have come with a run that is stored already without them.
    fn late_labels(&self, plan: &Plan) -> Result<Vec<Verdict>, StoreError> {
        let mut late = Vec::new();
        for (waiting, (fate, _)) in self.waiting.iter().zip(&plan.runs) {
            let Fate::Duplicate { id } = *fate else { continue };
            for label in &waiting.sealed.labels {
                let verdict = join::verdict(id, label.clone(), &self.now);
                if !verdicts::is_known(&self.store.connection, &verdict)? {
                    late.push(verdict);
                }
            }
        }
        Ok(late)
    }

    fn count(&mut self, plan: &Plan) {
        self.summary.new_nodes += plan.nodes.len() as u64;
        self.summary.new_media += plan.media.len() as u64;
        self.summary.labels += self.labels.len() as u64;
        let mut uris = BTreeSet::new();
        for (waiting, (fate, _)) in self.waiting.iter().zip(&plan.runs) {
            let head = &waiting.sealed.head;
            let novelty = match fate {
                Fate::Duplicate { .. } => Novelty::Duplicate,
                Fate::New { revision: true, .. } => Novelty::Revision,
                Fate::New { .. } => Novelty::New,
            };
            let id = match fate {
                Fate::Duplicate { id } => *id,
                Fate::New { .. } => head.id,
            };
            self.summary.run(id, &waiting.sealed, novelty);
            if let Fate::New { ordinal: 2.., revision: false, .. } = fate {
                let reason = "another run has this id and other content; kept as a run of its own";
                self.summary.loss(Loss::new(&head.source.format, "run id", reason));
            }
            // Files come one after the other, so only the last one of a batch can go on in the next.
            if self.last_uri.as_deref() != Some(&head.source.uri) && uris.insert(&head.source.uri) {
                self.summary.files += 1;
            }
        }
        if let Some(last) = self.waiting.last() {
            self.last_uri = Some(last.sealed.head.source.uri.clone());
        }
    }
}

/// A plan for nothing yet. Another process may have dropped what had no run yet, so nothing counts as
/// written.
fn anew(version: i64, threads: usize, batch: &mut [Waiting]) -> Result<Plan, StoreError> {
    for waiting in batch.iter_mut() {
        waiting.written.clear();
    }
    Plan::new(version, threads)
}

#[cfg(test)]
mod tests {
    use super::{Import, Waiting};
    use crate::importers::{Event, Sink as _, SinkError};
    use crate::store::{Filter, Page, Store, StoreError};
    use crate::task::Task;
    use crate::trajectory::{NativeId, Node, Outcome, Part, Role, Sealed, Trajectory};

    const NOW: &str = "2026-01-01T00:00:00Z";

    /// A run whose text does not compress, so that it needs its room.
    fn event(number: u64) -> Event {
        let mut text = String::new();
        let mut state = number | 1 << 40;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(char::from(b' ' + (state >> 58) as u8));
        }
        let mut draft = Trajectory::new("test", Task::from_goal(format!("goal {number}")));
        draft.push(Node::new(Role::User, "user", vec![Part::text(text)]));
        draft.finish(Outcome::unknown());
        let sealed = draft.seal(&NativeId::Named(format!("run-{number}")), Vec::new());
        Event::Trajectory(Box::new(sealed.unwrap()))
    }

    fn import(store: &mut Store, runs: u64) -> Result<(), SinkError> {
        let mut import = store.import(NOW).unwrap();
        (0..runs).try_for_each(|number| import.event(event(number)))?;
        import.finish().map(drop).map_err(|error| SinkError(Box::new(error)))
    }

    /// One run of many messages, each different.
    fn large(messages: usize) -> Sealed {
        let mut draft = Trajectory::new("test", Task::from_goal("go on"));
        for number in 0..messages {
            draft.push(Node::new(Role::User, "user", vec![Part::text(format!("message {number}"))]));
        }
        draft.finish(Outcome::unknown());
        draft.seal(&NativeId::Named("large".to_owned()), Vec::new()).unwrap()
    }

    /// Makes the first `commits` of a run.
    fn begin(import: &mut Import<'_>, run: Sealed, commits: usize) {
        import.waiting.push(Waiting::new(run));
        for _ in 0..commits {
            let (plan, whole) = import.planned().unwrap();
            assert!(!whole);
            import.write(plan).unwrap();
        }
    }

    #[test]
    fn a_large_run_comes_in_several_commits_and_shows_with_the_last() {
        let messages = 50_000;
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create_or_open(dir.path()).unwrap();
        // What a kill after two of five commits leaves.
        begin(&mut store.import(NOW).unwrap(), large(messages), 2);
        assert_eq!(store.count(&Filter::default()).unwrap(), 0);
        let report = store.verify(&mut |_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        assert_eq!(report.unreferenced_nodes, 20_000);

        let mut import = store.import(NOW).unwrap();
        import.event(Event::Trajectory(Box::new(large(messages)))).unwrap();
        assert_eq!(import.finish().unwrap().new_nodes, 30_000, "the others are used again");
        let report = store.verify(&mut |_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        assert_eq!((report.trajectories, report.unreferenced_nodes), (1, 0));
        let row = &store.list(&Filter::default(), Page::ALL).unwrap()[0];
        assert_eq!(store.load(row.id).unwrap().nodes.len(), messages);
    }

    #[test]
    fn a_large_run_begins_anew_where_another_process_swept_its_messages() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create_or_open(dir.path()).unwrap();
        let mut other = Store::create_or_open(dir.path()).unwrap();
        let mut import = store.import(NOW).unwrap();
        begin(&mut import, large(30_000), 1);
        assert_eq!(other.gc().unwrap().nodes, 10_000);
        import.finish().unwrap();
        assert!(store.verify(&mut |_, _| {}).unwrap().is_clean());
        let row = &store.list(&Filter::default(), Page::ALL).unwrap()[0];
        assert_eq!(store.load(row.id).unwrap().nodes.len(), 30_000);
    }

    #[test]
    fn a_full_disk_is_said_and_what_was_committed_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create_or_open(dir.path()).unwrap();
        // Room for one commit of a thousand runs and no second one.
        store.connection.pragma_update(None, "max_page_count", 250).unwrap();
        let error = import(&mut store, 2500).unwrap_err();
        assert!(matches!(error.0.downcast_ref(), Some(StoreError::DiskFull)), "{error:?}");
        assert_eq!(store.count(&Filter::default()).unwrap(), 1000);
        assert!(store.verify(&mut |_, _| {}).unwrap().is_clean());

        store.connection.pragma_update(None, "max_page_count", i64::from(u32::MAX - 1)).unwrap();
        import(&mut store, 2500).unwrap();
        assert_eq!(store.count(&Filter::default()).unwrap(), 2500);
        assert!(store.verify(&mut |_, _| {}).unwrap().is_clean());
    }
}
