//! `--map`: a mapping file, read.

use std::path::Path;

use recoup::importers::mapped::Mapping;

use crate::failure::Failure;

/// A mapping with every key, to start from.
pub(super) const TEMPLATE: &str = include_str!("template.toml");

/// Reads a mapping.
pub(super) fn read(path: &Path) -> Result<Mapping, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("cannot read the mapping `{shown}`: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        Failure::user(format!("`{shown}`: {}", error.to_string().trim_end()))
            .code("bad-mapping")
            .hint("`recoup import --map-template` prints a mapping with every key")
    })
}

#[cfg(test)]
mod tests {
    use recoup::importers::mapped::Mapping;

    use super::TEMPLATE;

    #[test]
    fn the_template_is_a_mapping_with_and_without_its_choices() {
        toml::from_str::<Mapping>(TEMPLATE).unwrap();
        // Lines of keys that are left out by a `# `.
        let choices: Vec<&str> = TEMPLATE
            .lines()
            .map(|line| {
                let choice =
                    line.strip_prefix("# ").filter(|rest| rest.contains(" = ") || rest.starts_with('['));
                choice.unwrap_or(line)
            })
            .collect();
        // A record is a run with its messages, or one message of an ordered run.
        for other in ["order = ", "messages = "] {
            let chosen: Vec<&str> = choices.iter().copied().filter(|line| !line.starts_with(other)).collect();
            toml::from_str::<Mapping>(&chosen.join("\n")).unwrap();
        }
    }
}
