//! Packages that break their contract or their limits, each in one way: an error with its place, never a score.

use recoup::environments::EnvironmentError;
use recoup::environments::package::{Package, PackageFiles};

use crate::broken::{first_error, folders, told};

/// What only the walls of a worker stop: the interpreter looks at its limits from time to time.
const WALLED: [&str; 1] = ["doubles-a-string"];

#[test]
fn each_is_an_error_that_names_its_place() {
    let mut list = String::new();
    for folder in folders("bad") {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if WALLED.contains(&name.as_str()) {
            continue;
        }
        let played = || -> Result<Option<EnvironmentError>, EnvironmentError> {
            Ok(first_error(&Package::load(&PackageFiles::read(&folder)?)?))
        };
        let error = played().unwrap_or_else(Some);
        let told = error.map_or_else(|| "no error".to_owned(), |error| told(&error));
        let told = told.replace(folder.to_str().unwrap(), "FOLDER");
        list.extend([&*name, ": ", &*told, "\n"]);
    }
    assert!(!list.contains(": no error"), "{list}");
    insta::assert_snapshot!(list);
}
