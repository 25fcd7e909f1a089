//! A proposal: a goal that a run may have achieved, with the facts that each of its claims rests on.

use serde_json::Value;

use super::facts::Facts;

/// Who proposes a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment, which says what its state fulfills.
    Environment,
    /// A template, filled with what was observed.
    Template,
    /// A model.
    Model,
}

/// A part of a goal and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The part, as it stands in the goal.
    pub text: String,
    /// Numbers of the facts.
    pub facts: Vec<usize>,
}

/// A goal, before any gate has seen it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The goal, as a user would have asked.
    pub goal: String,
    /// Its claims.
    pub claims: Vec<Claim>,
    /// The same goal for a program: what [`super::templates::resolve`] turns into a task.
    pub specification: Option<Value>,
    /// The keys of the task that make its verifier check the goal, where the environment gave them.
    pub task: Option<String>,
    /// What in the run speaks against it.
    pub doubts: Vec<&'static str>,
    /// The exchange that completed it.
    pub last: usize,
    /// The final answer to it, made of facts.
    pub answer: String,
    /// Who proposes it.
    pub source: Source,
}

/// A goal being worded: text that is given, and claims that must be found in what the run showed.
pub struct Wording<'f, 'e, 'a> {
    facts: &'f mut Facts<'e, 'a>,
    goal: String,
    claims: Vec<Claim>,
}

impl<'f, 'e, 'a> Wording<'f, 'e, 'a> {
    /// Nothing yet.
    pub fn new(facts: &'f mut Facts<'e, 'a>) -> Self {
        Self { facts, goal: String::new(), claims: Vec::new() }
    }

    /// Words of the template.
    #[must_use]
    pub fn plain(mut self, text: &str) -> Self {
        self.goal.push_str(text);
        self
    }

    /// A phrase that the answer to an exchange shows.
    #[must_use]
    pub fn shown_by(self, phrase: &str, exchange: usize) -> Self {
        let fact = self.facts.cite(phrase, Some(exchange));
        self.claim(phrase, fact)
    }

    /// A phrase that was shown by then.
    #[must_use]
    pub fn shown(self, phrase: &str, last: usize) -> Self {
        let fact = self.facts.cite_by(phrase, last);
        self.claim(phrase, fact)
    }

    fn claim(mut self, phrase: &str, fact: Option<usize>) -> Self {
        self.goal.push_str(phrase);
        self.claims.push(Claim { text: phrase.to_owned(), facts: fact.into_iter().collect() });
        self
    }

    /// The goal, completed by an exchange.
    pub fn done(self, last: usize, answer: impl Into<String>) -> Proposal {
        Proposal {
            goal: self.goal,
            claims: self.claims,
            specification: None,
            task: None,
            doubts: Vec::new(),
            last,
            answer: answer.into(),
            source: Source::Template,
        }
    }
}

impl Proposal {
    /// The proposal with the goal for a program.
    #[must_use]
    pub fn specified(self, specification: Value) -> Self {
        Self { specification: Some(specification), ..self }
    }

    /// The proposal with what speaks against it.
    #[must_use]
    pub fn doubted(self, doubts: Vec<&'static str>) -> Self {
        Self { doubts, ..self }
    }
}

/// Words as a list in prose.
pub fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
