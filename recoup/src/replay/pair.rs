//! A replay pair: one run, one turn, every arm; or the reason why there is none.

use serde::Serialize;

use super::ReplayError;
use super::candidates::{Proposer, action_of};
use super::fork::{Matched, Treatments};
use super::reopened::Reopened;
use crate::environments::Environment;
use crate::id::{Hash, VerdictId};
use crate::rollout::Policy;
use crate::trajectory::{Sealed, Trajectory};
use crate::verdict::{Arm, Diagnosis, ReplayPair};

/// What is asked of every run.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayPlan {
    /// The arms to run.
    pub arms: Vec<Arm>,
    /// Continuations of each.
    pub continuations: u32,
    /// The project's seed.
    pub seed: u64,
    /// Who proposes repairs.
    pub proposer: Proposer,
}

impl Default for ReplayPlan {
    fn default() -> Self {
        Self { arms: Arm::ALL.to_vec(), continuations: 3, seed: 0, proposer: Proposer::Rules }
    }
}

/// One run to be replayed.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The run.
    pub run: &'a Trajectory,
    /// Where it happened, or why it cannot be opened.
    pub environment: Result<&'a dyn Environment, &'a ReplayError>,
    /// Who continues, or the name of the policy that nobody knows.
    pub policy: Result<&'a dyn Policy, &'a str>,
    /// The diagnosis that is put to the test.
    pub diagnosis: Option<(VerdictId, &'a Diagnosis)>,
    /// The turn found decisive by a sweep, which goes before the diagnosed one.
    pub swept: Option<usize>,
    /// True where its fault was put in on purpose.
    pub injected: bool,
}

/// A pair with the runs that its continuations became.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What was found.
    pub pair: ReplayPair,
    /// The continuations, in the order of the arms.
    pub runs: Vec<Sealed>,
}

impl Subject<'_> {
    /// Name of the policy that continues.
    pub fn policy_name(&self) -> &str {
        self.policy.map_or_else(|name| name, |policy| policy.name())
    }

    /// Name and version of the environment, as far as known.
    fn environment_name(&self) -> String {
        match (self.environment, &self.run.environment) {
            (Ok(environment), _) => {
                let identity = environment.identity();
                format!("{} {}", identity.manifest.name, identity.version())
            }
            (Err(_), Some(recorded)) => recorded.name.clone(),
            (Err(_), None) => String::new(),
        }
    }

    /// Hash of everything that decides the answer to a request: known before anything is executed.
    pub fn plan_hash(&self, plan: &ReplayPlan) -> Hash {
        let line = plan.proposer.line(self.run.id);
        let words: Vec<&str> = plan.arms.iter().map(|arm| arm.as_str()).collect();
        let decimal = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
        let fields = [
            self.run.id.to_string(),
            self.environment_name(),
            self.policy_name().to_owned(),
            self.diagnosis.map_or_else(String::new, |(id, _)| id.to_string()),
            decimal(self.swept),
            plan.proposer.as_str().to_owned(),
            line.map_or_else(String::new, |line| line.action.as_str().to_owned()),
            decimal(line.and_then(|line| line.step)),
            words.join(","),
            plan.continuations.to_string(),
            plan.seed.to_string(),
        ];
        Hash::of_all(&fields.each_ref().map(String::as_bytes))
    }

    /// Replays the run. What stands in the way becomes the pair's `unsupported`.
    pub fn replay(&self, plan: &ReplayPlan) -> Replayed {
        let mut pair = ReplayPair {
            node: self.diagnosis.map_or(0, |(_, diagnosis)| diagnosis.decisive_node),
            step: self.swept.unwrap_or(0),
            environment: self.environment_name(),
            policy: self.policy_name().to_owned(),
            config_hash: Hash::of(b""),
            plan_hash: self.plan_hash(plan),
            diagnosis: self.diagnosis.map(|(id, _)| id),
            candidate: None,
            proposed_by: None,
            injected: self.injected,
            arms: Vec::new(),
            unsupported: None,
        };
        match self.fill(plan, &mut pair) {
            Ok(runs) => Replayed { pair, runs },
            Err(error) => {
                pair.unsupported = Some((&error).into());
                Replayed { pair, runs: Vec::new() }
            }
        }
    }

    fn fill(&self, plan: &ReplayPlan, pair: &mut ReplayPair) -> Result<Vec<Sealed>, ReplayError> {
        let environment = self.environment.map_err(Clone::clone)?;
        let mut reopened = Reopened::open(self.run, environment)?;
        let policy = self.policy.map_err(|name| ReplayError::UnknownPolicy(name.to_owned()))?;
        pair.config_hash = reopened.config_hash(self.run, environment, policy.name());
        let diagnosis = self.diagnosis.map(|(_, diagnosis)| diagnosis);
        let turn = match self.turn(plan, &reopened, diagnosis) {
            Ok(turn) => turn,
            // That the record cannot be reproduced is the weightier reason.
            Err(error) => {
                reopened.execute(None)?;
                return Err(error);
            }
        };
        let original = reopened.recorded.turns.get(turn).ok_or(ReplayError::NotATurn(turn))?;
        (pair.node, pair.step) = (original.node, turn);
        let checkpoints = reopened.execute(Some(turn))?;
        let state = checkpoints.state(turn).ok_or(ReplayError::NotATurn(turn))?;
        if plan.arms.contains(&Arm::Repair) {
            let instance = &mut *reopened.instance;
            pair.candidate = plan.proposer.candidate(self.run.id, diagnosis, instance, state)?;
            pair.proposed_by = pair.candidate.as_ref().map(|_| plan.proposer.as_str().to_owned());
        }
        let matched = Matched {
            run: self.run,
            environment,
            policy,
            seed: plan.seed,
            continuations: plan.continuations.max(1),
        };
        let treatments = Treatments {
            arms: &plan.arms,
            explanation: diagnosis.map(|diagnosis| diagnosis.explanation.as_str()),
            candidate: pair.candidate.as_ref().and_then(|candidate| action_of(&candidate.action)),
        };
        let (arms, runs) = matched.fork(&mut reopened, &checkpoints, turn, &treatments)?;
        pair.arms = arms;
        Ok(runs)
    }

    /// The turn to replace: what a file says, else a sweep, else the diagnosis.
    fn turn(
        &self,
        plan: &ReplayPlan,
        reopened: &Reopened,
        diagnosis: Option<&Diagnosis>,
    ) -> Result<usize, ReplayError> {
        if let Some(step) = plan.proposer.line(self.run.id).and_then(|line| line.step).or(self.swept) {
            return Ok(step);
        }
        let node = diagnosis.ok_or(ReplayError::NoStep)?.decisive_node;
        reopened.recorded.turn_of(node).ok_or(ReplayError::NotATurn(node))
    }
}
