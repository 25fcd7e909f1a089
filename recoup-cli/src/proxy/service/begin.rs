//! The beginning of a turn: its place in a conversation, who acts in it, and the line that says so.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use hyper::header::HeaderMap;
use recoup::importers::recoup_proxy::{Begin, Entry};
use recoup::verdict::Actor;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use crate::proxy::Proxy;
use crate::proxy::conversations::{Asking, Durable};
use crate::proxy::fingerprint::Fingerprint;
use crate::proxy::journal::Line;
use crate::proxy::request::TurnRequest;
use crate::proxy::sharing::Sharing;
use crate::proxy::turn::{Ending, Turn};

/// Longest value of one of the proxy's own headers, in bytes.
const NAME_MAX: usize = 256;
/// The header that says how often a client of OpenAI or Anthropic has tried already.
const RETRIES: &str = "x-stainless-retry-count";

/// Places a request and writes it down; gives what must be on the disk before it is forwarded, too.
pub(super) fn begin(
    proxy: &Arc<Proxy>,
    headers: &HeaderMap,
    scope: Fingerprint,
    read: &TurnRequest<'_>,
    permit: OwnedSemaphorePermit,
    started: Instant,
) -> Result<(Turn, Vec<watch::Receiver<Durable>>), String> {
    let own = |name: &str| own_header(headers, name);
    let session = own("x-recoup-session")?;
    let task = own("x-recoup-task")?;
    let episode = own("x-recoup-episode")?
        .map(|text| text.parse::<u64>().map_err(|_| "`x-recoup-episode` is no number".to_owned()))
        .transpose()?;
    let again = headers.get(RETRIES).is_some_and(|count| count != "0");
    let shown = proxy.seen.show(read.api, read.messages.iter().map(|raw| &**raw));
    let held_out =
        proxy.sharing.as_ref().and_then(|_| Sharing::holds_out(&proxy.project, task, &read.messages));
    let asking = Asking {
        api: read.api,
        scope,
        held_out,
        session,
        again,
        previous: read.previous.as_deref(),
        now: proxy.now_millis(),
    };
    let tools = read.tools.map(|tools| Fingerprint::of(&[tools.get().as_bytes()]));
    let parameters = read.parameters();
    // Held until the line is on its way: the log has the order of its numbers.
    let mut conversations = proxy.conversations();
    let place = conversations.place(&asking, &shown, tools);
    let messages: Vec<&RawValue> = read.messages.iter().skip(place.known).map(|raw| &**raw).collect();
    let last = match messages.len() {
        0 => place.parent,
        count => Some(place.first + count as u32 - 1),
    };
    let sharing = proxy
        .sharing
        .as_ref()
        // Of a session that goes over to a task that is held out, nothing more is taught.
        .filter(|_| {
            !conversations.holds_out(place.id, || held_out.unwrap_or(false)) && held_out != Some(true)
        });
    let actor = sharing.map_or(Actor::Student, |sharing| sharing.actor(&place, task, session, episode));
    let teacher = proxy.teachers.as_ref().and_then(|teachers| teachers.of(read.api));
    let harness = headers.get("user-agent").and_then(|value| value.to_str().ok());
    let entry = Begin {
        conversation: Cow::Borrowed(&place.name),
        request: place.request,
        at: proxy.timestamp().into(),
        api: read.api,
        client: format!("{:032x}", scope.0).into(),
        session: session.map(Cow::Borrowed),
        task: task.map(Cow::Borrowed),
        episode,
        harness: harness.filter(|name| name.len() <= NAME_MAX).map(Cow::Borrowed),
        actor,
        ordinal: place.ordinal,
        sharing: sharing.zip(teacher).map(|(sharing, teacher)| sharing.recorded(&teacher.name)),
        turn: place.turn,
        parent: place.parent,
        first: place.first,
        messages,
        tools: read.tools.filter(|_| place.tools_changed),
        parameters: parameters.as_deref(),
    };
    let line = Entry::Begin(entry).to_line().map_err(|error| error.to_string())?;
    let (told, written) = oneshot::channel();
    proxy.append(Line {
        conversation: place.id,
        request: Some(place.request),
        bytes: line,
        written: Some(told),
        durable: None,
    });
    drop(conversations);
    let waits = place.waits.clone();
    let turn = Turn {
        proxy: Arc::clone(proxy),
        api: read.api,
        place,
        scope,
        last,
        actor,
        shared: sharing.is_some(),
        ending: Arc::new(Ending::new(sharing.is_some() && actor == Actor::Student)),
        started,
        permit: Some(permit),
        hold: None,
        written,
        lost: false,
        ended: false,
    };
    Ok((turn, waits))
}

/// The value of one of the proxy's own headers.
pub(super) fn own_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if !text.is_empty() && text.len() <= NAME_MAX => Ok(Some(text)),
        _ => Err(format!("`{name}` is a text of 1 to {NAME_MAX} bytes")),
    }
}
