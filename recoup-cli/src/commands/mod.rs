//! The verbs: one file each.

pub mod diagnose;
pub mod export;
pub mod forget;
pub mod gc;
pub mod import;
pub mod label;
pub mod ls;
mod project;
pub mod run;
pub mod show;
pub mod stats;
pub mod verify;
