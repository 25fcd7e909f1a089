//! `[models]` of the settings file: who judges, and what asking models may take, where no flag says so.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use recoup::models::Cost;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::args::{CONCURRENCY_MAX, JudgeArgs, Rate, SpendArgs, parse_rate};

/// The section. Its keys are the flags of the same names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelsSection {
    #[serde(default)]
    judges: Vec<String>,
    window: Option<usize>,
    max_answer: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "dollars")]
    max_cost: Option<Cost>,
    max_tokens: Option<u64>,
    max_requests: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    max_time: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    timeout: Option<Duration>,
    prices: Option<PathBuf>,
    #[serde(default, deserialize_with = "concurrency")]
    concurrency: Option<u16>,
    #[serde(default, deserialize_with = "rates")]
    rpm: Vec<Rate>,
    #[serde(default, deserialize_with = "rates")]
    tpm: Vec<Rate>,
    #[serde(default, deserialize_with = "time")]
    hedge: Option<Duration>,
}

impl ModelsSection {
    /// Its keys, for a hint.
    pub(super) const KEYS: &'static str = "`judges`, `window`, `max_answer`, `max_cost`, `max_tokens`, \
        `max_requests`, `max_time`, `timeout`, `prices`, `concurrency`, `rpm`, `tpm`, `hedge`";

    /// Flags, with the section's values where none was given.
    pub(crate) fn spending(&self, flags: &SpendArgs) -> SpendArgs {
        SpendArgs {
            max_cost: flags.max_cost.or(self.max_cost),
            max_tokens: flags.max_tokens.or(self.max_tokens),
            max_requests: flags.max_requests.or(self.max_requests),
            max_time: flags.max_time.or(self.max_time),
            timeout: flags.timeout.or(self.timeout),
            prices: flags.prices.clone().or_else(|| self.prices.clone()),
            concurrency: flags.concurrency.or(self.concurrency),
            rpm: if flags.rpm.is_empty() { self.rpm.clone() } else { flags.rpm.clone() },
            tpm: if flags.tpm.is_empty() { self.tpm.clone() } else { flags.tpm.clone() },
            hedge: flags.hedge.or(self.hedge),
            ..flags.clone()
        }
    }

    /// Flags, with the section's values where none was given.
    pub(crate) fn judging(&self, flags: &JudgeArgs) -> JudgeArgs {
        let judges = if flags.judges.is_empty() { &self.judges } else { &flags.judges };
        JudgeArgs {
            judges: if flags.no_judge { Vec::new() } else { judges.clone() },
            window: flags.window.or(self.window),
            max_answer: flags.max_answer.or(self.max_answer.map(NonZeroU32::get)),
            spend: self.spending(&flags.spend),
            ..*flags
        }
    }
}

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cost>, D::Error> {
    let usd = f64::deserialize(deserializer)?;
    if usd.is_finite() && usd >= 0.0 {
        Ok(Some(Cost::from_usd(usd)))
    } else {
        Err(D::Error::custom("expected an amount of dollars, for instance 2.50"))
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text)
        .map(Some)
        .map_err(|error| D::Error::custom(format!("{error}, as in \"30m\"")))
}

/// One rate for all hosts, or a list of rates as the flags take them.
fn rates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rate>, D::Error> {
    let rate = |value: toml::Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        parse_rate(&text).map_err(D::Error::custom)
    };
    match toml::Value::deserialize(deserializer)? {
        toml::Value::Array(values) => values.into_iter().map(rate).collect(),
        value => Ok(vec![rate(value)?]),
    }
}

fn concurrency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let count = i64::deserialize(deserializer)?;
    u16::try_from(count)
        .ok()
        .filter(|count| (1..=CONCURRENCY_MAX).contains(count))
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("expected a number from 1 to {CONCURRENCY_MAX}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recoup::models::Cost;

    use super::ModelsSection;
    use crate::args::{JudgeArgs, Rate, SpendArgs};

    #[test]
    fn flags_go_before_the_section() {
        let text = "judges = [\"openai:a\"]\nmax_cost = 2\nmax_time = \"30m\"\nconcurrency = 4\nrpm = [60, \"api.openai.com=500\"]\n";
        let section: ModelsSection = toml::from_str(text).unwrap();
        let spend = SpendArgs { concurrency: Some(9), ..SpendArgs::default() };
        let flags = JudgeArgs { spend, ..JudgeArgs::default() };
        let merged = section.judging(&flags);
        assert_eq!(merged.judges, ["openai:a"]);
        assert_eq!(merged.spend.max_cost, Some(Cost::from_usd(2.0)));
        let rate = |host: &str| Rate::of(&merged.spend.rpm, host, host);
        assert_eq!((rate("api.openai.com"), rate("localhost")), (Some(500), Some(60)));
        assert_eq!(
            (merged.spend.max_time, merged.spend.concurrency),
            (Some(Duration::from_mins(30)), Some(9))
        );
        let named = JudgeArgs { judges: vec!["openai:b".to_owned()], ..JudgeArgs::default() };
        assert_eq!(section.judging(&named).judges, ["openai:b"]);
        let none = JudgeArgs { no_judge: true, ..JudgeArgs::default() };
        assert!(section.judging(&none).judges.is_empty());
    }

    #[test]
    fn values_that_no_flag_would_take_are_refused() {
        for (text, words) in [
            ("max_cost = -1", "expected an amount of dollars"),
            ("max_time = \"soon\"", "as in \"30m\""),
            ("concurrency = 0", "from 1 to 1024"),
            ("rpm = 0", "expected a whole number from 1"),
            ("tpm = [\"h=none\"]", "expected a whole number from 1"),
            ("judge = \"openai:a\"", "unknown field `judge`"),
        ] {
            let error = toml::from_str::<ModelsSection>(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
