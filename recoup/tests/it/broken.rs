//! What an environment does wrong first, when it is played.

use std::path::PathBuf;

use recoup::environments::{Action, Environment, EnvironmentError};
use recoup::json::Json;

/// The folders of a group of fixtures, by name.
pub fn folders(group: &str) -> Vec<PathBuf> {
    let group =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../recoup/tests/fixtures/environments").join(group);
    let mut folders: Vec<PathBuf> = std::fs::read_dir(group)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

/// Plays an episode, goes back to its start and plays on: the first error on the way.
pub fn first_error(environment: &dyn Environment) -> Option<EnvironmentError> {
    let play = || {
        let task = environment.generate(0, 1)?;
        let mut instance = environment.open(&task)?;
        let (start, _) = instance.start()?;
        let add = Action::call("add", Json::parse("{}").unwrap());
        let (one, _) = instance.step(&start, &add)?;
        let (two, _) = instance.step(&one, &add)?;
        instance.verify(&two, &[])?;
        instance.expert(&start)?;
        instance.step(&start, &add)?;
        instance.verify(&start, &[])
    };
    play().err()
}

/// An error on one line, for a list.
pub fn told(error: &EnvironmentError) -> String {
    format!("{} {error}", error.fault.code()).replace('\n', " ")
}
