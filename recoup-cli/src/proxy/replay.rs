//! The journal, read again at the start: its conversations go on.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use recoup::importers::recoup_proxy::{Api, Entry};

use super::conversations::{ConversationId, Conversations, Given, Restored, Shown};
use super::fingerprint::{Fingerprint, show};
use super::journal::{Journal, each_line};

/// A request whose answer may stand further on.
struct Begun {
    id: ConversationId,
    api: Api,
    scope: Fingerprint,
    last: Option<u32>,
}

/// Takes over what the files of a journal hold; returns how many conversations that is. What is no entry
/// is left where it stands.
pub(super) fn replay(
    folder: &Path,
    segments: &[u64],
    journal: &Journal,
    conversations: &mut Conversations,
) -> io::Result<usize> {
    let mut ids: HashMap<String, ConversationId> = HashMap::new();
    let mut begun: HashMap<(String, u32), Begun> = HashMap::new();
    for segment in segments {
        each_line(folder, *segment, |line, location| {
            let Ok(entry) = Entry::parse(line) else { return };
            let name = entry.conversation().to_owned();
            match &entry {
                Entry::Begin(begin) => {
                    let shown: Vec<Shown> = begin.messages.iter().map(|raw| show(begin.api, raw)).collect();
                    let scope = u128::from_str_radix(&begin.client, 16)
                        .map_or_else(|_| Fingerprint::of(&[begin.client.as_bytes()]), Fingerprint);
                    let restored = Restored {
                        name: &name,
                        api: begin.api,
                        scope,
                        session: begin.session.as_deref(),
                        request: begin.request,
                        parent: begin.parent,
                        first: begin.first,
                        ordinal: begin.ordinal,
                    };
                    let id = conversations.restore(&restored, &shown);
                    let last = match shown.len() {
                        0 => begin.parent,
                        count => Some(begin.first.saturating_add(count as u32 - 1)),
                    };
                    ids.insert(name.clone(), id);
                    begun.insert((name.clone(), begin.request), Begun { id, api: begin.api, scope, last });
                }
                Entry::End(end) => {
                    if let Some(Begun { id, api, scope, last }) = begun.remove(&(name.clone(), end.request)) {
                        let shown: Vec<Vec<Shown>> = end
                            .answers
                            .iter()
                            .map(|answer| answer.iter().map(|raw| show(api, raw)).collect())
                            .collect();
                        let first = Some(end.first);
                        let id_there = end.id.as_deref();
                        let given = Given { last, first, alternatives: &shown, id: id_there, scope, now: 0 };
                        conversations.answer(id, &given);
                    }
                }
                Entry::Label(_) | Entry::Outcome(_) => {}
            }
            if let Some(id) = ids.get(&name) {
                journal.adopt(*id, location);
            }
        })?;
    }
    Ok(ids.len())
}
