//! Python's way of writing values: what `str`, `repr` and `json.dumps` make of them, and its string methods.
//!
//! Chat templates are written for Jinja on Python, and what a model was trained on is what Python printed.

pub(super) mod clock;
pub(super) mod container;
pub(super) mod json;
pub(super) mod methods;
pub(super) mod number;
pub(super) mod repr;
pub(super) mod text;
