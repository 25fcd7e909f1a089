//! Settings: flags over environment variables over `recoup.toml`, resolved once.

mod models;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::artifact::{Artifact, Body, Provenance};
use recoup::deduplication::Listed;
use recoup::importers::{ImportOptions, Scoring};
use recoup::pipeline::{ContentSettings, Deduplicate, LeftOut, Selection};
use recoup::views::ViewSettings;
use serde::Deserialize;

pub(crate) use self::models::ModelsSection;
use crate::args::{DeduplicateChoice, Global, OutcomeArgs, SelectionArgs, SplitArgs, SplitChoice, ViewArgs};
use crate::failure::Failure;

/// Folder that keeps runs and verdicts, where nothing else is said.
const PROJECT_DEFAULT: &str = ".recoup";
/// Folder for the report and the training files, where nothing else is said.
const OUT_DEFAULT: &str = "recoup-out";
/// Settings file, where nothing else is said.
const CONFIG_DEFAULT: &str = "recoup.toml";

/// `recoup.toml`: a section a stage, every key optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    project: Option<PathBuf>,
    out: Option<PathBuf>,
    threads: Option<u16>,
    #[serde(default)]
    import: ImportSection,
    #[serde(default)]
    environments: BTreeMap<String, PathBuf>,
    #[serde(default)]
    views: ViewSettings,
    #[serde(default)]
    selection: SelectionSection,
    #[serde(default)]
    models: ModelsSection,
}

/// `[import]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportSection {
    score: Option<String>,
    success_at: Option<f64>,
    max_record_bytes: Option<u64>,
    licence: Option<String>,
    split: Option<SplitChoice>,
}

/// `[selection]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SelectionSection {
    leave_out: Vec<String>,
    deduplicate: Option<DeduplicateChoice>,
    contaminated: Vec<PathBuf>,
}

/// What every command may need to know, settled.
#[derive(Debug)]
pub(crate) struct Settings {
    pub project: PathBuf,
    /// The project folder, as commands should name it.
    pub project_name: String,
    /// Whether the user named the project folder.
    pub is_project_named: bool,
    pub out: PathBuf,
    pub threads: usize,
    /// Folders of environments, by the names that runs record.
    pub environments: BTreeMap<String, PathBuf>,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// What is learned.
    pub views: ViewSettings,
    selection: SelectionSection,
    /// Who judges, and what asking models may take, where no flag says so.
    pub models: ModelsSection,
    import: ImportSection,
}

impl Settings {
    /// Resolves flags and environment (which clap has merged) over the settings file.
    pub(crate) fn resolve(
        global: &Global,
        out: Option<&Path>,
        views: Option<&ViewArgs>,
    ) -> Result<Self, Failure> {
        let file = read_file(global.config.as_deref())?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let named = global.project.clone().or(file.project);
        let is_project_named = named.is_some();
        let project = named.unwrap_or_else(|| PROJECT_DEFAULT.into());
        Ok(Self {
            is_project_named,
            project_name: project.to_string_lossy().into_owned(),
            project,
            out: out.map(Path::to_path_buf).or(file.out).unwrap_or_else(|| OUT_DEFAULT.into()),
            threads: global.threads.or(file.threads).map_or(cores, |threads| usize::from(threads.max(1))),
            environments: file.environments,
            offline: global.offline,
            views: views.map_or_else(|| file.views.clone(), |flags| flags.over(&file.views)),
            selection: file.selection,
            models: file.models,
            import: file.import,
        })
    }

    /// The settings that decide content, without an import's own flags.
    pub(crate) fn content(&self) -> ContentSettings {
        ContentSettings::of(&self.import_options(&OutcomeArgs::default()), self.views.clone())
    }

    /// Puts the head before an answer that is made from no run.
    pub(crate) fn answer<T: Body>(&self, body: T) -> Artifact<T> {
        Artifact::new(Provenance::new(self.content().hash(), String::new()), body)
    }

    /// Whether the split is to become strict.
    pub(crate) fn is_split_strict(&self, flags: &SplitArgs) -> bool {
        flags.split.or(self.import.split) == Some(SplitChoice::Strict)
    }

    /// What nothing is learned from; lists of flags come on top of the file's.
    pub(crate) fn selection(&self, flags: &SelectionArgs) -> Result<Selection, Failure> {
        let mut leave_out = flags.leave_out.clone();
        for text in &self.selection.leave_out {
            let left_out = LeftOut::parse(text);
            leave_out.push(left_out.ok_or_else(|| {
                Failure::user(format!("`{text}` in `leave_out` of `[selection]` names nothing to leave out"))
                    .hint("write `environment=NAME` or `harness=NAME`")
            })?);
        }
        leave_out.sort();
        leave_out.dedup();
        let contaminated = listed(self.selection.contaminated.iter().chain(&flags.contaminated))?;
        let deduplicate = match flags.deduplicate.or(self.selection.deduplicate) {
            Some(DeduplicateChoice::Near) => Deduplicate::Near,
            Some(DeduplicateChoice::Exact) | None => Deduplicate::Exact,
        };
        Ok(Selection { leave_out, deduplicate, contaminated: Arc::new(contaminated) })
    }

    /// Options of an import.
    pub(crate) fn import_options(&self, flags: &OutcomeArgs) -> Arc<ImportOptions> {
        let default = ImportOptions::default();
        Arc::new(ImportOptions {
            scoring: Scoring {
                score: flags.score.clone().or_else(|| self.import.score.clone()),
                success_at: flags.success_at.or(self.import.success_at),
            },
            record_bytes_max: flags
                .max_record
                .or(self.import.max_record_bytes)
                .unwrap_or(default.record_bytes_max),
            threads: self.threads,
            licence: flags.licence.clone().or_else(|| self.import.licence.clone()).unwrap_or(default.licence),
            ..default
        })
    }
}

impl ViewArgs {
    /// The flags over what the settings file says.
    fn over(&self, file: &ViewSettings) -> ViewSettings {
        ViewSettings {
            diagnosis_answer: self.diagnosis_answer.unwrap_or(file.diagnosis_answer),
            prevention_target: self.prevention_target.unwrap_or(file.prevention_target),
            after_recovery: self.after_recovery || file.after_recovery,
            sibling_pairs: self.sibling_pairs || file.sibling_pairs,
            one_judge: file.one_judge,
            synthetic_answers: file.synthetic_answers,
            labels: self.labels.over(&file.labels),
        }
    }
}

/// Reads lists of texts and ids.
pub(crate) fn listed<'a, const WORDS: usize>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<Listed<WORDS>, Failure> {
    let mut listed = Listed::default();
    for path in paths {
        let shown = path.display();
        let bytes =
            std::fs::read(path).map_err(|error| Failure::user(format!("cannot read `{shown}`: {error}")))?;
        listed.add(&bytes).map_err(|error| {
            Failure::user(format!("`{shown}` is no list of tasks: {error}"))
                .hint("write an id or a text a line, or JSON objects with `id` and texts")
        })?;
    }
    Ok(listed)
}

fn read_file(named: Option<&Path>) -> Result<File, Failure> {
    let path = named.unwrap_or(Path::new(CONFIG_DEFAULT));
    if named.is_none() && !path.exists() {
        return Ok(File::default());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("cannot read settings `{}`: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        Failure::user(format!("`{}`: {}", path.display(), error.to_string().trim_end()))
            .hint(format!(
                "known keys: `project`, `out`, `threads`, and in `[import]` `score`, `success_at`, `max_record_bytes`, \
                 `licence`, `split`; in `[selection]` `leave_out`, `deduplicate`, `contaminated`; in `[environments]`, \
                 names and folders; in `[views]` `diagnosis_answer`, `prevention_target`, `after_recovery`, \
                 `sibling_pairs`, `one_judge`, `synthetic_answers`; in `[models]` {}",
                ModelsSection::KEYS
            ))
    })
}

#[cfg(test)]
mod tests {
    use recoup::views::PreventionTarget;

    use super::File;
    use crate::args::ViewArgs;

    #[test]
    fn a_misspelled_key_is_an_error() {
        let error = toml::from_str::<File>("[import]\nsucces_at = 1.0\n").unwrap_err();
        assert!(error.to_string().contains("succes_at"), "{error}");
        let error = toml::from_str::<File>("[views]\nafter_recover = true\n").unwrap_err();
        assert!(error.to_string().contains("after_recover"), "{error}");
        let error = toml::from_str::<File>("[views]\nprevention_target = \"reflection\"\n").unwrap_err();
        assert!(error.to_string().contains("reflection+action"), "{error}");
    }

    #[test]
    fn a_flag_goes_over_the_settings_file() {
        let file: File =
            toml::from_str("[views]\nprevention_target = \"continuation\"\nafter_recovery = true\n").unwrap();
        let flags = ViewArgs { prevention_target: Some(PreventionTarget::Action), ..ViewArgs::default() };
        let views = flags.over(&file.views);
        assert_eq!((views.prevention_target, views.after_recovery), (PreventionTarget::Action, true));
    }
}
