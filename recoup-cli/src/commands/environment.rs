//! Opening an environment by what the user typed: the name of a bundled one, or a folder.

use recoup::environments::child::{ALLOWED_VARIABLES, ChildCommand};
use recoup::environments::package::PackageFiles;
use recoup::environments::{self, Environment, Fault, Opening, bundled};

use crate::failure::Failure;

/// The environment of that name. `trust` lets a bridge's program run, and a package without walls where
/// the system has none.
pub(super) fn open(name: &str, trust: bool) -> Result<Box<dyn Environment>, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::machine("cannot find this program", &error))?;
    let mut arguments = vec!["env-worker".into()];
    if trust {
        arguments.push("--trust".into());
    }
    let inherited =
        ALLOWED_VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let opening = Opening {
        worker: ChildCommand { program: program.into(), arguments, variables: Vec::new() },
        variables: inherited.collect(),
        trust,
    };
    environments::open(name, &opening).map_err(|error| match error.fault {
        Fault::Unsupported => Failure::from(error).hint("read that program first, then `--trust` runs it"),
        Fault::Load if !std::path::Path::new(name).exists() => {
            let known: Vec<&str> = bundled::names().collect();
            Failure::user(format!("there is no environment `{name}`"))
                .code("no-environment")
                .hint(format!("environments are {}, or a folder with an environment.toml", known.join(", ")))
        }
        _ => error.into(),
    })
}

/// The files of the package of that name.
pub(super) fn files(name: &str) -> Result<PackageFiles, Failure> {
    Ok(match bundled::files(name) {
        Some(files) => files,
        None => PackageFiles::read(std::path::Path::new(name))?,
    })
}
