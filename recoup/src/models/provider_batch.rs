//! Batches of a provider: OpenAI's `/v1/batches`.
//!
//! A batch is named by the hash of its questions, and the name travels with it: a command that was stopped
//! between sending a batch and hearing its id finds it again. So does the dialect that its questions are written in: what
//! a provider refuses of it is left out of the next batch, as it is where questions are sent one by one. A question that
//! it refuses for another reason gets no answer in this command, and may be sent by the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::cached::{Kept, ReplyCache};
use super::deferred::{BatchLog, Defer, OpenBatch, UnderWay};
use super::http::{ANSWER_MAX, JSON, Received};
use super::openai::OpenAiModel;
use super::{Budget, ChatModel as _, ChatReply, ChatRequest, ModelError, Pacer, Price};
use crate::id::{Hash, TrajectoryId};

/// Questions and bytes of one batch; OpenAI takes 50,000 and 200 MB.
const QUESTIONS_MAX: usize = 20_000;
const BYTES_MAX: usize = 64 << 20;
/// Greatest length of the answers in a batch, in bytes.
const FILE_MAX: usize = 512 << 20;
/// Time that a provider has for a batch.
const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Separates the parts of an upload; JSON lines never start with it.
const BOUNDARY: &str = "----recoup-batch-3d1f0c";

/// What became of batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Landed {
    /// Answers that came.
    pub answers: u64,
    /// Questions that the provider did not answer; they may be asked again.
    pub failed: u64,
    /// Why the first of them has no answer.
    pub reason: Option<String>,
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
    pacer: Arc<Pacer>,
    budget: Arc<Budget>,
    queue: Mutex<BTreeMap<Hash, Queued>>,
    /// Questions that were refused in a batch that has ended.
    refused: Mutex<BTreeMap<Hash, ModelError>>,
}

impl ProviderBatch {
    /// An empty one. `price` is what the provider takes in a batch.
    pub fn new(
        model: Arc<OpenAiModel>,
        price: Option<Price>,
        log: Arc<dyn BatchLog>,
        pacer: Arc<Pacer>,
        budget: Arc<Budget>,
    ) -> Self {
        Self { model, price, log, pacer, budget, queue: Mutex::default(), refused: Mutex::default() }
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
            let (answers, reason) = self.keep(&state, questions, cache)?;
            landed.answers += answers;
            landed.failed += asked.saturating_sub(answers);
            landed.reason = landed.reason.or(reason);
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
            let dialect = self.model.dialect_text();
            let body = json!({
                "input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h",
                "metadata": { "recoup": name.to_string(), "dialect": dialect },
            });
            let body = body.to_string().into_bytes();
            self.paced("batches", || {
                match self.model.send("batches", JSON, Some(body.clone()), ANSWER_MAX) {
                    // It may have been taken: whoever sends it again pays twice.
                    Err(error) if error.may_be_charged() => Ok(Err(error)),
                    received => Ok(Ok(self.read::<Batch>(&received?)?)),
                }
            })?
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
        self.paced("files", || {
            self.read(&self.model.send("files", &kind, Some(body.clone().into_bytes()), ANSWER_MAX)?)
        })
    }

    /// The batch with a name, where the provider has one.
    fn find(&self, name: &Hash) -> Result<Option<Batch>, ModelError> {
        let list: List = self.get("batches?limit=100")?;
        let wanted = name.to_string();
        let named =
            |batch: &Batch| batch.metadata.as_ref().is_some_and(|metadata| metadata["recoup"] == *wanted);
        Ok(list.data.into_iter().find(named))
    }

    /// Keeps the answers in a batch's files; returns how many there are, and why the first of the others is none.
    fn keep(
        &self,
        batch: &Batch,
        questions: Vec<UnderWay>,
        cache: &dyn ReplyCache,
    ) -> Result<(u64, Option<String>), ModelError> {
        let mut open: BTreeMap<Hash, UnderWay> =
            questions.into_iter().map(|question| (question.key, question)).collect();
        let (mut kept, mut reason) = (0, None);
        for file in [&batch.output_file_id, &batch.error_file_id].into_iter().flatten() {
            let body = self.file(file)?;
            for line in body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
                // A line that cannot be read is a question without an answer.
                let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
                let question = Hash::from_hex(&line.custom_id).and_then(|key| open.remove(&key));
                let Some(question) = question else { continue };
                match self.answer(line) {
                    Ok(reply) => {
                        self.put(cache, &question, &reply)?;
                        kept += 1;
                    }
                    Err(error) => {
                        reason.get_or_insert_with(|| error.to_string());
                        let is_passing =
                            matches!(error, ModelError::Status { .. } | ModelError::Timeout { .. })
                                && error.is_retryable();
                        if !is_passing && !self.model.learns(batch.dialect(), &error) {
                            self.refused().insert(question.key, error);
                        }
                    }
                }
            }
        }
        if open.is_empty() {
            return Ok((kept, reason));
        }
        let host = self.model.identity().host().unwrap_or_default();
        match batch.error(host) {
            Some(error) => {
                reason.get_or_insert_with(|| error.to_string());
                self.refused().extend(open.into_keys().map(|key| (key, error.clone())));
            }
            None => {
                reason.get_or_insert_with(|| format!("{host}: the batch is {} without them", batch.status));
            }
        }
        Ok((kept, reason))
    }

    /// What a batch's file holds; nothing where it is gone: its questions may be asked again.
    fn file(&self, id: &str) -> Result<Vec<u8>, ModelError> {
        let path = format!("files/{}/content", word(id));
        self.paced(&path, || {
            let received = self.model.send(&path, JSON, None, FILE_MAX)?;
            match received.status {
                200 => Ok(received.body),
                404 | 410 => Ok(Vec::new()),
                _ => self.read::<Value>(&received).map(|_| Vec::new()),
            }
        })
    }

    /// The answer in a line, or why there is none.
    fn answer(&self, line: Line) -> Result<ChatReply, ModelError> {
        let host = || self.model.identity().host().unwrap_or_default().to_owned();
        match (line.response, line.error) {
            (Some(Answered { status_code: 200, body }), _) => self.model.read_completion(body),
            (Some(Answered { status_code, body }), _) => {
                Err(answer::refused(&host(), status_code, body.to_string().as_bytes()))
            }
            (None, Some(error)) if error["code"] == "batch_expired" => {
                Err(ModelError::Timeout { host: host(), seconds: DAY_SECONDS })
            }
            (None, error) => Err(answer::routed(&host(), &error.unwrap_or_default())),
        }
    }

    fn put(&self, cache: &dyn ReplyCache, question: &UnderWay, reply: &ChatReply) -> Result<(), ModelError> {
        let usage = reply.usage.unwrap_or_default();
        cache.put(&Kept {
            key: &question.key,
            run: question.run,
            stage: &question.stage,
            model: &self.model.identity().model,
            reply,
            usage,
            cost: self.price.map(|price| price.of(usage)),
        })
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<Hash, ModelError>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        self.paced(path, || self.read(&self.model.send(path, JSON, None, ANSWER_MAX)?))
    }

    /// Sends at the provider's pace, and again where that helps.
    fn paced<T>(&self, path: &str, send: impl FnMut() -> Result<T, ModelError>) -> Result<T, ModelError> {
        self.pacer.run(0, Hash::of(path.as_bytes()), &|wait| self.budget.check_time(wait), send)
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
        if let Some(error) = self.refused().get(key) {
            return Err(error.clone());
        }
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
    error_file_id: Option<String>,
    #[serde(default)]
    errors: Option<Value>,
    #[serde(default)]
    metadata: Option<Value>,
}

impl Batch {
    /// The dialect that its questions are written in, as it was noted.
    fn dialect(&self) -> Option<&str> {
        self.metadata.as_ref()?["dialect"].as_str()
    }

    /// Why the provider took it not at all, or gave it up.
    fn error(&self, host: &str) -> Option<ModelError> {
        if !matches!(self.status.as_str(), "failed" | "cancelled") {
            return None;
        }
        let said = self.errors.as_ref().map(|errors| &errors["data"][0]).filter(|first| !first.is_null());
        Some(match said {
            Some(said) => answer::routed(host, said),
            None => ModelError::Unsupported(format!("{host}: the batch is {}", self.status)),
        })
    }
}

#[derive(Deserialize)]
struct Line {
    custom_id: String,
    #[serde(default)]
    response: Option<Answered>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Answered {
    status_code: u16,
    body: Value,
}
