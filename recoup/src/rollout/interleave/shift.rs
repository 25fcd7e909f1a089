//! Shift: how far a student's turn lies from its teacher, by the tokens of both.
//!
//! The reverse KL divergence on student states is the mean over student tokens of log π_s − log π_t. It is defined
//! where both have the same vocabulary, which shows in the texts of the tokens: the student's must stand in the
//! teacher's, one for one.

use crate::models::TokenLogprob;
use crate::verdict::TokenShift;

/// The divergence on one turn. `given` are the tokens of the teacher's conversation with the student's turn at its end;
/// `None` where the student's do not stand there.
pub fn token_shift(sampled: &[TokenLogprob], given: &[TokenLogprob]) -> Option<TokenShift> {
    // A token that ends the turn is told by some servers and by others not.
    let whole = place(sampled, given).map(|at| (sampled, at));
    let (sampled, at) = whole.or_else(|| {
        let (_, open) = sampled.split_last()?;
        place(open, given).map(|at| (open, at))
    })?;
    let pairs = sampled.iter().zip(given.get(at..)?);
    Some(TokenShift {
        sum: pairs.map(|(student, teacher)| student.logprob - teacher.logprob).sum(),
        tokens: sampled.len() as u64,
    })
}

/// Where tokens stand in others: the last place, for the turn is at the end.
fn place(tokens: &[TokenLogprob], within: &[TokenLogprob]) -> Option<usize> {
    if tokens.is_empty() {
        return None;
    }
    let is_same =
        |window: &[TokenLogprob]| window.iter().zip(tokens).all(|(left, right)| left.token == right.token);
    within.windows(tokens.len()).rposition(is_same)
}

#[cfg(test)]
mod tests {
    use super::token_shift;
    use crate::models::TokenLogprob;

    fn tokens(list: &[(&str, f64)]) -> Vec<TokenLogprob> {
        list.iter()
            .map(|(token, logprob)| TokenLogprob { token: (*token).to_owned(), logprob: *logprob, id: None })
            .collect()
    }

    #[test]
    fn the_turn_is_found_at_the_end_and_compared_token_by_token() {
        let student = tokens(&[("go", -0.5), (" on", -1.0), ("<end>", -0.1)]);
        let teacher =
            tokens(&[("go", -9.0), (" on", -9.0), ("user", -1.0), ("go", -1.5), (" on", -3.0), ("\n", -1.0)]);
        let shift = token_shift(&student, &teacher).unwrap();
        assert_eq!((shift.sum, shift.tokens), (1.0 + 2.0, 2));
        let whole = tokens(&[("go", -1.5), (" on", -3.0), ("<end>", -0.1)]);
        assert_eq!(token_shift(&student, &whole).unwrap().tokens, 3);
        assert_eq!(
            token_shift(&student, &tokens(&[("g", -1.0), ("o on", -1.0)])),
            None,
            "another vocabulary"
        );
        assert_eq!(token_shift(&[], &whole), None);
    }
}
