//! Evaluation: how often what recoup says is right, beside what the simplest guesses reach.

pub mod attribution;
