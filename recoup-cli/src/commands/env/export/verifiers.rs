//! verifiers: a Python package with a taskset, its tools and its reward.

use std::path::Path;

use serde_json::json;

use super::{Exported, Files};

const TASKSET: &str = include_str!("taskset.py");

/// The package `recoup_<name>`, beside its `pyproject.toml`.
pub(super) fn files(exported: &Exported<'_>) -> Files {
    let manifest = exported.manifest();
    let module = format!("recoup_{}", manifest.name.replace('-', "_"));
    let text = |value: &str| toml::Value::String(value.to_owned()).to_string();
    let project = format!(
        "[project]\nname = {}\nversion = {}\ndescription = {}\nrequires-python = \">=3.12\"\n\
         dependencies = [\"verifiers>=0.4\"]\n\n[build-system]\nrequires = [\"hatchling\"]\n\
         build-backend = \"hatchling.build\"\n\n[tool.hatch.build.targets.wheel]\npackages = [{}]\n",
        text(&module.replace('_', "-")),
        text(&manifest.version),
        text(&manifest.description),
        text(&module),
    );
    let init = "from .taskset import RecoupTaskset\n\n__all__ = [\"RecoupTaskset\"]\n";
    let folder = Path::new(&module);
    let mut files = exported.package(folder);
    files.extend([
        ("pyproject.toml".into(), project),
        (folder.join("__init__.py"), init.to_owned()),
        (folder.join("taskset.py"), TASKSET.to_owned()),
        (folder.join("tasks.json"), json!({ "tasks": exported.seeds }).to_string() + "\n"),
    ]);
    files
}
