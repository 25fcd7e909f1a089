//! Those who do not try to solve the task do not succeed.

use super::{Battery, Finding, Gate, percent, play};
use crate::environments::{Action, EnvironmentError, Instance, TaskSpec, ToolSpec};
use crate::json::Json;
use crate::rollout::policies::Random;
use crate::rollout::{Conditions, End, run};

/// Highest share of successes of a cheater, in percent.
const SUCCESS_MAX: f64 = 2.0;
/// What someone says who has done nothing.
const CLAIM: &str = "I have done everything you asked for. The task is complete.";

pub(super) struct Cheaters;

impl Gate for Cheaters {
    fn name(&self) -> &'static str {
        "cheaters"
    }

    fn rule(&self) -> &'static str {
        "random, constant and copied actions and another seed's solution succeed on at most 2 % of seeds each; \
         a claim scores 0 on all"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let total = battery.config.cheater_seeds as usize;
        let success =
            |cheat: &(dyn Fn(&TaskSpec, &mut dyn Instance) -> Result<bool, EnvironmentError> + Sync)| {
                let tried = battery.on_cheater_seeds(cheat)?;
                Ok(percent(tried.iter().filter(|success| **success).count(), total))
            };
        let random = success(&|task, instance| random(task, instance))?;
        let constant = success(&|task, instance| {
            let action = whole_call(instance.tools(), &task.goal, task.seed);
            let actions = vec![action; task.max_steps as usize];
            Ok(play(instance, &actions)?.score.success)
        })?;
        let copied = success(&|task, instance| {
            let mut actions: Vec<Action> = (0..instance.tools().len())
                .map(|at| whole_call(instance.tools(), &task.goal, at as u64))
                .collect();
            actions.push(Action::say(task.goal.as_str()));
            Ok(play(instance, &actions)?.score.success)
        })?;
        let solved = battery.solved()?;
        let borrowed = success(&|task, instance| {
            let others = solved.iter().filter(|other| other.task.family == task.family);
            let others: Vec<_> = others.filter(|other| other.task.seed != task.seed).collect();
            let other = others.get(task.seed as usize % others.len().max(1));
            other.map_or(Ok(false), |other| Ok(play(instance, &other.actions)?.score.success))
        })?;
        let paid = battery.on_cheater_seeds(|_, instance| {
            let claims = vec![Action::say(CLAIM); 3];
            Ok(play(instance, &claims)?.score.score > 0.0)
        })?;
        let paid = paid.iter().filter(|paid| **paid).count();
        let rates = [("random", random), ("constant", constant), ("copied", copied), ("another's", borrowed)];
        let words: Vec<String> = rates.iter().map(|(name, rate)| format!("{name} {rate:.1} %")).collect();
        Ok(Finding {
            passed: paid == 0 && rates.iter().all(|(_, rate)| *rate <= SUCCESS_MAX),
            figure: format!("{total} seeds: {}; claims paid {paid} times", words.join(", ")),
        })
    }
}

fn random(task: &TaskSpec, instance: &mut dyn Instance) -> Result<bool, EnvironmentError> {
    let episode = run(instance, task, &Random, Conditions { seed: task.seed, ..Conditions::default() });
    let succeeded = episode.succeeded();
    match episode.end {
        End::Environment(error) => Err(error),
        _ => Ok(succeeded),
    }
}

/// A call of one tool with the goal's text, or the first option, wherever it takes some.
fn whole_call(tools: &[ToolSpec], goal: &str, at: u64) -> Action {
    let Some(tool) = tools.get(at as usize % tools.len().max(1)) else { return Action::say(goal) };
    let arguments = tool.parameters.iter().map(|parameter| {
        let first = parameter.options.as_ref().and_then(|options| options.first().cloned());
        (parameter.name.clone(), first.unwrap_or_else(|| parameter.kind.example(goal)))
    });
    let arguments = serde_json::Value::Object(arguments.collect());
    Action::call(tool.name.as_str(), Json::from_foreign(&arguments.to_string()))
}
