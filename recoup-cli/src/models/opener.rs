//! Opening: from a model's name to a client, with the key that its host gets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use recoup::models::{
    AnthropicModel, Budget, ChatModel, Client, ModelIdentity, ModelSpec, OpenAiModel, PriceTable,
    PriceTableError, ResponsesModel, ScriptFile, Secret, SpecError, Wire,
};

use crate::failure::Failure;

/// A model that was opened.
pub(super) enum Opened {
    Scripted(Arc<ScriptFile>),
    OpenAi(Arc<OpenAiModel>),
    Other(Arc<dyn ChatModel>),
}

impl Opened {
    pub(super) fn model(&self) -> &dyn ChatModel {
        match self {
            Self::Scripted(model) => &**model,
            Self::OpenAi(model) => &**model,
            Self::Other(model) => &**model,
        }
    }

    pub(super) fn into_model(self) -> Arc<dyn ChatModel> {
        match self {
            Self::Scripted(model) => model,
            Self::OpenAi(model) => model,
            Self::Other(model) => model,
        }
    }
}

/// Opens models, all with one client.
pub(super) struct Opener {
    budget: Arc<Budget>,
    timeout: Duration,
    pub(super) prices: PriceTable,
    client: Option<Arc<Client>>,
    pub(super) keyless: Vec<Keyless>,
    /// The host that the key without a host in its name goes to.
    keyed: Option<String>,
}

impl Opener {
    pub(super) fn new(budget: Arc<Budget>, timeout: Duration, prices: PriceTable) -> Self {
        Self { budget, timeout, prices, client: None, keyless: Vec::new(), keyed: None }
    }

    pub(super) fn open(&mut self, name: &str) -> Result<Opened, Failure> {
        let spec = ModelSpec::parse(name)
            .map_err(|error| Failure::user(error.to_string()).code("model").hint(SpecError::hint()))?;
        let (wire, model) = match &spec {
            ModelSpec::Scripted(path) => {
                let script = ScriptFile::open(path).map_err(|error| {
                    Failure::user(format!("cannot use the script {error}")).code("model").hint(
                        "a line is `{\"answer\": …}`, with `request` (a hash) or `contains` (a text) where it answers one question only",
                    )
                })?;
                return Ok(Opened::Scripted(Arc::new(script)));
            }
            ModelSpec::Remote { wire, model, .. } => (*wire, model),
        };
        let Some(identity) = spec.identity(self.prices.family(model)) else {
            return Err(Failure::user(format!("`{name}` names no model")).code("model"));
        };
        let variables = key_variables(&identity);
        let found = variables.iter().find_map(|name| Some((name, variable(name)?)));
        if let Some(host) =
            identity.host_name().filter(|_| found.as_ref().is_some_and(|(name, _)| *name == ANY_KEY))
        {
            self.only_host_of_key(host, &variables)?;
        }
        let key = found.map(|(_, key)| key);
        if let Some(host) = identity.host_name().filter(|_| key.is_none() && !identity.is_local())
            && self.keyless.iter().all(|known| known.host != host)
        {
            self.keyless.push(Keyless { host: host.to_owned(), variables });
        }
        let client = self.client()?;
        Ok(match wire {
            Wire::OpenAi => Opened::OpenAi(Arc::new(OpenAiModel::new(identity, key, client))),
            Wire::OpenAiResponses => Opened::Other(Arc::new(ResponsesModel::new(identity, key, client))),
            Wire::Anthropic => Opened::Other(Arc::new(AnthropicModel::new(identity, key, client))),
        })
    }

    /// # Errors
    /// Where the key that names no host would go to two: nobody said that it is both's.
    fn only_host_of_key(&mut self, host: &str, variables: &[String]) -> Result<(), Failure> {
        let other = self.keyed.get_or_insert_with(|| host.to_owned());
        if other == host {
            return Ok(());
        }
        let own = variables.iter().find(|name| *name != ANY_KEY).map_or(ANY_KEY, String::as_str);
        Err(Failure::user(format!(
            "`{ANY_KEY}` is the key of one host, and both {other} and {host} would get it"
        ))
        .code("key")
        .hint(format!("set `{own}` to the key of {host}, or one like it to that of {other}")))
    }

    fn client(&mut self) -> Result<Arc<Client>, Failure> {
        if let Some(client) = &self.client {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(Client::new(Arc::clone(&self.budget), self.timeout, http_proxy())?);
        self.client = Some(Arc::clone(&client));
        Ok(client)
    }
}

/// The proxy for hosts that are not this machine, where the environment names one.
pub(crate) fn http_proxy() -> Option<Secret<String>> {
    ["HTTPS_PROXY", "https_proxy"].iter().find_map(|name| variable(name))
}

/// The key for an address, where the environment holds one.
pub(crate) fn key_of(wire: Wire, base_url: &str) -> Option<Secret<String>> {
    let spec = ModelSpec::Remote { wire, base_url: base_url.to_owned(), model: String::new() };
    key_variables(&spec.identity(None)?).iter().find_map(|name| variable(name))
}

/// Providers that answer nobody without a key, with the variable that it is read from.
const PROVIDERS: [(&str, &str); 2] =
    [("api.openai.com", "OPENAI_API_KEY"), ("api.anthropic.com", "ANTHROPIC_API_KEY")];

/// The variable with the key of the one host that has no variable of its own.
const ANY_KEY: &str = "RECOUP_API_KEY";

/// The variables that hold the key for a host, the first that is set counting: the provider's own, else
/// `RECOUP_API_KEY_<HOST>` and `RECOUP_API_KEY`.
fn key_variables(identity: &ModelIdentity) -> Vec<String> {
    let Some(name) = identity.host_name() else { return Vec::new() };
    if let Some((_, own)) = PROVIDERS.iter().find(|(host, _)| *host == name) {
        return vec![(*own).to_owned()];
    }
    let word: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    vec![format!("{ANY_KEY}_{word}"), ANY_KEY.to_owned()]
}

fn variable(name: &str) -> Option<Secret<String>> {
    std::env::var(name)
        .ok()
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .map(Secret::new)
}

pub(super) fn read_prices(path: Option<&Path>) -> Result<PriceTable, Failure> {
    let Some(path) = path else { return Ok(PriceTable::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::user(format!("cannot read prices `{}`: {error}", path.display())).code("prices")
    })?;
    PriceTable::parse(&text).map_err(|error| {
        Failure::user(format!("`{}`: {error}", path.display())).code("prices").hint(PriceTableError::hint())
    })
}

/// A host elsewhere that no key is set for.
pub(super) struct Keyless {
    pub(super) host: String,
    variables: Vec<String>,
}

impl Keyless {
    /// Whether the host is known to answer nobody without a key.
    pub(super) fn is_refused(&self) -> bool {
        PROVIDERS.iter().any(|(host, _)| *host == self.host)
    }

    pub(super) fn variables(&self) -> String {
        self.variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
    }
}
