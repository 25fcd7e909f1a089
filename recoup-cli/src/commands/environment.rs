//! Opening an environment by the name that the user typed.

use recoup::environments::{Environment, bundled};

use crate::failure::Failure;

/// The environment of that name.
pub(super) fn open(name: &str) -> Result<Box<dyn Environment>, Failure> {
    let Some(opened) = bundled::open(name) else {
        let known: Vec<&str> = bundled::names().collect();
        return Err(Failure::user(format!("there is no environment `{name}`"))
            .code("no-environment")
            .hint(format!("environments are {}", known.join(", "))));
    };
    Ok(opened?)
}
