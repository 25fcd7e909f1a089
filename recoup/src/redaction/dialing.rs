//! Dialing: how many digits a country's numbers have, and how people group them.

use super::numbers::digits;

/// Country codes and the most digits of a number with its code, from the national numbering plans. A code
/// that is not here may have the fifteen digits of E.164.
const PLANS: &[(&[u8], usize)] = &[
    (b"1", 11),
    (b"7", 11),
    (b"20", 12),
    (b"27", 11),
    (b"30", 12),
    (b"31", 11),
    (b"32", 11),
    (b"33", 11),
    (b"34", 11),
    (b"351", 12),
    (b"352", 12),
    (b"353", 12),
    (b"354", 10),
    (b"358", 13),
    (b"36", 11),
    (b"380", 12),
    (b"39", 13),
    (b"40", 11),
    (b"41", 11),
    (b"420", 12),
    (b"421", 12),
    (b"43", 14),
    (b"44", 12),
    (b"45", 10),
    (b"46", 12),
    (b"47", 10),
    (b"48", 11),
    (b"49", 13),
    (b"51", 11),
    (b"52", 13),
    (b"54", 13),
    (b"55", 13),
    (b"56", 11),
    (b"57", 12),
    (b"60", 12),
    (b"61", 11),
    (b"62", 14),
    (b"63", 12),
    (b"64", 12),
    (b"65", 10),
    (b"66", 11),
    (b"81", 12),
    (b"82", 12),
    (b"84", 12),
    (b"852", 11),
    (b"86", 13),
    (b"880", 13),
    (b"886", 12),
    (b"90", 12),
    (b"91", 12),
    (b"92", 12),
    (b"94", 11),
    (b"234", 13),
    (b"254", 12),
    (b"966", 12),
    (b"971", 12),
    (b"972", 12),
];

/// Most digits of E.164.
const LONGEST: usize = 15;

/// The most digits of a number that begins with a country's code.
pub(super) fn longest(number: &[u8]) -> usize {
    PLANS.iter().find(|(code, _)| number.starts_with(code)).map_or(LONGEST, |(_, most)| *most)
}

/// The most digits of a number of the country that has this code; `None` for a code that is not known.
pub(super) fn longest_of(code: &[u8]) -> Option<usize> {
    PLANS.iter().find(|(known, _)| *known == code).map(|(_, most)| *most)
}

/// What could be dialed from one place on.
pub(super) struct Dialed {
    pub end: usize,
    pub count: usize,
    /// Groups of digits.
    pub groups: usize,
    /// Digits of the shortest group behind the first.
    pub shortest: usize,
}

/// Groups of two to eleven digits from `start` on, `most` digits together, joined as people join them (`-`
/// after a space is a minus: `+1234 -5678`). The first group, a country's or an area's code, may be followed
/// by a group of `area_least` digits (Paris is `1`); only there does a bracket open, since later it opens
/// the next number (`+44 20 7946 0958 (415) 555-0132`). The trunk zero of `+44 (0)20` is part of a joint.
pub(super) fn dialed(bytes: &[u8], start: usize, area_least: usize, most: usize) -> Dialed {
    let mut dialed = Dialed { end: start, count: 0, groups: 0, shortest: usize::MAX };
    let mut run = digits(&bytes[start..]);
    loop {
        dialed.end += run;
        dialed.count += run;
        dialed.groups += 1;
        let rest = &bytes[dialed.end..];
        let first = dialed.groups == 1;
        let trunk =
            [&b" (0) "[..], b" (0)", b"(0)"].into_iter().find(|trunk| first && rest.starts_with(trunk));
        let gap = trunk.map_or_else(
            || rest.iter().take(3).take_while(|byte| b" .-()/".contains(byte)).count(),
            <[u8]>::len,
        );
        let joint = trunk.is_some()
            || match &rest[..gap] {
                b" " | b"." | b"-" | b")" | b") " | b")-" | b"/" | b" / " => true,
                b"(" | b" (" => first,
                _ => false,
            };
        run = digits(&rest[gap..]);
        let least = if first { area_least } else { 2 };
        if !joint || !(least..=11).contains(&run) || dialed.count + run > most {
            return dialed;
        }
        dialed.shortest = dialed.shortest.min(run);
        dialed.end += gap;
    }
}
