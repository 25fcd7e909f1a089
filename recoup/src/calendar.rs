//! The calendar: what a date of the Gregorian calendar is in days.

/// Days since 1970-01-01 of a day (1 to 31) of a month (1 to 12), whatever the year (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", 2014).
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
