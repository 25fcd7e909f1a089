//! What only events tell: how calls ended, how many tokens a response took, that a turn was aborted.

use serde::Deserialize;

use super::session::Session;
use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::json::Json;
use crate::trajectory::Usage;

/// Events whose content stands in response items too.
const DUPLICATES: [&str; 12] = [
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "exec_command_begin",
    "item_completed",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "task_complete",
    "task_started",
    "user_message",
];

/// What an event tells of a call's end.
pub(super) struct Exit {
    pub(super) code: Option<i64>,
    pub(super) failed: Option<bool>,
}

/// Tokens as the source counts them; cached and reasoning tokens are among input and output.
#[derive(Clone, Copy, Deserialize, PartialEq)]
pub(super) struct Tokens {
    #[serde(default, rename = "input_tokens")]
    input: u64,
    #[serde(default, rename = "cached_input_tokens")]
    cached: u64,
    #[serde(default, rename = "output_tokens")]
    output: u64,
    #[serde(default, rename = "reasoning_output_tokens")]
    reasoning: u64,
}

impl Session {
    /// Takes an event in.
    pub(super) fn event(&mut self, mut fields: Object<'_>) -> Result<(), RecordError> {
        let kind: String = fields.required("type")?;
        match kind.as_str() {
            "exec_command_end" | "patch_apply_end" => {
                let call: String = fields.required("call_id")?;
                let code = fields.optional("exit_code")?;
                let failed = fields.optional::<bool>("success")?.map(|success| !success);
                self.exits.entry(call).or_default().push_back(Exit { code, failed });
            }
            "token_count" => {
                if let Some(info) = fields.take("info") {
                    self.tokens(Object::parse(info, "info")?)?;
                }
            }
            "turn_aborted" => {
                self.open = None;
                self.aborted = Some(fields.optional("reason")?.unwrap_or_default());
            }
            "error" | "stream_error" => {
                let message = fields.optional::<String>("message")?;
                let call = self.end.and_then(|end| self.run.nodes[end].occurrence.call.as_mut());
                match (call, message) {
                    (Some(call), Some(message)) if kind == "error" => call.error = Some(message),
                    (_, message) => {
                        self.run.extra.extend(message.map(|text| (kind, Json::string(&text))));
                    }
                }
            }
            kind if DUPLICATES.contains(&kind) => {
                if kind == "task_started" {
                    self.aborted = None;
                }
                self.told += usize::from(matches!(kind, "user_message" | "agent_message"));
            }
            _ => self.lose(kind, "an event of a kind that recoup does not read"),
        }
        Ok(())
    }

    /// A response's tokens; the same total again is the same count told again.
    fn tokens(&mut self, mut info: Object<'_>) -> Result<(), RecordError> {
        let total: Option<Tokens> = info.optional("total_token_usage")?;
        let last: Option<Tokens> = info.optional("last_token_usage")?;
        if total.is_some() && total == self.total {
            return Ok(());
        }
        self.total = total;
        let open = self.open.take();
        if let (Some(open), Some(last)) = (open, last)
            && let Some(call) = &mut self.run.nodes[open].occurrence.call
        {
            call.usage = Some(Usage {
                input: last.input,
                output: last.output,
                cached: last.cached,
                reasoning: last.reasoning,
            });
        }
        Ok(())
    }
}
