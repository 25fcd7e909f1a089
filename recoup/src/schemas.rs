//! JSON Schemas of everything that recoup writes for programs, made from the types that write it and kept
//! in `docs/schemas/`. `UPDATE_SCHEMAS=1 cargo test -p recoup --lib schemas` writes them again.

use std::fs;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::answers::{
    Blind, CollectPlan, Collected, Exported, ExportedRows, ExportedTasks, Failed, Formats, Found, Labelled,
    Listed, Look, ModelAnswer, NumberedAnswer, Played, Proxied, Proxying, Questioned, ReplayPlanned,
    Replayed, Reviewed, RoundCollected, RoundPlan, Serving, Shown, Watched,
};
use crate::artifact::{Artifact, Body, pretty};
use crate::evaluation::attribution::Attribution;
use crate::exporters::Manifest;
#[cfg(feature = "parquet")]
use crate::exporters::release::Release;
use crate::id::Hash;
use crate::json::Json;
use crate::models::Estimate;
use crate::pipeline::{
    AtifExport, ContentSettings, Diagnosing, Explanation, FlipAgreement, Injecting, Relabeling, Summary,
};
use crate::report::Report;
use crate::store::{ForgetReport, GcReport, Row, Stats, VerifyReport};
use crate::synthesis::admission::Admission;

impl JsonSchema for Hash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "description": "A BLAKE3 hash" })
    }
}

impl JsonSchema for Json {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Any value; its meaning is the source's" })
    }
}

/// The schema of what a type writes.
fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The schema of a body behind its head, which says whose it is.
fn artifact<T: JsonSchema + Body>() -> Schema {
    let mut whole = schema::<Artifact<T>>();
    let of_body = schema::<T>();
    let whole_members = whole.ensure_object();
    if let Some(description) = of_body.get("description") {
        whole_members.insert("description".to_owned(), description.clone());
    }
    whole_members["properties"]["format"] = serde_json::json!({ "const": T::FORMAT });
    whole
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let schemas = [
        ("report", schema::<Report>()),
        ("manifest", schema::<Manifest>()),
        ("settings", artifact::<ContentSettings>()),
        ("export", artifact::<AtifExport>()),
        ("summary", artifact::<Summary>()),
        ("formats", artifact::<Formats>()),
        ("diagnosing", artifact::<Diagnosing>()),
        ("stats", artifact::<Stats>()),
        ("verification", artifact::<VerifyReport>()),
        ("collection", artifact::<GcReport>()),
        ("forgetting", artifact::<ForgetReport>()),
        ("labelling", artifact::<Labelled>()),
        ("exported", artifact::<Exported<'_>>()),
        ("exported_rows", schema::<ExportedRows<'_>>()),
        #[cfg(feature = "parquet")]
        ("release", artifact::<Release>()),
        ("attribution", artifact::<Attribution>()),
        ("flip_agreement", artifact::<FlipAgreement>()),
        ("relabeling", artifact::<Relabeling>()),
        ("run", artifact::<Shown>()),
        ("reviewing", artifact::<Reviewed>()),
        ("blind", schema::<Blind<'_>>()),
        ("collected", artifact::<Collected<'_>>()),
        ("collect_plan", artifact::<CollectPlan>()),
        ("round", artifact::<RoundCollected<'_>>()),
        ("round_plan", artifact::<RoundPlan>()),
        ("replayed", artifact::<Replayed<'_>>()),
        ("replay_plan", artifact::<ReplayPlanned>()),
        ("injected", artifact::<Injecting>()),
        ("admission", artifact::<Admission>()),
        ("played", artifact::<Played<'_>>()),
        ("exported_tasks", artifact::<ExportedTasks<'_>>()),
        ("serving", artifact::<Serving<'_>>()),
        ("proxying", artifact::<Proxying<'_>>()),
        ("proxied", artifact::<Proxied<'_>>()),
        ("environment", schema::<Listed<'_>>()),
        ("answer", artifact::<ModelAnswer<'_>>()),
        ("numbered_answer", schema::<NumberedAnswer<'_>>()),
        ("questioned", artifact::<Questioned>()),
        ("estimate", artifact::<Estimate>()),
        ("row", schema::<Row>()),
        ("found", schema::<Found<'_>>()),
        ("explanation", schema::<Explanation>()),
        ("look", schema::<Look<'_>>()),
        ("watched", artifact::<Watched>()),
        ("error", schema::<Failed<'_>>()),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas");
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let mut known = vec!["README.md".to_owned()];
    for (name, mut schema) in schemas {
        schema.insert("title".to_owned(), name.into());
        let text = pretty(&schema);
        let file = format!("{name}.schema.json");
        if update {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(&file), &text).unwrap();
        }
        let kept = fs::read_to_string(folder.join(&file)).unwrap_or_default();
        assert!(kept == text, "docs/schemas/{file} is stale; run `make schemas`");
        known.push(file);
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "docs/schemas/{name} is the schema of nothing");
    }
}
