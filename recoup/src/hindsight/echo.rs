//! Echoes of the original goal: what a policy wrote that speaks of what only the original goal names.
//!
//! Under a new goal such words would teach to pursue something that nobody asked for.

use super::tokens::{offered, stems, values};

/// Whether a text names a value of the original goal that the new one does not have, or repeats two of the words, of
/// three or more, that only the original has: `I will cancel it, as it was ordered by mistake` under a goal that changes
/// nothing.
pub fn echoes(text: &str, original: &str, goal: &str) -> bool {
    let known = offered(goal);
    let own = values(original).into_iter().filter(|value| !known.contains(value));
    let said = offered(text);
    if own.into_iter().any(|value| said.contains(&value)) {
        return true;
    }
    let of_goal = stems(goal);
    let only: Vec<String> = stems(original).into_iter().filter(|stem| !of_goal.contains(stem)).collect();
    let of_text = stems(text);
    let repeated = only.iter().filter(|stem| of_text.contains(*stem)).count();
    repeated >= 2
}

#[cfg(test)]
mod tests {
    use super::echoes;

    #[test]
    fn words_about_the_original_goal_are_told_from_others() {
        let (original, goal) = ("Cancel order #W1 of Mia.", "What is the status of order #W2?");
        assert!(echoes("I will look at #W1 first.", original, goal));
        assert!(!echoes("I will look at #W2 first.", original, goal));
        let (original, goal) = ("Bring the red lamp to the attic table.", "Find the blue cup in the hall.");
        assert!(echoes("Now the lamp goes to the attic.", original, goal));
        assert!(!echoes("Now the cup.", original, goal));
        let original = "Hi, I'd like to cancel order #W2, the one with the desk lamp and the kettle; I ordered it by mistake.";
        let goal = "Look up order #W2: what is its status and its total? Change nothing.";
        assert!(echoes("I will cancel order #W2 (ordered by mistake).", original, goal));
        assert!(!echoes("What is your e-mail address, or your zip code?", original, goal));
    }
}
