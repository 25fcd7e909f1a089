//! The environments that come with the program.
//!
//! Their files are compiled in, so they run in this process; any other package runs in a worker.

use super::package::{Package, PackageFiles};
use super::{Environment, EnvironmentError};

macro_rules! files {
    ($name:literal) => {
        files!($name, None)
    };
    ($name:literal, with policy) => {
        files!($name, Some(include_str!(concat!("../../../environments/", $name, "/policy.md"))))
    };
    ($name:literal, $policy:expr) => {
        (
            $name,
            include_str!(concat!("../../../environments/", $name, "/environment.toml")),
            include_str!(concat!("../../../environments/", $name, "/environment.star")),
            $policy,
        )
    };
}

/// Name, manifest, program and policy of each.
const PACKAGES: [(&str, &str, &str, Option<&str>); 5] = [
    files!("desk", with policy),
    files!("shop"),
    files!("quest"),
    files!("toolchain"),
    files!("repo", with policy),
];

/// Names of the bundled environments.
pub fn names() -> impl Iterator<Item = &'static str> {
    PACKAGES.iter().map(|(name, ..)| *name)
}

/// Files of a bundled environment.
pub fn files(name: &str) -> Option<PackageFiles> {
    let (_, manifest, program, policy) = PACKAGES.iter().find(|(known, ..)| *known == name)?;
    Some(PackageFiles {
        manifest: (*manifest).to_owned(),
        program: (*program).to_owned(),
        policy: policy.map(str::to_owned),
    })
}

/// Loads a bundled environment.
pub fn open(name: &str) -> Option<Result<Box<dyn Environment>, EnvironmentError>> {
    let files = files(name)?;
    Some(Package::load(&files).map(|package| Box::new(package) as Box<dyn Environment>))
}
