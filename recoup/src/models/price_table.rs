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

use super::Price;

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

    /// The price of a model, by its whole name.
    pub fn price(&self, model: &str) -> Option<Price> {
        self.models.get(model).map(|(price, _)| *price)
    }

    /// The family that the table says a model is of.
    pub fn family(&self, model: &str) -> Option<&str> {
        self.models.get(model).and_then(|(_, family)| family.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::PriceTable;

    #[test]
    fn a_table_is_read_and_a_typo_is_named() {
        let table =
            PriceTable::parse("[models.\"a/b\"]\ninput = 1\noutput = 2.5\nfamily = \"qwen\"\n").unwrap();
        let price = table.price("a/b").unwrap();
        assert_eq!((price.input, price.cached_input, price.output), (1.0, 1.0, 2.5));
        assert_eq!((table.family("a/b"), table.price("a")), (Some("qwen"), None));
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
