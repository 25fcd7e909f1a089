//! Batches of a provider: OpenAI's `/v1/batches`.
//!
//! A batch is named by the hash of its questions, and the name travels with it: a command that was stopped
//! between sending a batch and hearing its id finds it again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::cached::{Kept, ReplyCache};
use super::deferred::{BatchLog, Defer, OpenBatch, UnderWay};
use super::http::{ANSWER_MAX, JSON, Received};
use super::openai::OpenAiModel;
use super::{ChatModel as _, ChatRequest, ModelError, Price};
use crate::id::{Hash, TrajectoryId};

/// Questions and bytes of one batch; OpenAI takes 50,000 and 200 MB.
const QUESTIONS_MAX: usize = 20_000;
const BYTES_MAX: usize = 64 << 20;
/// Greatest length of the answers in a batch, in bytes.
const FILE_MAX: usize = 512 << 20;
/// Separates the parts of an upload; JSON lines never start with it.
const BOUNDARY: &str = "----recoup-batch-3d1f0c";

/// What became of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Landed {
    /// Answers that came.
    pub answers: u64,
    /// Questions that the provider did not answer; they may be asked again.
    pub failed: u64,
    /// Batches that the provider still works on.
    pub open: u64,
}

struct Queued {
    question: UnderWay,
    line: String,
}

/// Collects questions to a model and sends them together.
pub struct ProviderBatch {
    model: Arc<OpenAiModel>,
    price: Option<Price>,
    log: Arc<dyn BatchLog>,
    queue: Mutex<BTreeMap<Hash, Queued>>,
}

impl ProviderBatch {
    /// An empty one.
    pub fn new(model: Arc<OpenAiModel>, price: Option<Price>, log: Arc<dyn BatchLog>) -> Self {
        Self { model, price, log, queue: Mutex::default() }
    }

    /// Keeps the answers of batches that are done.
    ///
    /// # Errors
    /// Where the provider cannot be asked for them; what came before is kept.
    pub fn collect(&self, cache: &dyn ReplyCache) -> Result<Landed, ModelError> {
        let identity = self.model.identity();
        let mut landed = Landed::default();
        for batch in self.log.open(&identity.base_url, &identity.model)? {
            let OpenBatch { name, id } = batch;
            let state = if let Some(id) = id {
                self.get::<Batch>(&format!("batches/{}", word(&id)))?
            } else if let Some(found) = self.find(&name)? {
                self.log.sent(&name, &found.id)?;
                found
            } else {
                // It was never sent.
                self.log.end(&name)?;
                continue;
            };
            if !matches!(state.status.as_str(), "completed" | "failed" | "expired" | "cancelled") {
                landed.open += 1;
                continue;
            }
            let questions = self.log.questions(&name)?;
            let asked = questions.len() as u64;
            let answers = self.keep(&state, questions, cache)?;
            landed.answers += answers;
            landed.failed += asked.saturating_sub(answers);
            self.log.end(&name)?;
        }
        Ok(landed)
    }

    /// Sends what was deferred; returns how many questions that were.
    ///
    /// # Errors
    /// Where the provider does not take them.
    pub fn submit(&self) -> Result<u64, ModelError> {
        let queued = std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner));
        let mut sent = 0;
        let mut rest: Vec<Queued> = queued.into_values().collect();
        while !rest.is_empty() {
            let mut bytes = 0;
            let mut fits = |queued: &Queued| {
                bytes += queued.line.len() + 1;
                bytes <= BYTES_MAX
            };
            let count =
                rest.iter().take(QUESTIONS_MAX).map_while(|queued| fits(queued).then_some(())).count();
            let later = rest.split_off(count.max(1));
            sent += rest.len() as u64;
            self.send(&rest)?;
            rest = later;
        }
        Ok(sent)
    }

    fn send(&self, queued: &[Queued]) -> Result<(), ModelError> {
        let identity = self.model.identity();
        let mut lines = String::new();
        for question in queued {
            lines.push_str(&question.line);
            lines.push('\n');
        }
        let name = Hash::of(lines.as_bytes());
        let questions: Vec<UnderWay> = queued.iter().map(|queued| queued.question.clone()).collect();
        self.log.begin(&name, &identity.base_url, &identity.model, &questions)?;
        let sent = self.upload(&lines).and_then(|file| {
            let body = json!({
                "input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h",
                "metadata": { "recoup": name.to_string() },
            });
            let body = body.to_string().into_bytes();
            self.read::<Batch>(&self.model.send("batches", JSON, Some(body), ANSWER_MAX)?)
        });
        match sent {
            Ok(batch) => self.log.sent(&name, &batch.id),
            Err(error) => {
                // Where the provider has refused it, there is nothing to look for later.
                if matches!(error, ModelError::Status { .. } | ModelError::Unreachable { .. }) {
                    self.log.end(&name)?;
                }
                Err(error)
            }
        }
    }

    fn upload(&self, lines: &str) -> Result<File, ModelError> {
        let body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
             --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"recoup.jsonl\"\r\n\
             Content-Type: application/jsonl\r\n\r\n{lines}\r\n--{BOUNDARY}--\r\n"
        );
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        self.read(&self.model.send("files", &kind, Some(body.into_bytes()), ANSWER_MAX)?)
    }

    /// The batch with a name, where the provider has one.
    fn find(&self, name: &Hash) -> Result<Option<Batch>, ModelError> {
        let list: List = self.get("batches?limit=100")?;
        let wanted = name.to_string();
        let named =
            |batch: &Batch| batch.metadata.as_ref().is_some_and(|metadata| metadata["recoup"] == *wanted);
        Ok(list.data.into_iter().find(named))
    }

    /// Keeps the answers in a batch's file; returns how many there are.
    fn keep(
        &self,
        batch: &Batch,
        questions: Vec<UnderWay>,
        cache: &dyn ReplyCache,
    ) -> Result<u64, ModelError> {
        let Some(file) = &batch.output_file_id else { return Ok(0) };
        let file = word(file);
        let mut open: BTreeMap<Hash, UnderWay> =
            questions.into_iter().map(|question| (question.key, question)).collect();
        let received = self.model.send(&format!("files/{file}/content"), JSON, None, FILE_MAX)?;
        // The batch is there and its answers are gone: its questions may be asked again.
        if matches!(received.status, 404 | 410) {
            return Ok(0);
        }
        if received.status != 200 {
            return self.read::<Value>(&received).map(|_| 0);
        }
        let mut kept = 0;
        for line in received.body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            // A line that cannot be read is a question without an answer.
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            let question = Hash::from_hex(&line.custom_id).and_then(|key| open.remove(&key));
            let (Some(question), Some(response)) = (question, line.response) else { continue };
            if response.status_code != 200 {
                continue;
            }
            let Ok(reply) = self.model.read_completion(response.body) else { continue };
            let usage = reply.usage.unwrap_or_default();
            cache.put(&Kept {
                key: &question.key,
                run: question.run,
                stage: &question.stage,
                model: &self.model.identity().model,
                reply: &reply,
                usage,
                cost: self.price.map(|price| price.of(usage)),
            })?;
            kept += 1;
        }
        Ok(kept)
    }

    fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        self.read(&self.model.send(path, JSON, None, ANSWER_MAX)?)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, received: &Received) -> Result<T, ModelError> {
        answer::read(self.model.identity().host().unwrap_or_default(), received)
    }
}

impl Defer for ProviderBatch {
    fn defer(
        &self,
        key: Hash,
        request: &ChatRequest,
        stage: &str,
        run: Option<TrajectoryId>,
    ) -> Result<(), ModelError> {
        let line = json!({
            "custom_id": key.to_string(), "method": "POST", "url": "/v1/chat/completions",
            "body": self.model.body(request),
        });
        let question = UnderWay { key, stage: stage.to_owned(), run };
        let queued = Queued { question, line: line.to_string() };
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).insert(key, queued);
        Ok(())
    }

    fn is_under_way(&self, key: &Hash) -> Result<bool, ModelError> {
        let queued = self.queue.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key);
        Ok(queued || self.log.holds(key)?)
    }
}

/// An id as a part of a path: a provider's ids are letters, digits, `-` and `_`.
fn word(id: &str) -> String {
    id.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect()
}

#[derive(Deserialize)]
struct File {
    id: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    data: Vec<Batch>,
}

#[derive(Deserialize)]
struct Batch {
    id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    output_file_id: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Line {
    custom_id: String,
    #[serde(default)]
    response: Option<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    status_code: u16,
    body: Value,
}
