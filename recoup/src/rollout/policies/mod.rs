//! The built-in policies, by families: one file each.
//!
//! A policy is named on the command line and on the records by its family and its parameters
//! (`weak:premature-stop@0.3`); [`parse`] makes it from its name. Adding a family is one file and a line in
//! [`FAMILIES`].

mod chat;
mod expert;
mod mixture;
mod random;
mod scripted;
mod weak;

pub use self::chat::{Chat, ChatSettings};
pub use self::expert::Expert;
pub use self::mixture::Mixture;
pub use self::random::Random;
pub use self::scripted::Scripted;
pub use self::weak::{STYLES, Style, Weak};
use super::Policy;

/// Policies of one kind.
pub trait Family: Sync {
    /// What names of its policies begin with.
    fn name(&self) -> &'static str;

    /// How such names are written (`mixture:<a>+<b>@<p>`).
    fn usage(&self) -> String;

    /// What they do, in a sentence.
    fn describe(&self) -> &'static str;

    /// Makes a policy from what stands behind the first colon of its name; nothing where there is none.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn parse(&self, parameters: &str) -> Result<Box<dyn Policy>, String>;
}

/// Every family.
pub const FAMILIES: &[&dyn Family] = &[
    &expert::ExpertFamily,
    &weak::WeakFamily,
    &mixture::MixtureFamily,
    &random::RandomFamily,
    &scripted::ScriptedFamily,
];

/// A name that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy `{name}`: {reason}")]
pub struct PolicyNameError {
    /// The name.
    pub name: String,
    /// In words.
    pub reason: String,
}

impl PolicyNameError {
    /// The forms that names take, for a person.
    pub fn hint() -> String {
        let usages: Vec<String> = FAMILIES.iter().map(|family| format!("`{}`", family.usage())).collect();
        let styles: Vec<&str> = STYLES.iter().map(|style| style.name()).collect();
        format!("policies are {}; styles are {}", usages.join(", "), styles.join(", "))
    }
}

/// Makes a policy from its name.
///
/// # Errors
/// A [`PolicyNameError`].
pub fn parse(name: &str) -> Result<Box<dyn Policy>, PolicyNameError> {
    let (family, parameters) = name.split_once(':').unwrap_or((name, ""));
    let known = FAMILIES.iter().find(|known| known.name() == family);
    let made = known.ok_or_else(|| "there is none of this name".to_owned());
    made.and_then(|family| family.parse(parameters))
        .map_err(|reason| PolicyNameError { name: name.to_owned(), reason })
}

/// `<what>@<p>`: a probability behind the last `@`.
fn with_probability(parameters: &str) -> Result<(&str, f64), String> {
    let (what, number) = parameters
        .rsplit_once('@')
        .ok_or("a probability is missing: write it behind an `@`, as in `@0.3`")?;
    match number.parse::<f64>() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => Ok((what, probability)),
        _ => Err(format!("`{number}` is no probability from 0 to 1")),
    }
}

/// Nothing may stand behind the name of a family without parameters.
fn no_parameters(parameters: &str) -> Result<(), String> {
    if parameters.is_empty() {
        Ok(())
    } else {
        Err(format!("it takes no parameters, and `{parameters}` is one"))
    }
}

#[cfg(test)]
mod tests {
    use super::{PolicyNameError, parse};

    #[test]
    fn a_policy_has_the_name_it_was_made_from() {
        for name in [
            "expert",
            "random",
            "weak:skip-step@0.3",
            "mixture:expert+random@0.5",
            "mixture:weak:loop@0.2+mixture:expert+random@0.5@0.25",
        ] {
            assert_eq!(parse(name).unwrap().name(), name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_name_is_said() {
        let reason = |name: &str| parse(name).map(|_| ()).unwrap_err().reason;
        assert_eq!(reason("teacher"), "there is none of this name");
        assert_eq!(reason("expert:now"), "it takes no parameters, and `now` is one");
        assert_eq!(reason("weak:sleepy@0.3"), "there is no style `sleepy`");
        assert_eq!(reason("weak:loop@3"), "`3` is no probability from 0 to 1");
        assert_eq!(reason("mixture:expert@0.3"), "two policies with a `+` between them are needed");
        assert!(reason("mixture:expert+teacher@0.3").contains("`teacher`"));
        assert!(PolicyNameError::hint().contains("`weak:<style>@<rate>`"));
    }
}
