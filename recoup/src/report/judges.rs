//! The words and figures of the judges' section, for the page and the Markdown alike.

use super::model::{Disagreement, Judges};
use super::wording::{counted, number, percent, runs};
use crate::judges::quality::{Quality, Share};

/// A line of the section.
pub(super) struct Line {
    /// What is measured.
    pub name: String,
    /// What that is, in a few words.
    pub what: &'static str,
    /// A share with its interval, where it is one.
    pub share: Option<Share>,
    /// The figure in words.
    pub value: String,
}

/// `62% (55–69%), 31 of 50`.
pub(super) fn said(share: &Share) -> String {
    let low = percent(share.low);
    let (low, high) = (low.trim_end_matches('%'), percent(share.high));
    format!("{} ({low}–{high}), {} of {}", percent(share.rate), number(share.k), number(share.n))
}

/// Who judged, in a sentence.
pub(super) fn panels(judges: &Judges) -> String {
    let said: Vec<String> =
        judges.panels.iter().map(|(panel, count)| format!("{} by {panel}", runs(*count))).collect();
    let cost = match (judges.cost_usd, judges.cost_per_admitted_usd) {
        (Some(all), Some(each)) => format!(", ${all:.2} in all and ${each:.4} an admitted diagnosis"),
        (Some(all), None) => format!(", ${all:.2} in all"),
        _ => "; what they cost is not known".to_owned(),
    };
    format!(
        "Judged: {}. {}, {} tokens asked and {} answered{cost}.",
        said.join("; "),
        counted(judges.calls, "question", "questions"),
        number(judges.prompt_tokens),
        number(judges.completion_tokens)
    )
}

/// What to do where nobody has measured the judges.
pub(super) fn unmeasured(judges: &Judges) -> Option<&'static str> {
    let labelled = judges.quality.as_ref().map_or(0, |quality| quality.labelled);
    (labelled == 0).then_some(
        "Nobody has looked at these runs yet, so how far the judges can be believed is not known. The command \
         recoup review shows runs without outcome or verdict and keeps what you say.",
    )
}

/// Yield, agreement and quality.
pub(super) fn lines(judges: &Judges) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |name: &str, what, share: Option<Share>| {
        if let Some(share) = share {
            lines.push(Line { name: name.to_owned(), what, share: Some(share), value: said(&share) });
        }
    };
    add("yield", "judged runs with an admitted diagnosis", judges.admitted);
    add("same step as the rules", "where both name one", judges.same_step_as_rules);
    add("within 3 steps of the rules", "where both name one", judges.within_3_of_rules);
    let Some(quality) = &judges.quality else { return lines };
    add("exact step", "proposals at the step that a person names", quality.exact_step);
    add("true positive rate", "right proposals that were admitted", quality.true_positive);
    add("true negative rate", "wrong proposals that were refused", quality.true_negative);
    add("flip rate", "runs judged again whose word or step changed", quality.flips);
    add("abstention", "words of members that decide nothing", quality.abstentions);
    add("contradiction", "members that admit a step and hold another for decisive", quality.contradictions);
    lines.extend(estimates(quality));
    lines
}

fn estimates(quality: &Quality) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(corrected) = quality.corrected {
        let (low, high) = (percent(corrected.interval.low), percent(corrected.interval.high));
        lines.push(Line {
            name: "right proposals".to_owned(),
            what: "corrected for the judges' errors (Rogan–Gladen)",
            share: None,
            value: format!("{} ({}–{high})", percent(corrected.rate), low.trim_end_matches('%')),
        });
    }
    for agreement in &quality.agreement {
        let kappa = &agreement.kappa;
        lines.push(Line {
            name: format!("{} and {}", agreement.first, agreement.second),
            what: "Cohen's kappa on the decisive step",
            share: None,
            value: format!("κ = {:.2} ({:.2} to {:.2})", kappa.kappa, kappa.low, kappa.high),
        });
    }
    lines
}

/// `rules step 3, judges step 5, step 6`.
pub(super) fn steps(disagreement: &Disagreement) -> String {
    let step = |step: Option<usize>| step.map_or_else(|| "none".to_owned(), |step| format!("step {step}"));
    let judges: Vec<String> = disagreement.judges.iter().map(|found| step(*found)).collect();
    format!("rules {}, judges {}", step(disagreement.rules), judges.join(", "))
}
