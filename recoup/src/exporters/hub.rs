//! `hf`: a folder that the Hugging Face Hub takes as a data set: rows in the one of TRL's forms that fits the view,
//! under `data/`, and a card that names the files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::card::{CARD, MARK, card};
use super::shape::Shape;
use super::{
    Built, Exporter, Manifest, Refusal, TrlKto, TrlMessages, TrlPreference, TrlPromptCompletion, trl,
};
use crate::views::{Example, Objective, View};

/// The format's name.
pub(super) const FORMAT: &str = "hf";

/// See the module.
pub(super) struct Hub {
    rows: &'static dyn Exporter,
}

const FORMS: &[Hub] = &[
    Hub { rows: &TrlMessages },
    Hub { rows: &TrlPromptCompletion },
    Hub { rows: &TrlPreference },
    Hub { rows: &TrlKto },
];

/// What writes a view.
pub(super) fn of_view(view: &dyn View) -> &'static dyn Exporter {
    let rows = trl::of_view(view).format();
    FORMS.iter().find(|form| form.rows.format() == rows).unwrap_or(&Hub { rows: &TrlPromptCompletion })
}

impl Exporter for Hub {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        self.rows.row(example)
    }

    fn pair(&self, chosen: &Example, rejected: &Example) -> Result<Value, Refusal> {
        self.rows.pair(chosen, rejected)
    }

    fn labelled(&self, example: &Example, is_wanted: bool) -> Result<Value, Refusal> {
        self.rows.labelled(example, is_wanted)
    }

    fn rows(&self, example: Example) -> Vec<Built> {
        self.rows.rows(example)
    }

    fn shape(&self) -> &'static Shape {
        self.rows.shape()
    }

    fn file(&self, view: &str) -> String {
        format!("data/{view}/train.jsonl")
    }

    fn mask(&self) -> &'static str {
        self.rows.mask()
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        self.rows.train_with(objective)
    }

    fn open(&self, row: &mut Value) {
        self.rows.open(row);
    }

    /// The card of all views in the folder.
    fn companions(&self, folder: &Path, manifest: &Manifest) -> io::Result<Vec<(&'static str, String)>> {
        match std::fs::read_to_string(folder.join(CARD)) {
            Ok(text) if !text.contains(MARK) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "another data set's card stands there",
                ));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut views = BTreeMap::from([(manifest.view.clone(), manifest.clone())]);
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if !path.to_string_lossy().ends_with(".manifest.json") {
                continue;
            }
            // What is no manifest of ours is not about this data set.
            let Ok(other) = serde_json::from_slice::<Manifest>(&std::fs::read(&path)?) else { continue };
            if other.format == FORMAT {
                views.entry(other.view.clone()).or_insert(other);
            }
        }
        Ok(vec![(CARD, card(views.values()))])
    }
}
