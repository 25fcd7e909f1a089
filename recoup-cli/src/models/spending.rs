//! Spending: what a user is told of it, before and after.

use std::fmt::Write as _;

use recoup::models::{Asking, Cost, Estimate, Landed, LedgerLine, ModelIdentity};

use super::UNASKED;
use crate::args::SpendArgs;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// What the user decided about an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Ask.
    Ask,
    /// It was only to be shown (`--dry-run`): it stands on standard output.
    Shown,
}

/// Says what will be spent, and stops where that is more than the user said.
pub(super) fn announce(
    estimate: &Estimate,
    spend: &SpendArgs,
    cap: Option<Cost>,
    settings: &Settings,
    printer: Printer,
) -> Result<Decision, Failure> {
    let mut text = describe(estimate);
    if let Some(cap) = cap.filter(|cap| estimate.cost_most > *cap) {
        let _ = write!(text, ", never more than {cap}");
    }
    if spend.dry_run {
        if printer.is_json() {
            printer.json(&settings.answer(estimate.clone()));
        } else {
            printer.line(text);
        }
        return Ok(Decision::Shown);
    }
    if estimate.requests == 0 || estimate.hosts.is_empty() {
        return Ok(Decision::Ask);
    }
    printer.note(&text);
    let unknown = estimate.unpriced.iter().next();
    let too_much = estimate.cost > UNASKED || unknown.is_some();
    if spend.max_cost.is_none() && !spend.yes && too_much && !settings.offline {
        let reason = match unknown {
            Some(model) => format!("nobody knows what `{model}` costs"),
            None => format!("this costs about {}", estimate.cost),
        };
        return Err(would_spend(&reason));
    }
    Ok(Decision::Ask)
}

pub(super) fn would_spend(reason: &str) -> Failure {
    Failure::user(format!("nothing was sent: {reason}"))
        .code("would-spend")
        .hint("`--yes` asks all the same, `--max-cost USD` sets a cap, `--prices FILE` tells prices")
}

/// An estimate in words.
pub(crate) fn describe(estimate: &Estimate) -> String {
    let hosts: Vec<&str> = estimate.hosts.iter().map(String::as_str).collect();
    let requests = match estimate.requests {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    };
    let mut text = if hosts.is_empty() { requests } else { format!("{requests} to {}", hosts.join(", ")) };
    if estimate.runs > 0 {
        text.push_str(" about ");
        text.push_str(&runs(usize::try_from(estimate.runs).unwrap_or(usize::MAX)));
    }
    let _ = write!(
        text,
        ": about {} tokens and at most {} in answers",
        estimate.prompt_tokens, estimate.completion_tokens
    );
    let leaving = match estimate.bytes_leaving {
        0 => ", nothing leaves this machine".to_owned(),
        bytes => format!(", {bytes} bytes leave this machine"),
    };
    text.push_str(&leaving);
    match (estimate.unpriced.is_empty(), estimate.cost) {
        (true, cost) => {
            let _ = write!(text, ", about {cost}");
        }
        (false, Cost(0)) => text.push_str(", price unknown"),
        (false, cost) => {
            let _ = write!(text, ", about {cost} and what models without a price cost");
        }
    }
    if estimate.cost_most > estimate.cost {
        let _ = write!(text, ", at most {} in all", estimate.cost_most);
    }
    if estimate.cached > 0 {
        let _ = write!(text, "; {} answered from before", estimate.cached);
    }
    text
}

pub(super) fn say_landed(landed: Landed, identity: &ModelIdentity, printer: Printer) {
    let Landed { answers, failed, open, reason } = landed;
    if answers + failed > 0 {
        printer.note(format_args!(
            "`{}` has answered {answers} requests of a batch, {failed} failed",
            identity.model
        ));
    }
    if let Some(reason) = reason {
        printer.warn(reason);
    }
    if open > 0 {
        let batches = if open == 1 { "batch" } else { "batches" };
        printer.note(format_args!("`{}` is still at work on {open} {batches}", identity.model));
    }
}

pub(super) fn say_spent(asking: &Asking, printer: Printer) {
    let spent = asking.budget().spent();
    let (calls, cached) = asking.ledger().calls();
    if calls + cached > 0 {
        printer.note(format_args!(
            "{calls} answered, {cached} from before, {} tokens, {}",
            spent.tokens, spent.cost
        ));
    }
    for LedgerLine { model, answered_by, doubtful_usage, .. } in asking.ledger().lines() {
        if !answered_by.is_empty() {
            printer.warn(format_args!("`{model}` was asked, and `{}` answered", answered_by.join("`, `")));
        }
        if doubtful_usage > 0 {
            printer.warn(format_args!(
                "the tokens that `{model}` counts are missing or cannot be true in {doubtful_usage} answers; \
                 they are counted by length"
            ));
        }
    }
}
