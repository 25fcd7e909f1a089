//! recoup turns the failed runs of a tool-using LLM agent into a better agent.
//!
//! The stages, in the order data flows; each module may use those above it:
//!
//! 1. vocabulary: [`trajectory`] (a run as a graph of messages), [`task`], [`verdict`] (what is decided
//!    about a run), [`id`], [`json`] and [`canonical`] (equal content has equal bytes), [`warning`],
//!    [`interleaving`] (what is said of a run that a student and a teacher share), [`reporter`], [`visible`],
//!    [`artifact`] (what every file that is written starts with), [`deduplication`] (which runs are nearly the
//!    same), [`failpoint`] (where tests stop the process);
//! 2. edges: [`importers`] read what harnesses write, [`redaction`] removes secrets, [`store`] keeps it all,
//!    [`models`] answer questions, [`environments`] are worlds to act in;
//! 3. judging and acting: [`statistics`], [`judges`] (models that give an opinion), [`rollout`], [`replay`];
//! 4. stages: [`triage`] says whose failure it was, [`diagnosis`] where it went wrong, [`synthesis`] which
//!    environments may train;
//! 5. outlets: [`views`] build training examples, [`exporters`] write files, [`evaluation`] measures, [`report`]
//!    explains;
//! 6. [`pipeline`]: the stages in order; [`answers`]: what commands say to programs.
//!
//! ```
//! use recoup::diagnosis::{DiagnosisConfig, diagnose};
//! use recoup::importers::{Event, Source, detect};
//! use recoup::trajectory::Trajectory;
//!
//! let row = br#"{"success":false,"messages":[{"role":"user","content":"hi"},
//!     {"role":"assistant","content":"I cancelled your order."}]}"#;
//! let source = Source::from_bytes("run.json", row.as_slice(), Default::default());
//! let mut events: Vec<Event> = Vec::new();
//! detect(&source)?.ok_or("no trace")?.import(&source, &mut events)?;
//! let Some(Event::Trajectory(sealed)) = events.pop() else { return Err("no run".into()) };
//! let bodies: Vec<_> = sealed.bodies.iter().map(|body| (body.hash, body.bytes.clone().into())).collect();
//! let run = Trajectory::unseal(&sealed.record, sealed.head.source, sealed.head.key, &bodies)?;
//! let diagnosed = diagnose(&run, &[], &DiagnosisConfig::default());
//! assert_eq!(diagnosed.blame.map(|blame| blame.party.as_str()), Some("agent"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here prints, reads an environment variable, looks at the clock or exits: same input and
//! same seed, same bytes.

#![warn(missing_docs)]

pub mod artifact;
mod calendar;
pub mod canonical;
pub mod deduplication;
pub mod failpoint;
mod fence;
pub mod id;
pub mod interleaving;
pub mod json;
mod json_schema;
mod parallel;
pub mod reporter;
pub mod task;
pub mod trajectory;
pub mod verdict;
pub mod visible;
pub mod warning;

pub mod environments;
pub mod importers;
pub mod models;
pub mod redaction;
pub mod store;

pub mod statistics;

pub mod judges;

pub mod rollout;

pub mod replay;

pub mod triage;

pub mod diagnosis;

pub mod hindsight;

pub mod synthesis;

pub mod views;

#[cfg(feature = "templates")]
pub mod templates;

pub mod evaluation;
pub mod exporters;
pub mod report;

pub mod pipeline;

pub mod answers;
#[cfg(test)]
mod schemas;
