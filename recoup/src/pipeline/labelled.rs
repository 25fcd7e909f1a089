//! What judges and people made of the same runs, side by side, from the project.

use std::collections::BTreeMap;

use crate::id::TrajectoryId;
use crate::judges::quality::Judgement;
use crate::store::{Store, StoreError};
use crate::verdict::{Content, Decision, Judging, PersonReview};

/// Every judgement of the project, of each run those of its current panel, with what a person says.
///
/// # Errors
/// When the store cannot be read.
pub fn judgements(store: &Store) -> Result<Vec<Judgement>, StoreError> {
    let mut people: BTreeMap<TrajectoryId, PersonReview> = BTreeMap::new();
    for (_, verdict) in store.of_kind("person_review")? {
        if let Content::PersonReview(review) = verdict.content {
            // The current one comes first.
            people.entry(verdict.subject).or_insert(review);
        }
    }
    let mut judgements: Vec<Judgement> = Vec::new();
    for (_, verdict) in store.of_kind("judging")? {
        let Content::Judging(judging) = verdict.content else { continue };
        let run = verdict.subject.to_string();
        let members: Vec<(String, Option<usize>)> =
            judging.members.iter().map(|member| (member.model.clone(), member.node)).collect();
        let of_run = judgements.iter().rev().take_while(|other| other.run == run);
        let mut known = of_run.filter(|other| other.sample == judging.sample || !same_panel(other, &members));
        if judging.with_ground_truth || known.next().is_some() {
            continue;
        }
        judgements.push(judgement(run, &judging, members, people.get(&verdict.subject)));
    }
    Ok(judgements)
}

fn same_panel(other: &Judgement, members: &[(String, Option<usize>)]) -> bool {
    other.members.iter().map(|member| &member.0).eq(members.iter().map(|member| &member.0))
}

fn judgement(
    run: String,
    judging: &Judging,
    members: Vec<(String, Option<usize>)>,
    person: Option<&PersonReview>,
) -> Judgement {
    let node = members.first().and_then(|proposer| proposer.1);
    let right = person.and_then(|review| match (review.verdict, review.node) {
        // Where nothing went wrong no step is right.
        (Decision::Admit, _) => Some(node.is_none()),
        (Decision::Reject, Some(step)) => Some(node == Some(step)),
        _ => None,
    });
    let words = judging.members.iter().skip(1).filter_map(|member| member.word);
    Judgement {
        run,
        sample: judging.sample,
        admitted: judging.admitted,
        node,
        words: words
            .map(|word| match word {
                Decision::Admit => Some(true),
                Decision::Reject => Some(false),
                Decision::Abstain => None,
            })
            .collect(),
        members,
        right,
    }
}
