//! Chance: numbers that depend on a seed and a name alone, so that nothing has to be remembered.

/// Golden ratio in 64 bits, SplitMix64's increment.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number from 0 to `n` − 1 that depends on the four values alone: SplitMix64's output function
/// (Steele, Lea and Flood 2014) over seed, FNV-1a of the stream's name, and counter.
pub fn rand(seed: u64, stream: &str, counter: u64, n: u64) -> u64 {
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    };
    let name = stream.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    });
    let x = mix(mix(seed.wrapping_add(GOLDEN)) ^ name);
    let x = mix(x.wrapping_add(counter.wrapping_add(1).wrapping_mul(GOLDEN)));
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::rand;

    #[test]
    fn draws_as_the_python_twin_does() {
        // Printed by `recoup_env.py`: rand(7, "x", 0, 100), rand(7, "x", 1, 100).
        assert_eq!((rand(7, "x", 0, 100), rand(7, "x", 1, 100)), (74, 17));
    }

    #[test]
    fn every_number_is_drawn_about_as_often() {
        let mut counts = [0_u32; 10];
        for counter in 0..10_000 {
            counts[rand(1, "dice", counter, 10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
