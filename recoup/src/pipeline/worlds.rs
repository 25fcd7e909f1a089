//! Environments and policies by name, each opened once.

use std::collections::BTreeMap;

use crate::environments::{Environment, EnvironmentError};
use crate::replay::ReplayError;
use crate::rollout::{Policy, policies};
use crate::task::EnvironmentRef;
use crate::trajectory::Trajectory;

/// Opens an environment by the name that a run records; `None` where there is none of it here.
pub type Opener<'a> = &'a (dyn Fn(&str) -> Option<Result<Box<dyn Environment>, EnvironmentError>> + Sync);

/// What runs are replayed in and by.
pub(super) struct Worlds<'a> {
    opener: Opener<'a>,
    /// The policy that continues every run, whoever acted in it.
    policy: Option<&'a dyn Policy>,
    environments: BTreeMap<String, Result<Box<dyn Environment>, ReplayError>>,
    policies: BTreeMap<String, Option<Box<dyn Policy>>>,
}

impl<'a> Worlds<'a> {
    pub(super) fn new(opener: Opener<'a>, policy: Option<&'a dyn Policy>) -> Self {
        Self { opener, policy, environments: BTreeMap::new(), policies: BTreeMap::new() }
    }

    /// Opens what a run needs. To be called before the run is asked about.
    pub(super) fn prepare(&mut self, run: &Trajectory) {
        if let Some(reference) = &run.environment {
            self.open(&reference.name);
        }
        let actor = actor(run);
        if self.policy.is_none() && !self.policies.contains_key(actor) {
            self.policies.insert(actor.to_owned(), policies::parse(actor).ok());
        }
    }

    fn open(&mut self, name: &str) -> &Result<Box<dyn Environment>, ReplayError> {
        let opener = self.opener;
        self.environments.entry(name.to_owned()).or_insert_with(|| match opener(name) {
            Some(opened) => opened.map_err(ReplayError::from),
            None => Err(ReplayError::UnknownEnvironment(name.to_owned())),
        })
    }

    /// The environment that a run happened in.
    pub(super) fn environment(&self, run: &Trajectory) -> Result<&dyn Environment, &ReplayError> {
        let name = run.environment.as_ref().map(|environment| environment.name.as_str());
        match name.and_then(|name| self.environments.get(name)) {
            Some(opened) => opened.as_deref(),
            None => Err(&ReplayError::NoEnvironment),
        }
    }

    /// Whether an environment is here in the very version that a run records.
    pub(super) fn knows(&mut self, reference: &EnvironmentRef) -> bool {
        let opened = self.open(&reference.name);
        opened.as_ref().is_ok_and(|known| reference.version == Some(known.identity().version()))
    }

    /// Who continues a run: the policy that was asked for, else the one that acted in it.
    pub(super) fn policy<'s>(&'s self, run: &'s Trajectory) -> Result<&'s dyn Policy, &'s str> {
        let actor = actor(run);
        let known = || self.policies.get(actor).and_then(Option::as_deref);
        self.policy.or_else(known).ok_or(actor)
    }
}

/// The policy's name in a run that a policy made: its agent's model.
fn actor(run: &Trajectory) -> &str {
    let agent = run.agents.first();
    agent.map_or("", |agent| agent.model.as_deref().unwrap_or(&agent.name))
}
