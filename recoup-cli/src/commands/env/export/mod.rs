//! `recoup env export`: an admitted environment for programs that run environments of their own.
//!
//! What is written runs the package's own file under plain Python, byte for byte as here. Files are written
//! where there are none; a file that is there already is left alone, and stops the export where it differs.

mod harbor;
mod verifiers;

use std::path::{Path, PathBuf};

use recoup::answers::ExportedTasks;
use recoup::environments::package::PackageFiles;
use recoup::environments::{Environment, Manifest};
use recoup::synthesis::admission::{AdmissionConfig, admit};

use super::super::environment;
use crate::Ended;
use crate::args::{EnvExportArgs, EnvTarget};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// The runner of packages for plain Python.
const RECOUP_ENV: &str = include_str!("../../../../../environments/recoup_env.py");

/// Files to write, by path in the output folder.
type Files = Vec<(PathBuf, String)>;

/// What is exported.
struct Exported<'a> {
    environment: &'a dyn Environment,
    files: PackageFiles,
    seeds: u64,
}

impl Exported<'_> {
    fn manifest(&self) -> &Manifest {
        &self.environment.identity().manifest
    }

    /// The package and its runner, beneath a folder.
    fn package(&self, folder: &Path) -> Files {
        let mut files = vec![
            (folder.join("recoup_env.py"), RECOUP_ENV.to_owned()),
            (folder.join("package/environment.toml"), self.files.manifest.clone()),
            (folder.join("package/environment.star"), self.files.program.clone()),
        ];
        if let (Some(name), Some(text)) = (&self.manifest().policy, &self.files.policy) {
            files.push((folder.join("package").join(name), text.clone()));
        }
        files
    }

    /// The difficulty of the task of a seed: difficulties take turns after families have.
    fn difficulty(&self, seed: u64) -> u8 {
        (seed / self.manifest().families.len().max(1) as u64 % 3) as u8 + 1
    }
}

/// Checks the environment and writes it.
pub(crate) fn export(flags: &EnvExportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let opened = environment::open(&flags.named.package, flags.named.trust)?;
    let files = environment::files(&flags.named.package)?;
    let exported = Exported { environment: &*opened, files, seeds: flags.seeds };
    let files = match flags.to {
        EnvTarget::Harbor => harbor::files(&exported)?,
        EnvTarget::Verifiers => verifiers::files(&exported),
    };
    let missing = missing(&flags.out, &files)?;
    require_admitted(&*opened, flags, settings, printer)?;
    let new = missing.len();
    write(&missing)?;
    let out = flags.out.display();
    if printer.is_json() {
        let to = match flags.to {
            EnvTarget::Harbor => "harbor",
            EnvTarget::Verifiers => "verifiers",
        };
        let written = ExportedTasks {
            package: &exported.manifest().name,
            to,
            tasks: flags.seeds,
            files: files.len() as u64,
            new: new as u64,
            out: out.to_string(),
        };
        printer.json(&environment::answer(&*opened, &(to, flags.seeds), written));
    } else {
        printer.line(format_args!(
            "{} tasks in {out}: {} files, {new} of them new",
            flags.seeds,
            files.len()
        ));
    }
    Ok(Ended::Done)
}

/// Nothing is trained on that was not admitted.
fn require_admitted(
    environment: &dyn Environment,
    flags: &EnvExportArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<(), Failure> {
    let config = AdmissionConfig { threads: settings.threads, ..AdmissionConfig::default() };
    let mut progress = printer.progress();
    let admission = admit(environment, &config, &mut progress);
    progress.finish();
    if admission.admitted {
        return Ok(());
    }
    let failed: Vec<String> = admission
        .gates
        .iter()
        .filter(|gate| !gate.passed)
        .map(|gate| format!("\n  {}: {}", gate.name, gate.figure))
        .collect();
    Err(Failure::user(format!("{} is not admitted:{}", admission.package, failed.concat()))
        .code("not-admitted")
        .hint(format!("`recoup env check {}` shows every gate and its rule", flags.named.package)))
}

/// Files that are not there yet.
///
/// # Errors
/// Where one is there and is another.
fn missing<'a>(out: &Path, files: &'a Files) -> Result<Vec<(PathBuf, &'a str)>, Failure> {
    let mut missing = Vec::new();
    for (path, text) in files {
        let path = out.join(path);
        match std::fs::read(&path) {
            Ok(there) if there == text.as_bytes() => {}
            Ok(_) => {
                return Err(Failure::user("there is another file of this name, and it stays as it is")
                    .within(&path)
                    .code("exists")
                    .hint("name another folder with `--out`, or remove the old export first"));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push((path, text.as_str())),
            Err(error) => return Err(Failure::machine("cannot be read", &error).within(&path)),
        }
    }
    Ok(missing)
}

fn write(files: &[(PathBuf, &str)]) -> Result<(), Failure> {
    for (path, text) in files {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| Failure::machine("cannot be written", &error).within(path))?;
    }
    Ok(())
}
