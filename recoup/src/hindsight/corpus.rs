//! The corpus: the runs among which a goal must point at its own.

use super::bm25::Index;
use super::episode::Episode;
use crate::id::TaskKey;
use crate::trajectory::Trajectory;

/// Runs of other tasks below which the background corpus is added.
pub const OTHERS_MIN: usize = 50;

/// Short records of the kind that tools answer with, written for this purpose; one document a paragraph.
const BACKGROUND: &str = include_str!("background.txt");

/// What many runs showed.
#[derive(Default)]
pub struct Corpus {
    index: Index,
    /// The task of each document; none for the background.
    tasks: Vec<Option<TaskKey>>,
    has_background: bool,
}

/// Where a goal's own run stands among the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Runs of other tasks that the goal describes as well or better.
    pub before: usize,
    /// Its own score.
    pub own: f64,
    /// The best score of a run of another task.
    pub best_other: f64,
}

impl Corpus {
    /// The corpus of some runs' texts, each with its task; with the background where it is small.
    pub fn new(documents: impl IntoIterator<Item = (TaskKey, String)>) -> Self {
        let mut corpus = Self::default();
        for (task, text) in documents {
            corpus.index.add(&text);
            corpus.tasks.push(Some(task));
        }
        let mut tasks: Vec<&TaskKey> = corpus.tasks.iter().flatten().collect();
        tasks.sort_unstable();
        tasks.dedup();
        // Whichever task is asked about, its own runs are not counted.
        if tasks.len() <= OTHERS_MIN {
            for text in BACKGROUND.split("\n\n") {
                corpus.index.add(text);
                corpus.tasks.push(None);
            }
            corpus.has_background = true;
        }
        corpus
    }

    /// The document of a run: all that it was shown.
    pub fn document(run: &Trajectory) -> String {
        Self::text(&Episode::read(run))
    }

    fn text(episode: &Episode<'_>) -> String {
        let mut text = String::new();
        for (_, shown) in episode.shown() {
            text.push_str(shown.text);
            text.push('\n');
        }
        text
    }

    /// Whether the background corpus is part of it.
    pub fn has_background(&self) -> bool {
        self.has_background
    }

    /// How much a word tells.
    pub fn idf(&self, word: &str) -> f64 {
        self.index.idf(word)
    }

    /// Documents of other tasks that hold all of some phrases, and how many documents of other tasks there are.
    pub fn sharing(&self, phrases: &[&str], task: &TaskKey) -> (usize, usize) {
        let is_other = |of: &Option<TaskKey>| of.as_ref() != Some(task);
        let held = self.index.holding(phrases);
        let sharing = held.iter().filter(|number| self.tasks.get(**number as usize).is_some_and(is_other));
        (sharing.count(), self.tasks.iter().filter(|of| is_other(of)).count())
    }

    /// Where a run stands when its goal is the query; runs of the same task are passed over. A run that is not
    /// in the corpus has no score.
    pub fn standing(&self, goal: &str, document: Option<u32>, task: &TaskKey) -> Standing {
        let scores = self.index.scores(goal);
        let own = document.and_then(|document| scores.get(&document)).copied().unwrap_or(0.0);
        let of_others = scores.iter().filter(|(number, _)| {
            Some(**number) != document
                && self.tasks.get(**number as usize).is_some_and(|of| of.as_ref() != Some(task))
        });
        let (mut before, mut best_other) = (0, 0.0_f64);
        for (_, score) in of_others {
            before += usize::from(*score >= own);
            best_other = best_other.max(*score);
        }
        Standing { before, own, best_other }
    }
}

#[cfg(test)]
mod tests {
    use super::Corpus;
    use crate::id::TaskKey;

    fn key(task: &str) -> TaskKey {
        TaskKey(task.to_owned())
    }

    #[test]
    fn runs_of_the_same_task_do_not_compete() {
        let texts =
            [("a", "order #W1 is pending"), ("a", "order #W1 is pending"), ("b", "order #W2 is pending")];
        let corpus = Corpus::new(texts.map(|(task, text)| (key(task), text.to_owned())));
        assert!(corpus.has_background());
        assert_eq!(corpus.standing("what is order #W1", Some(0), &key("a")).before, 0);
        assert!(corpus.standing("is the order pending", Some(0), &key("a")).before > 0);
        assert_eq!(corpus.sharing(&["order", "pending"], &key("a")).0, 1);
        assert_eq!(corpus.sharing(&["#W1"], &key("a")).0, 0);
        let many = (0..60).map(|task| (key(&task.to_string()), format!("record {task}")));
        assert!(!Corpus::new(many).has_background());
    }
}
