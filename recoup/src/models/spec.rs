//! A model's name as people type it: `openai:gpt-4o-mini`, `http://localhost:8000/v1#qwen`,
//! `anthropic:claude-…`, `scripted:answers.jsonl`.

use std::path::PathBuf;

use super::{ModelIdentity, family_of};

/// How a model is spoken to over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's chat completions, which most servers speak.
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
}

impl Wire {
    /// Its word in names and identities.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// Where it is spoken when no address is given.
    fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
        }
    }
}

/// A model that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSpec {
    /// One behind an address.
    Remote {
        /// How it is spoken to.
        wire: Wire,
        /// Scheme, host, port and path, without a slash at the end.
        base_url: String,
        /// The model's name there.
        model: String,
    },
    /// Answers that are written in a file.
    Scripted(PathBuf),
}

/// A name that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` names no model: {reason}")]
pub struct SpecError {
    name: String,
    reason: &'static str,
}

impl SpecError {
    /// What names a model, in words.
    pub fn hint() -> &'static str {
        "name one as `openai:MODEL`, `anthropic:MODEL`, `http://HOST:PORT/v1#MODEL` or `scripted:FILE`"
    }
}

impl ModelSpec {
    /// Reads a name.
    ///
    /// # Errors
    /// [`SpecError`], without what could be a password.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let fail = |reason| SpecError { name: without_userinfo(text), reason };
        if is_url(text) {
            return remote(Wire::OpenAi, text).map_err(fail);
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(fail("it has no provider before a colon"));
        };
        if rest.is_empty() {
            return Err(fail("nothing follows the colon"));
        }
        let wire = match scheme {
            "openai" => Wire::OpenAi,
            "openai-responses" => Wire::OpenAiResponses,
            "anthropic" => Wire::Anthropic,
            "scripted" => return Ok(Self::Scripted(rest.into())),
            "local" => return Err(fail("models trained here cannot be run yet")),
            _ => return Err(fail("the provider is not known")),
        };
        if is_url(rest) {
            return remote(wire, rest).map_err(fail);
        }
        Ok(Self::Remote { wire, base_url: wire.base_url().to_owned(), model: rest.to_owned() })
    }

    /// The identity of a model behind an address, of its name's family unless another is given.
    pub fn identity(&self, family: Option<&str>) -> Option<ModelIdentity> {
        let Self::Remote { wire, base_url, model } = self else { return None };
        Some(ModelIdentity {
            provider: wire.as_str().to_owned(),
            model: model.clone(),
            base_url: base_url.clone(),
            family: family.map_or_else(|| family_of(model), str::to_owned),
        })
    }
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme))
}

/// A host without its port, and an address without its brackets.
pub(super) fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or(six),
        None => host.split(':').next().unwrap_or(host),
    }
}

/// Whether a host, with or without a port, is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = host_name(host);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Host and port of an address that has been checked.
pub(super) fn authority(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn without_userinfo(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => match rest.split_once('@') {
            Some((userinfo, rest)) if !userinfo.contains('/') => format!("{scheme}://***@{rest}"),
            _ => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

fn remote(wire: Wire, text: &str) -> Result<ModelSpec, &'static str> {
    let (address, model) = text
        .split_once('#')
        .filter(|(_, model)| !model.is_empty())
        .ok_or("no `#MODEL` follows the address")?;
    if address.contains('?') {
        return Err("an address has no query; keys come from the environment");
    }
    let host = authority(address);
    if host.contains('@') {
        return Err("an address has no name or password; keys come from the environment");
    }
    if host.is_empty()
        || host.starts_with(':')
        || address.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Err("the address has no host");
    }
    let base = address.trim_end_matches('/');
    // The whole endpoint is understood too.
    let (wire, base) = if let Some(base) = base.strip_suffix("/chat/completions") {
        (Wire::OpenAi, base)
    } else if let Some(base) = base.strip_suffix("/responses") {
        (Wire::OpenAiResponses, base)
    } else if let Some(base) = base.strip_suffix("/messages") {
        (Wire::Anthropic, base)
    } else {
        (wire, base)
    };
    Ok(ModelSpec::Remote { wire, base_url: base.to_owned(), model: model.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{ModelSpec, Wire};

    fn remote(text: &str) -> (Wire, String, String) {
        match ModelSpec::parse(text) {
            Ok(ModelSpec::Remote { wire, base_url, model }) => (wire, base_url, model),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn names_are_read() {
        let of = |wire, base: &str, model: &str| (wire, base.to_owned(), model.to_owned());
        let openai = "https://api.openai.com/v1";
        assert_eq!(remote("openai:gpt-4o-mini"), of(Wire::OpenAi, openai, "gpt-4o-mini"));
        assert_eq!(remote("openai-responses:o3"), of(Wire::OpenAiResponses, openai, "o3"));
        assert_eq!(
            remote("http://localhost:8000/v1/#Qwen/Qwen3:7b"),
            of(Wire::OpenAi, "http://localhost:8000/v1", "Qwen/Qwen3:7b")
        );
        assert_eq!(remote("https://h/v1/responses#m"), of(Wire::OpenAiResponses, "https://h/v1", "m"));
        assert_eq!(
            remote("anthropic:http://127.0.0.1:9/v1#claude"),
            of(Wire::Anthropic, "http://127.0.0.1:9/v1", "claude")
        );
        assert_eq!(ModelSpec::parse("scripted:a.jsonl"), Ok(ModelSpec::Scripted("a.jsonl".into())));
    }

    #[test]
    fn what_stays_on_this_machine_is_known() {
        for (name, local) in [
            ("http://127.0.0.1:80/v1#m", true),
            ("http://[::1]:80/v1#m", true),
            ("http://LOCALHOST/v1#m", true),
            ("http://localhost.example.com/v1#m", false),
            ("openai:m", false),
        ] {
            let identity = ModelSpec::parse(name).unwrap().identity(None).unwrap();
            assert_eq!(identity.is_local(), local, "{name}");
        }
    }

    #[test]
    fn what_names_no_model_is_refused_without_showing_a_password() {
        for name in [
            "gpt-4o",
            "openai:",
            "acme:m",
            "http://h/v1",
            "http://h/v1#",
            "http:///v1#m",
            "http://h/v1?k=s#m",
        ] {
            assert!(ModelSpec::parse(name).is_err(), "{name}");
        }
        let error = ModelSpec::parse("http://me:hunter2@h/v1#m").unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("password"), "{error}");
        assert!(ModelSpec::parse("local:adapters").unwrap_err().to_string().contains("yet"));
    }
}
