//! Settings: flags over environment variables over `recoup.toml`, resolved once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::artifact::{Artifact, Body, Provenance};
use recoup::importers::{ImportOptions, Scoring};
use recoup::pipeline::ContentSettings;
use recoup::views::ViewSettings;
use serde::Deserialize;

use crate::args::{Global, OutcomeArgs};
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
}

/// `[import]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportSection {
    score: Option<String>,
    success_at: Option<f64>,
    max_record_bytes: Option<u64>,
    licence: Option<String>,
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
    import: ImportSection,
}

impl Settings {
    /// Resolves flags and environment (which clap has merged) over the settings file.
    pub(crate) fn resolve(global: &Global, out: Option<&Path>) -> Result<Self, Failure> {
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
            views: file.views,
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

fn read_file(named: Option<&Path>) -> Result<File, Failure> {
    let path = named.unwrap_or(Path::new(CONFIG_DEFAULT));
    if named.is_none() && !path.exists() {
        return Ok(File::default());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("cannot read settings `{}`: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        Failure::user(format!("`{}`: {}", path.display(), error.to_string().trim_end()))
            .hint("known keys: `project`, `out`, `threads`, and in `[import]` `score`, `success_at`, `max_record_bytes`, `licence`; in `[environments]`, names and folders; in `[views]` `diagnosis_answer`, `prevention_target`, `after_recovery`, `sibling_pairs`")
    })
}

#[cfg(test)]
mod tests {
    use super::File;

    #[test]
    fn a_misspelled_key_is_an_error() {
        let error = toml::from_str::<File>("[import]\nsucces_at = 1.0\n").unwrap_err();
        assert!(error.to_string().contains("succes_at"), "{error}");
    }
}
