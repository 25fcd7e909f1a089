//! What messages hold beside their parts: the bytes of their media, and what no part has a place for.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::Hash;
use crate::importers::object::Object;
use crate::trajectory::{Node, Trajectory};
use crate::warning::Loss;

/// What a reader of messages sets aside.
#[derive(Debug, Default)]
pub(in crate::importers) struct Aside {
    /// Bytes of images, sounds and files, by hash.
    pub media: BTreeMap<Hash, Vec<u8>>,
    /// Fields that were not carried, with the reason.
    pub lost: BTreeSet<(String, &'static str)>,
    /// Further answers of a response, for a reader that has a place for them.
    pub alternatives: Option<Vec<Node>>,
}

impl Aside {
    /// Notes a field that is not carried.
    pub(in crate::importers) fn lose(&mut self, field: impl Into<String>, reason: &'static str) {
        self.lost.insert((field.into(), reason));
    }

    /// Notes what was not taken of an object and says something, under its place.
    pub(in crate::importers) fn left(&mut self, object: Object<'_>, place: &str) {
        for key in object.filled_rest().into_keys() {
            self.lose(format!("{place}.{key}"), "no part of a record holds it");
        }
    }

    /// Gives the media to the run they belong to and names the losses in its format.
    pub(in crate::importers) fn settle(self, run: &mut Trajectory, losses: &mut BTreeSet<Loss>) {
        run.media.extend(self.media);
        let format = &run.source.format;
        losses.extend(self.lost.into_iter().map(|(field, reason)| Loss::new(format, field, reason)));
    }
}
