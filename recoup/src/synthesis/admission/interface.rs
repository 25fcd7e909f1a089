//! The tools are those of the target, where the environment stands in for one.

use super::{Battery, Finding, Gate};
use crate::environments::EnvironmentError;

pub(super) struct Interface;

impl Gate for Interface {
    fn name(&self) -> &'static str {
        "interface"
    }

    fn rule(&self) -> &'static str {
        "each tool has the name and the parameter types of one of the target's; every seed offers the same tools"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let mut offers = battery.on_solved(|_, instance| Ok(instance.tools().to_vec()))?.into_iter();
        let Some(tools) = offers.next() else {
            return Ok(Finding { passed: false, figure: "no seed was played".to_owned() });
        };
        if offers.any(|others| others.iter().map(|tool| &tool.name).ne(tools.iter().map(|tool| &tool.name))) {
            return Ok(Finding { passed: false, figure: "seeds offer different tools".to_owned() });
        }
        let Some(target) = &battery.config.target else {
            return Ok(Finding {
                passed: true,
                figure: format!("{} tools; no target was named", tools.len()),
            });
        };
        let shape = |tool: &crate::environments::ToolSpec| {
            let mut shape: Vec<_> = tool
                .parameters
                .iter()
                .map(|parameter| (parameter.name.clone(), parameter.kind.as_str()))
                .collect();
            shape.sort();
            (tool.name.clone(), shape)
        };
        let other = tools.iter().find(|tool| !target.iter().any(|known| shape(known) == shape(tool)));
        Ok(Finding {
            passed: other.is_none(),
            figure: match other {
                Some(tool) => format!("`{}` is no tool of the target", tool.name),
                None => format!("{} tools, all of the target", tools.len()),
            },
        })
    }
}
