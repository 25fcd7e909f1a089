//! Circles: whether the last of what a run did stands several times among what it did lately.

/// Exchanges looked back on, the last one included.
const WINDOW: usize = 6;
/// How often the last one stands among them.
const REPEATS: usize = 3;

/// Whether a run goes in circles. `latest` are its exchanges, each an action with what it gave, from the last one back.
pub fn goes_in_circles<T: PartialEq>(mut latest: impl Iterator<Item = T>) -> bool {
    let Some(last) = latest.next() else { return false };
    latest.take(WINDOW - 1).filter(|exchange| *exchange == last).count() + 1 >= REPEATS
}

#[cfg(test)]
mod tests {
    use super::goes_in_circles;

    #[test]
    fn three_of_the_last_six_are_a_circle() {
        let circles = |done: &str| goes_in_circles(done.chars().rev());
        assert!(circles("abaca") && circles("aaa") && circles("axxaxa"));
        assert!(!circles("aa") && !circles("axxxaxa") && !circles("aaab") && !circles(""));
    }
}
