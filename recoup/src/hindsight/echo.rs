//! Echoes of the original goal: what a policy wrote that speaks of what only the original goal names.
//!
//! Under a new goal such words would teach to pursue something that nobody asked for.

use super::tokens::{offered, stems, values};

/// Whether a text names a value of the original goal that the new one does not have, or repeats two or more
/// of the words that only the original has, and a third of them.
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
    repeated >= 2 && 3 * repeated >= only.len()
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
    }
}
