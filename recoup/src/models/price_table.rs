//! A price table: a TOML file with what models charge, in dollars a million tokens.
//!
//! ```toml
//! [models."gpt-4o-mini"]
//! input = 0.15
//! cached_input = 0.075
//! output = 0.60
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ModelIdentity, Price};

/// What well-known models charge where their makers serve them.
const KNOWN: &str = include_str!("known_prices.toml");
/// Where that holds.
const MAKERS: [&str; 2] = ["api.openai.com", "api.anthropic.com"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    models: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: f64,
    #[serde(default)]
    cached_input: Option<f64>,
    output: f64,
    #[serde(default)]
    family: Option<String>,
}

/// A price table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PriceTableError(String);

impl PriceTableError {
    /// What a table holds, in words.
    pub fn hint() -> &'static str {
        "a table has sections `[models.\"NAME\"]` with `input` and `output`, in dollars a million tokens, and if \
         need be `cached_input` and `family`"
    }
}

/// Prices of models by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceTable {
    models: BTreeMap<String, (Price, Option<String>)>,
}

impl PriceTable {
    /// Reads the text of a table.
    ///
    /// # Errors
    /// [`PriceTableError`] for a misspelled key, a missing price, and one that is no amount of money.
    pub fn parse(text: &str) -> Result<Self, PriceTableError> {
        let file: File =
            toml::from_str(text).map_err(|error| PriceTableError(error.to_string().trim_end().to_owned()))?;
        let mut models = BTreeMap::new();
        for (name, entry) in file.models {
            let price = Price {
                input: entry.input,
                cached_input: entry.cached_input.unwrap_or(entry.input),
                output: entry.output,
            };
            for amount in [price.input, price.cached_input, price.output] {
                if !amount.is_finite() || amount < 0.0 {
                    return Err(PriceTableError(format!("`{name}`: {amount} is no price")));
                }
            }
            models.insert(name, (price, entry.family));
        }
        Ok(Self { models })
    }

    /// The price of a model: by its whole name in this table, else as its maker's own API charges. A date
    /// after a maker's name does not change the price.
    pub fn price(&self, identity: &ModelIdentity) -> Option<Price> {
        if let Some((price, _)) = self.models.get(&identity.model) {
            return Some(*price);
        }
        let host = identity.host()?;
        let known = MAKERS.contains(&host).then(|| Self::parse(KNOWN).ok()).flatten()?;
        known.models.get(undated(&identity.model)).map(|(price, _)| *price)
    }

    /// The family that the table says a model is of.
    pub fn family(&self, model: &str) -> Option<&str> {
        self.models.get(model).and_then(|(_, family)| family.as_deref())
    }
}

/// A name without the date of its version (`-2024-07-18`, `-20250929`).
fn undated(model: &str) -> &str {
    let is_date = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        digits == 8
            && (text.len() == 9 || text.len() == 11)
            && text.bytes().all(|b| b == b'-' || b.is_ascii_digit())
    };
    let cut = |length: usize| model.len().checked_sub(length).and_then(|at| model.split_at_checked(at));
    [9, 11]
        .into_iter()
        .filter_map(cut)
        .find(|(_, end)| end.starts_with('-') && is_date(end))
        .map_or(model, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, PriceTable, undated};
    use crate::models::{ModelIdentity, ModelSpec};

    fn identity(name: &str) -> ModelIdentity {
        ModelSpec::parse(name).unwrap().identity(None).unwrap()
    }

    #[test]
    fn makers_prices_are_known_and_the_user_s_come_first() {
        assert!(PriceTable::parse(KNOWN).is_ok());
        let none = PriceTable::default();
        let input = |table: &PriceTable, name: &str| table.price(&identity(name)).map(|price| price.input);
        assert_eq!(input(&none, "openai:gpt-4o-mini-2024-07-18"), Some(0.15));
        assert_eq!(input(&none, "anthropic:claude-haiku-4-5-20251001"), Some(1.0));
        assert_eq!(input(&none, "http://localhost/v1#gpt-4o-mini"), None);
        assert_eq!(input(&none, "openai:gpt-4o-mini-audio"), None);
        let own = PriceTable::parse("[models.gpt-4o-mini]\ninput = 9\noutput = 9\n").unwrap();
        assert_eq!(input(&own, "openai:gpt-4o-mini"), Some(9.0));
        assert_eq!((undated("a-2024-07-18"), undated("a-20240718"), undated("a-1234")), ("a", "a", "a-1234"));
    }

    #[test]
    fn a_table_is_read_and_a_typo_is_named() {
        let table =
            PriceTable::parse("[models.\"a/b\"]\ninput = 1\noutput = 2.5\nfamily = \"qwen\"\n").unwrap();
        let price = table.price(&identity("http://h/v1#a/b")).unwrap();
        assert_eq!((price.input, price.cached_input, price.output), (1.0, 1.0, 2.5));
        assert_eq!((table.family("a/b"), table.price(&identity("http://h/v1#a"))), (Some("qwen"), None));
        for (text, word) in [
            ("[models.a]\ninptu = 1\noutput = 2\n", "inptu"),
            ("[models.a]\ninput = 1\n", "output"),
            ("[models.a]\ninput = -1\noutput = 2\n", "no price"),
            ("[models.a]\ninput = nan\noutput = 2\n", "no price"),
            ("[prices.a]\ninput = 1\noutput = 2\n", "prices"),
        ] {
            let error = PriceTable::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
