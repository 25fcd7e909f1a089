//! The proxy's own endpoint: how a task ended, as its harness knows.

use std::borrow::Cow;

use hyper::StatusCode;
use recoup::importers::recoup_proxy::{Entry, Outcome};
use recoup::trajectory::Status;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Proxy;
use super::conversations::Durable;
use super::fingerprint::Fingerprint;
use super::fold::Order;
use super::journal::Line;

/// What a harness says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    /// The session's name, where no header says it, or the conversation's in the project.
    session: Option<String>,
    outcome: Option<String>,
    success: Option<bool>,
    score: Option<f64>,
}

type Refused = (StatusCode, &'static str, String);

/// Attaches an outcome, and puts the conversation into the project.
pub(super) async fn outcome(
    proxy: &Proxy,
    scope: Fingerprint,
    session: Option<&str>,
    body: &[u8],
) -> Result<Value, Refused> {
    let bad = |message: String| (StatusCode::BAD_REQUEST, "bad-request", message);
    let said: Said = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    let name = session.or(said.session.as_deref());
    let name =
        name.ok_or_else(|| bad("name the session: `session`, or the header `x-recoup-session`".to_owned()))?;
    let status = status(&said).map_err(bad)?;
    let found = proxy.conversations().named(scope, name);
    let Some((id, conversation)) = found else {
        return Err((StatusCode::NOT_FOUND, "no-session", format!("there is no session `{name}`")));
    };
    let entry = Outcome {
        conversation: Cow::Borrowed(&conversation),
        at: proxy.timestamp().into(),
        status,
        score: said.score,
    };
    let line = Entry::Outcome(entry).to_line().map_err(|error| bad(error.to_string()))?;
    let (durable, mut state) = tokio::sync::watch::channel(Durable::NotYet);
    proxy.append(Line {
        conversation: id,
        request: None,
        bytes: line,
        written: None,
        durable: Some(durable),
    });
    let disk = |message: String| (StatusCode::SERVICE_UNAVAILABLE, "disk", message);
    let state =
        state.wait_for(|state| *state != Durable::NotYet).await.is_ok_and(|state| *state == Durable::Yes);
    if !state {
        return Err(disk("the outcome cannot be written to the disk".to_owned()));
    }
    let (done, folded) = oneshot::channel();
    proxy.folding.send(Order::Fold(id, done));
    match folded.await {
        Ok(Ok(())) => Ok(json!({ "session": &*conversation, "outcome": status.as_str() })),
        // It is in the journal, and is put in later.
        Ok(Err(why)) => Err(disk(why)),
        Err(_) => Err(disk("the proxy is ending".to_owned())),
    }
}

fn status(said: &Said) -> Result<Status, String> {
    match (said.outcome.as_deref(), said.success, said.score) {
        (Some("success"), None | Some(true), _) | (None, Some(true), _) => Ok(Status::Success),
        (Some("failure"), None | Some(false), _) | (None, Some(false), _) => Ok(Status::Failure),
        (Some("unknown"), None, _) => Ok(Status::Unknown),
        (Some(_), ..) => Err("`outcome` is `success`, `failure` or `unknown`".to_owned()),
        (None, None, Some(score)) if score.is_finite() => {
            Ok(if score >= 1.0 { Status::Success } else { Status::Failure })
        }
        (None, None, _) => Err("say `outcome`, `success` or `score`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Said, Status, status};

    #[test]
    fn an_outcome_is_said_in_one_of_three_ways() {
        let read = |text: &str| status(&serde_json::from_str::<Said>(text).unwrap());
        assert_eq!(read(r#"{"outcome":"failure","score":0.2}"#), Ok(Status::Failure));
        assert_eq!(read(r#"{"success":true}"#), Ok(Status::Success));
        assert_eq!(read(r#"{"score":0.5}"#), Ok(Status::Failure));
        assert!(read(r#"{"outcome":"success","success":false}"#).is_err());
        assert!(read("{}").is_err());
    }
}
