//! What a log says of its whole evaluation, shared by its samples.

use std::collections::BTreeMap;

use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::json::Json;
use crate::trajectory::Budget;

/// The evaluation that samples belong to.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// Task's name; samples are numbered within it.
    pub task: String,
    /// Model under evaluation.
    pub model: Option<String>,
    /// Version of the package that ran it.
    pub version: Option<String>,
    /// Names of the scorers, where the log lists them.
    pub scorers: Vec<String>,
    /// Limits for each sample.
    pub budget: Option<Budget>,
    /// Seed of the generation.
    pub seed: Option<i64>,
    /// Ids, configuration and dataset of the evaluation, as the log writes them.
    pub extra: BTreeMap<String, Json>,
}

impl Log {
    /// Reads a header: `header.json`, `_journal/start.json`, or a `.json` log without its samples.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut header: Object<'_> = serde_json::from_slice(bytes)?;
        let mut eval = header.object("eval");
        let task = eval.text("task");
        let task = task.ok_or_else(|| RecordError::new("missing-field", "expected a string `eval.task`"))?;
        let config = eval.get("config").and_then(Object::of);
        let mut config = config.unwrap_or_default();
        let budget =
            Budget { steps: None, tokens: config.read("token_limit"), seconds: config.read("time_limit") };
        let generate = eval.get("model_generate_config").and_then(Object::of);
        let scorers = eval.list("scorers").unwrap_or_default();
        let kept = [
            "eval_id",
            "run_id",
            "created",
            "task_id",
            "config",
            "model_generate_config",
            "dataset",
            "task_args",
        ];
        Ok(Self {
            task,
            model: eval.text("model").filter(|model| model != "none/none"),
            version: eval.object("packages").text("inspect_ai"),
            scorers: scorers.into_iter().filter_map(|raw| Object::of(raw)?.text("name")).collect(),
            budget: Some(budget).filter(|budget| *budget != Budget::default()),
            seed: generate.and_then(|mut config| config.read("seed")),
            extra: eval.filled_rest().into_iter().filter(|(key, _)| kept.contains(&key.as_str())).collect(),
        })
    }
}
