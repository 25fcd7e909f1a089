//! The verbs: one file each.

pub(crate) mod ask;
mod chat_format;
pub(crate) mod collect;
mod collect_round;
pub(crate) mod diagnose;
pub(crate) mod env;
pub(crate) mod env_worker;
mod environment;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod forget;
pub(crate) mod gc;
pub(crate) mod import;
pub(crate) mod label;
pub(crate) mod ls;
mod panel;
mod preview;
mod project;
pub(crate) mod proxy;
pub(crate) mod relabel;
pub(crate) mod release;
pub(crate) mod replay;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod verify;
