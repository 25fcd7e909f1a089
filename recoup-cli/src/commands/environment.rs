//! Opening an environment by what the user typed: the name of a bundled one, or a folder.

use recoup::environments::child::{ALLOWED_VARIABLES, ChildCommand};
use recoup::environments::{self, Environment, Fault, Opening};

use crate::failure::Failure;

/// The environment of that name. `trust` lets a bridge's program run, and a package without walls where
/// the system has none.
pub(super) fn open(name: &str, trust: bool) -> Result<Box<dyn Environment>, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::machine("cannot find this program", &error))?;
    let mut arguments = vec!["env-worker".into()];
    if trust {
        arguments.push("--trust".into());
    }
    let inherited = ALLOWED_VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let opening = Opening {
        worker: ChildCommand { program: program.into(), arguments, variables: Vec::new() },
        variables: inherited.collect(),
        trust,
    };
    environments::open(name, &opening).map_err(|error| {
        let fault = error.fault;
        let failure = Failure::from(error);
        match fault {
            Fault::Unsupported => failure.hint("read that program first, then `--trust` runs it"),
            Fault::Load if !std::path::Path::new(name).exists() => failure.code("no-environment"),
            _ => failure,
        }
    })
}
