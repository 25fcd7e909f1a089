//! How single values on the command line are read.

use super::FormName;
use super::LabelFilter;
#[cfg(debug_assertions)]
use recoup::failpoint::Failpoint;
#[cfg(debug_assertions)]
use recoup::failpoint::Side;
use recoup::models::Cost;
use recoup::pipeline::LeftOut;
use recoup::rollout::Difficulties;
use recoup::rollout::forms;
use recoup::rollout::forms::FORMS;
use recoup::rollout::interleave::Aggregate;
use recoup::rollout::interleave::LabelSettings;
use recoup::templates::LocalTime;
use recoup::verdict::Arm;
use recoup::verdict::LabelMark;
use recoup::views::DiagnosisAnswer;
use recoup::views::PreventionTarget;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Reads a side and the name of a failpoint.
#[cfg(debug_assertions)]
pub(super) fn parse_failpoint(text: &str) -> Result<(Failpoint, Side), String> {
    let sides = Side::ALL.into_iter().flat_map(|side| Failpoint::ALL.iter().map(move |point| (*point, side)));
    let mut named = sides.filter(|(point, side)| format!("{}-{}", side.as_str(), point.as_str()) == text);
    named.next().ok_or_else(|| "no such failpoint".to_owned())
}

/// A rate a minute: of one host, or of every host that has none of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    host: Option<String>,
    most: NonZeroU32,
}

impl Rate {
    /// The rate of several that counts for a host: its own, with or without its port, else the one for all.
    pub(crate) fn of(rates: &[Self], host: &str, name: &str) -> Option<u32> {
        let named = |wanted: Option<&str>| rates.iter().rev().find(|rate| rate.host.as_deref() == wanted);
        let rate = named(Some(host)).or_else(|| named(Some(name))).or_else(|| named(None));
        rate.map(|rate| rate.most.get())
    }
}

/// Reads a rate: `N` or `HOST=N`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let (host, most) = match text.rsplit_once('=') {
        Some((host, most)) if !host.is_empty() => (Some(host.to_owned()), most),
        _ => (None, text),
    };
    let most = most.parse().map_err(|_| "expected a whole number from 1, or `HOST=N`".to_owned())?;
    Ok(Rate { host, most })
}

/// Reads a kind of answer.
pub(super) fn parse_answer(text: &str) -> Result<DiagnosisAnswer, String> {
    let named = DiagnosisAnswer::ALL.into_iter().find(|answer| answer.as_str() == text);
    named.ok_or_else(|| "expected `full` or `benchmark`".to_owned())
}

/// Reads a form's name.
pub(super) fn parse_form(text: &str) -> Result<FormName, String> {
    let known = || FORMS.iter().map(|form| form.name()).collect::<Vec<_>>().join(", ");
    forms::by_name(text).map(FormName).ok_or_else(|| format!("forms are {}", known()))
}

/// Reads a temperature.
pub(super) fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature = text.parse::<f64>().ok().filter(|it| (0.0..=2.0).contains(it));
    temperature.ok_or_else(|| "expected a number from 0 to 2".to_owned())
}

/// Reads a filter's name.
pub(super) fn parse_label_filter(text: &str) -> Result<LabelFilter, String> {
    if text == LabelSettings::VERIFIED {
        return Ok(LabelFilter::Verified);
    }
    let mark = LabelMark::ALL.into_iter().find(|mark| mark.as_str() == text);
    let known = || LabelMark::ALL.map(LabelMark::as_str).join(", ");
    mark.map(LabelFilter::Mark).ok_or_else(|| format!("filters are {}, {}", known(), LabelSettings::VERIFIED))
}

/// Reads which rounds count.
pub(super) fn parse_aggregate(text: &str) -> Result<Aggregate, String> {
    match text {
        "all" => Ok(Aggregate::All),
        "latest" => Ok(Aggregate::Latest),
        _ => Err("expected `all` or `latest`".to_owned()),
    }
}

/// Reads a target.
pub(super) fn parse_target(text: &str) -> Result<PreventionTarget, String> {
    let named = PreventionTarget::ALL.into_iter().find(|target| target.as_str() == text);
    named.ok_or_else(|| "expected `action`, `continuation` or `reflection+action`".to_owned())
}

/// Reads `2026-11-29`, with a time behind it or without.
pub(super) fn parse_date(text: &str) -> Result<LocalTime, String> {
    LocalTime::parse(text).ok_or_else(|| "expected a date like 2026-11-29".to_owned())
}

/// Reads `1`, `2`, `3` or `all`.
pub(super) fn parse_difficulties(text: &str) -> Result<Difficulties, String> {
    match text {
        "all" => Ok(Difficulties::All),
        "1" | "2" | "3" => text.parse().map(Difficulties::Only).map_err(|_| String::new()),
        _ => Err("expected 1, 2, 3 or all".to_owned()),
    }
}

/// Reads `name=folder`.
pub(super) fn parse_world(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(folder)))
        }
        _ => Err("expected a name and a folder, as `shop=environments/shop`".to_owned()),
    }
}

/// Reads what to keep for measuring.
pub(super) fn parse_left_out(text: &str) -> Result<LeftOut, String> {
    LeftOut::parse(text).ok_or_else(|| "expected `environment=NAME` or `harness=NAME`".to_owned())
}

/// Reads a finite number.
pub(super) fn parse_score(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err("expected a finite number".to_owned()),
    }
}

/// Reads an amount of dollars.
pub(super) fn parse_dollars(text: &str) -> Result<Cost, String> {
    match text.strip_prefix('$').unwrap_or(text).parse::<f64>() {
        Ok(usd) if usd.is_finite() && usd >= 0.0 => Ok(Cost::from_usd(usd)),
        _ => Err("expected an amount of dollars, for instance 2.50".to_owned()),
    }
}

/// Reads the word of an arm.
pub(super) fn parse_arm(text: &str) -> Result<Arm, String> {
    Arm::from_word(text).ok_or_else(|| "expected retry, resample, reconsider, guided or repair".to_owned())
}

/// Reads `64MiB`, `1GiB`, `500kB`, `1048576`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let unit = text[digits.len()..].trim().to_ascii_lowercase();
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "k" | "kib" => 1 << 10,
        "mb" => 1_000_000,
        "m" | "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "g" | "gib" => 1 << 30,
        _ => return Err(format!("unknown unit `{unit}`; use B, kB, MB, GB, KiB, MiB or GiB")),
    };
    let number: u64 = digits.trim().parse().map_err(|_| format!("`{digits}` is not a whole number"))?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(|| "out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1 GB"), Ok(1_000_000_000));
        assert_eq!(parse_size("12"), Ok(12));
        assert!(parse_size("3 lightyears").is_err());
        assert!(parse_size("0").is_err());
    }
}
