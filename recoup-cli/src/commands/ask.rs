//! `recoup ask`: one question or many, to see whether and how a model answers.

use std::path::Path;

use recoup::answers::{ModelAnswer, NumberedAnswer, Questioned};
use recoup::json::Json;
use recoup::models::{
    AGAIN_BYTES, About, ChatMessage, ChatModel as _, ChatRequest, Estimate, Fitted, ModelError, ReplySchema,
    fitting,
};
use serde::Deserialize;

use super::project;
use crate::Ended;
use crate::args::AskArgs;
use crate::failure::Failure;
use crate::models::{Decision, Models};
use crate::printer::Printer;
use crate::settings::Settings;

/// The stage that answers are kept under.
const STAGE: &str = "ask";

/// Asks a model.
pub(crate) fn ask(flags: &AskArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let schema = flags.schema.as_deref().map(read_schema).transpose()?;
    let request = |prompt: &str, system: Option<&str>| {
        let system = system.or(flags.system.as_deref()).map(ChatMessage::system);
        let messages = system.into_iter().chain([ChatMessage::user(prompt)]).collect();
        ChatRequest {
            schema: schema.clone(),
            temperature: flags.temperature,
            ..ChatRequest::new(messages, flags.max_answer)
        }
    };
    let (requests, store) = match (&flags.prompts, &flags.prompt) {
        (Some(path), _) => {
            let questions = read_prompts(path)?;
            let requests = questions.iter().map(|it| request(&it.prompt, it.system.as_deref())).collect();
            (requests, Some(project::create_or_open(settings)?))
        }
        (None, prompt) => (vec![request(prompt.as_deref().unwrap_or_default(), None)], None),
    };
    let names = [flags.model.clone()];
    let spend = settings.models.spending(&flags.spend);
    let models = Models::open(&names, &spend, settings, store.as_ref(), printer)?;
    let Some(model) = models.asking.models().first() else { return Ok(Ended::Done) };
    let mut estimate = Estimate::default();
    for request in &requests {
        estimate.add(model, request, None)?;
        if schema.is_some() {
            estimate.add_again(model, request, 1, AGAIN_BYTES);
        }
    }
    if models.announce(&estimate, &spend, settings, printer)? == Decision::Shown {
        return Ok(Ended::Done);
    }
    let about = model.about(STAGE, None);
    match (&flags.prompts, &requests[..]) {
        (None, [request]) => one(&models, &about, request, settings, printer),
        _ => many(&models, &about, &requests, settings, printer),
    }
}

/// One question, asked anew every time: a look at the endpoint.
fn one(
    models: &Models,
    model: &About,
    request: &ChatRequest,
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let Fitted { reply, wrong } = fitting(model, request)?;
    if printer.is_json() {
        let lines = models.asking.ledger().lines();
        let line = lines.first();
        printer.json(&settings.answer(ModelAnswer {
            model: &model.identity().model,
            answered_by: &reply.model,
            text: &reply.text,
            wrong: wrong.as_deref(),
            reasoning: reply.reasoning.as_deref(),
            finish: reply.finish,
            usage: reply.usage,
            cost_usd: line.and_then(|line| line.cost_usd),
            latency_ms: line.map_or(0, |line| line.latency_ms.max),
        }));
    } else {
        printer.line(recoup::visible::visible_controls(&reply.text));
    }
    models.finish(printer)?;
    let Some(wrong) = wrong else { return Ok(Ended::Done) };
    printer.warn(format_args!("the answer does not fit the schema: {wrong}"));
    Ok(Ended::Partly)
}

/// Many questions, whose answers are kept.
fn many(
    models: &Models,
    model: &About,
    requests: &[ChatRequest],
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let asking = &models.asking;
    let (mut failed, mut pending, mut unfit) = (0, 0, 0);
    asking.each(
        requests,
        |request| fitting(model, request),
        |index, answer| {
            match &answer {
                Ok(Fitted { wrong, .. }) => unfit += u64::from(wrong.is_some()),
                Err(ModelError::Pending { .. }) => pending += 1,
                Err(_) => failed += 1,
            }
            let reply = answer.as_ref().ok().map(|fitted| &fitted.reply);
            printer.json(&NumberedAnswer {
                index,
                text: reply.map(|reply| reply.text.as_str()),
                wrong: answer.as_ref().ok().and_then(|fitted| fitted.wrong.as_deref()),
                finish: reply.map(|reply| reply.finish),
                error: answer.as_ref().err().map(ToString::to_string),
            });
        },
    );
    let (calls, cached) = asking.ledger().calls();
    if printer.is_json() {
        printer.json(&settings.answer(Questioned {
            prompts: requests.len() as u64,
            failed,
            unfit,
            pending,
            calls,
            cached,
            spent: asking.budget().spent(),
            ledger: asking.ledger().lines(),
        }));
    }
    models.finish(printer)?;
    if failed > 0 {
        printer.warn(format_args!("{failed} questions have no answer; the same command asks them again"));
    }
    if unfit > 0 {
        printer.warn(format_args!("{unfit} answers do not fit the schema, each asked for twice"));
    }
    Ok(if failed + unfit > 0 { Ended::Partly } else { Ended::Done })
}

/// A line of a file of questions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    prompt: String,
    #[serde(default)]
    system: Option<String>,
}

fn read_prompts(path: &Path) -> Result<Vec<Question>, Failure> {
    let fail =
        |message: String| Failure::user(format!("questions `{}`: {message}", path.display())).code("prompts");
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let mut questions = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let question = if line.trim_start().starts_with('"') {
            serde_json::from_str(line).map(|prompt| Question { prompt, system: None })
        } else {
            serde_json::from_str(line)
        };
        questions.push(question.map_err(|error| {
            fail(format!("line {}: {error}", index + 1))
                .hint("a line is a JSON text or `{\"prompt\", \"system\"?}`")
        })?);
    }
    Ok(questions)
}

fn read_schema(path: &Path) -> Result<ReplySchema, Failure> {
    let fail =
        |message: String| Failure::user(format!("schema `{}`: {message}", path.display())).code("schema");
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let schema = Json::parse(&text).map_err(|error| fail(error.to_string()))?;
    Ok(ReplySchema { name: "answer".to_owned(), schema })
}
