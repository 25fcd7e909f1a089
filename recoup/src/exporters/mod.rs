//! Exporters: one file a target format.

pub mod atif;
