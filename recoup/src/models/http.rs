//! HTTP, as providers are asked: one runtime on a thread of its own, and calls that block until the whole
//! answer is there.
//!
//! No redirect is followed, so a key goes to the host it was given for and to no other. An answer has a
//! greatest length and a latest time. A key that a server sends back is struck out before anyone reads it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use tokio::sync::mpsc;

use super::{Budget, ModelError, Secret, http_date};

/// Greatest length of a model's answer, in bytes.
pub(super) const ANSWER_MAX: usize = 16 << 20;
/// The content type of JSON.
pub(super) const JSON: &str = "application/json";
/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept: less than servers keep theirs.
const IDLE: Duration = Duration::from_secs(20);

/// A request to a provider.
pub(super) struct Sending {
    /// Host, for messages.
    pub(super) host: String,
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, Secret<String>)>,
    pub(super) content_type: String,
    /// What is posted; without it the URL is got.
    pub(super) body: Option<Vec<u8>>,
    /// Greatest length of the answer, in bytes.
    pub(super) answer_max: usize,
}

/// A whole answer, whatever its status.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) location: Option<String>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) body: Vec<u8>,
}

struct Job {
    sending: Sending,
    timeout: Duration,
    reply: blocking::SyncSender<Result<Received, ModelError>>,
}

/// Asks providers, for any number of threads.
pub struct Client {
    jobs: mpsc::UnboundedSender<Job>,
    budget: Arc<Budget>,
    timeout: Duration,
}

impl Client {
    /// Starts the thread. No request takes longer than `timeout` or outlives the budget's time; `proxy` is for hosts that are not this
    /// machine, as a URL.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] where the system gives none.
    pub fn new(
        budget: Arc<Budget>,
        timeout: Duration,
        proxy: Option<Secret<String>>,
    ) -> Result<Self, ModelError> {
        let failed =
            |error: std::io::Error| ModelError::Unsupported(format!("no thread to ask models: {error}"));
        let (jobs, inbox) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let worker = Worker { proxy, clients: BTreeMap::new() };
        std::thread::Builder::new()
            .name("models".to_owned())
            .spawn(move || runtime.block_on(worker.serve(inbox)))
            .map_err(failed)?;
        Ok(Self { jobs, budget, timeout })
    }

    /// Sends a request and waits for the whole answer.
    pub(super) fn send(&self, sending: Sending) -> Result<Received, ModelError> {
        let timeout = self.budget.time_left().map_or(self.timeout, |left| left.min(self.timeout));
        let host = sending.host.clone();
        let (reply, answer) = blocking::sync_channel(1);
        let gone = || ModelError::Unsupported(format!("{host}: the thread that asks models has ended"));
        self.jobs.send(Job { sending, timeout, reply }).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

struct Worker {
    proxy: Option<Secret<String>>,
    /// A client that verifies certificates, and one that meets none: a machine without certificates can
    /// still ask a server of its own.
    clients: BTreeMap<bool, reqwest::Client>,
}

impl Worker {
    async fn serve(mut self, mut inbox: mpsc::UnboundedReceiver<Job>) {
        while let Some(Job { sending, timeout, reply }) = inbox.recv().await {
            match self.client(&sending) {
                Ok(client) => {
                    tokio::spawn(async move {
                        let host = sending.host.clone();
                        let answer = tokio::time::timeout(timeout, exchange(client, sending)).await;
                        let late = ModelError::Timeout { host, seconds: timeout.as_secs_f64().ceil() as u64 };
                        // Whoever asked may have gone.
                        let _ = reply.send(answer.unwrap_or(Err(late)));
                    });
                }
                Err(error) => {
                    let _ = reply.send(Err(error));
                }
            }
        }
    }

    fn client(&mut self, sending: &Sending) -> Result<reqwest::Client, ModelError> {
        let secure = sending.url.starts_with("https://");
        if let Some(client) = self.clients.get(&secure) {
            return Ok(client.clone());
        }
        let client = http_client(secure, self.proxy.as_ref())
            .map_err(|error| ModelError::Unsupported(format!("no HTTP client: {}", causes(&error))))?;
        self.clients.insert(secure, client.clone());
        Ok(client)
    }
}

/// An HTTP client as models are asked with: no redirect is followed and the environment names no proxy.
/// `secure` ones verify certificates; the others ask over plain HTTP only. `proxy` is for hosts that are
/// not this machine, as a URL.
///
/// # Errors
/// When the system's certificates cannot be read or the proxy is no URL.
pub fn http_client(secure: bool, proxy: Option<&Secret<String>>) -> Result<reqwest::Client, reqwest::Error> {
    // A provider that is installed already is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("recoup/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .no_proxy();
    if let Some(proxy) = proxy {
        let here = reqwest::NoProxy::from_string("localhost,127.0.0.0/8,::1");
        builder = builder.proxy(reqwest::Proxy::all(proxy.reveal())?.no_proxy(here));
    }
    if !secure {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

async fn exchange(client: reqwest::Client, sending: Sending) -> Result<Received, ModelError> {
    let Sending { host, url, headers, content_type, body, answer_max } = sending;
    let mut map = HeaderMap::new();
    if let Ok(kind) = HeaderValue::from_str(&content_type) {
        map.insert("content-type", kind);
    }
    for (name, value) in &headers {
        let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| {
            ModelError::Unsupported(format!("{host}: the key holds characters that no header carries"))
        })?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_static(name), value);
    }
    let fail = |error: reqwest::Error| {
        let message = causes(&error.without_url());
        ModelError::Transport { host: host.clone(), message }
    };
    let request = match body {
        Some(body) => client.post(url).body(body),
        None => client.get(url),
    };
    let response = request.headers(map).send().await;
    let mut response = response.map_err(|error| {
        if error.is_builder() {
            ModelError::Unsupported(format!("{host}: {}", causes(&error.without_url())))
        } else if error.is_connect() {
            ModelError::Unreachable { host: host.clone(), message: causes(&error.without_url()) }
        } else {
            fail(error)
        }
    })?;
    let text =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut received = Received {
        status: response.status().as_u16(),
        content_type: text("content-type").unwrap_or_default(),
        location: text("location"),
        retry_after_ms: retry_after_ms(&text),
        body: Vec::new(),
    };
    while let Some(chunk) = response.chunk().await.map_err(fail)? {
        if received.body.len() + chunk.len() > answer_max {
            let message = format!("it has more than {answer_max} bytes");
            return Err(ModelError::Malformed { host, message });
        }
        received.body.extend_from_slice(&chunk);
    }
    for (_, secret) in &headers {
        strike_out(&mut received.body, secret);
        received.location = received.location.map(|place| without(place, secret));
    }
    Ok(received)
}

/// Puts asterisks where a secret stands, with or without the scheme before it.
fn strike_out(body: &mut [u8], secret: &Secret<String>) {
    let value = secret.reveal();
    let key = value.strip_prefix("Bearer ").unwrap_or(value).as_bytes();
    // Anything shorter is no key, and would be struck out of innocent words.
    if key.len() < 8 {
        return;
    }
    let places: Vec<usize> = memchr::memmem::find_iter(body, key).collect();
    for start in places {
        body[start..start + key.len()].fill(b'*');
    }
}

/// A header without a secret.
fn without(text: String, secret: &Secret<String>) -> String {
    let mut bytes = text.into_bytes();
    strike_out(&mut bytes, secret);
    // A key is whole characters, and asterisks are as many.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How long a server asks to wait.
fn retry_after_ms(header: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let milliseconds = |text: String, unit: f64| {
        text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| (number * unit) as u64)
    };
    if let Some(wait) = header("retry-after-ms").and_then(|text| milliseconds(text, 1.0)) {
        return Some(wait);
    }
    let text = header("retry-after")?;
    if let Some(until) = http_date::seconds(text.trim()) {
        // Against the server's own clock, which is all that its date can be compared with.
        let now = header("date").and_then(|date| http_date::seconds(date.trim()))?;
        return u64::try_from(until - now).ok().map(|seconds| seconds * 1000).or(Some(0));
    }
    milliseconds(text, 1000.0)
}

/// An error with its causes, outermost first.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !out.contains(&text) {
            out = format!("{out}: {text}");
        }
        next = cause.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Secret, retry_after_ms, strike_out};

    #[test]
    fn a_wait_is_seconds_milliseconds_or_a_date() {
        let wait = |pairs: &[(&str, &str)]| {
            retry_after_ms(&|name| {
                pairs.iter().find(|(header, _)| *header == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(wait(&[("retry-after", "2")]), Some(2000));
        assert_eq!(wait(&[("retry-after", "1.5")]), Some(1500));
        assert_eq!(wait(&[("retry-after-ms", "20"), ("retry-after", "9")]), Some(20));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), date]), Some(30_000));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT"), date]), Some(0));
        for odd in ["soon", "-3", "NaN", ""] {
            assert_eq!(wait(&[("retry-after", odd)]), None, "{odd}");
        }
    }

    #[test]
    fn a_key_that_comes_back_is_struck_out() {
        let mut body = b"Incorrect API key provided: sk-secret-1234.".to_vec();
        strike_out(&mut body, &Secret::new("Bearer sk-secret-1234".to_owned()));
        assert_eq!(body, b"Incorrect API key provided: **************.");
    }
}
