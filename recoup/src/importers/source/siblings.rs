//! Siblings: the only way from a trace to another file, never out of the folder that was imported.

use std::path::{Component, Path};

use super::Source;

impl Source {
    /// A file that the trace names or that belongs to it, beneath the folder that was imported.
    ///
    /// # Errors
    /// In words, when the name is absolute, climbs with `..`, passes a symlink, leads nowhere, or when
    /// this source has no folder.
    pub fn sibling(&self, name: &str) -> Result<Self, String> {
        let (root, folder) = self.root.as_ref().ok_or("the source has no folder")?;
        let mut path = folder.clone();
        for component in Path::new(name).components() {
            match component {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                _ => return Err(format!("`{name}` is not a plain relative name")),
            }
            let kind = path.symlink_metadata().map_err(|_| format!("`{name}` does not exist"))?.file_type();
            if kind.is_symlink() {
                return Err(format!("`{name}` is or passes a symbolic link"));
            }
        }
        if !path.is_file() {
            return Err(format!("`{name}` is not a file"));
        }
        let shown = Path::new(&self.uri).parent().unwrap_or(Path::new("")).join(name);
        Ok(Self::from_path(
            shown.to_string_lossy().into_owned(),
            path,
            Some(root.clone()),
            self.options.clone(),
        ))
    }

    /// The other files of this one's folder whose names have the ending, by name, and whether there are more
    /// than `most`; none where this source has no folder.
    pub fn beside(&self, ending: &str, most: usize) -> (Vec<Self>, bool) {
        let mut names = self.names_beside().unwrap_or_default();
        names.retain(|name| name.ends_with(ending) && !name.starts_with('.'));
        let others = names.iter().filter_map(|name| self.sibling(name).ok());
        let mut others: Vec<Self> = others.filter(|other| other.uri != self.uri).take(most + 1).collect();
        let more = others.len() > most;
        others.truncate(most);
        (others, more)
    }

    /// A file beneath the folder `levels` above this one's (0: its own), as [`Source::sibling`]; never
    /// above the folder that was imported.
    ///
    /// # Errors
    /// As [`Source::sibling`], and when there are not that many folders.
    pub fn sibling_above(&self, levels: usize, name: &str) -> Result<Self, String> {
        let (root, folder) = self.root.as_ref().ok_or("the source has no folder")?;
        let mut above = folder.as_path();
        let mut shown = Path::new(&self.uri);
        for _ in 0..levels {
            let parent = above.parent().filter(|_| above != root.as_path());
            above = parent.ok_or("the folder lies above the imported one")?;
            shown = shown.parent().unwrap_or(Path::new(""));
        }
        let from = Self {
            uri: shown.to_string_lossy().into_owned(),
            root: Some((root.clone(), above.to_path_buf())),
            ..self.clone()
        };
        from.sibling(name)
    }

    /// The names in this file's own folder, its own among them, sorted: to be opened as
    /// [`Source::sibling`].
    ///
    /// # Errors
    /// In words, when this source has no folder or it cannot be read.
    pub fn names_beside(&self) -> Result<Vec<String>, String> {
        let (_, folder) = self.root.as_ref().ok_or("the source has no folder")?;
        // A file that was named without a folder.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// True when a sibling of that name can be read.
    pub fn has_sibling(&self, name: &str) -> bool {
        self.sibling(name).is_ok()
    }

    /// Names of the folders between the imported root and this file, and of the folder itself, inner
    /// first: what a file's place says, for harnesses that put it there.
    pub fn folder_names(&self) -> Vec<String> {
        let Some((root, folder)) = &self.root else { return Vec::new() };
        let mut names: Vec<String> = folder
            .strip_prefix(root)
            .unwrap_or(folder)
            .components()
            .filter_map(|component| match component {
                Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::Source;

    #[test]
    fn a_sibling_never_leaves_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("runs");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        fs::write(inner.join("a.traj"), "{}").unwrap();
        fs::write(inner.join("report.json"), "{}").unwrap();
        std::os::unix::fs::symlink("../secret", inner.join("link")).unwrap();
        let path = inner.join("a.traj");
        let source = Source::from_path("runs/a.traj".to_owned(), path, Some(inner.clone()), Arc::default());
        assert_eq!(source.sibling("report.json").unwrap().uri(), "runs/report.json");
        assert_eq!(source.beside(".json", 9).0.len(), 1, "neither a link nor a file of another ending");
        fs::write(inner.join("b.traj"), "{}").unwrap();
        let (others, more) = source.beside(".traj", 9);
        assert_eq!((others.iter().map(Source::uri).collect::<Vec<_>>(), more), (vec!["runs/b.traj"], false));
        assert!(source.beside(".traj", 0).1);
        for hostile in ["../secret", "/etc/passwd", "link", "none", "."] {
            assert!(source.sibling(hostile).is_err(), "{hostile}");
        }
        assert!(source.sibling_above(1, "secret").is_err(), "above the imported folder");
        assert_eq!(source.names_beside().unwrap(), ["a.traj", "b.traj", "link", "report.json"]);
        let bare = Source::from_path("a".to_owned(), "a".into(), Some("".into()), Arc::default());
        assert!(bare.names_beside().unwrap().contains(&"Cargo.toml".to_owned()), "the current folder");
        let root = folder.path().to_path_buf();
        let path = inner.join("a.traj");
        let source = Source::from_path("in/runs/a.traj".to_owned(), path, Some(root), Arc::default());
        assert_eq!(source.sibling_above(1, "secret").unwrap().uri(), "in/secret");
        assert!(source.sibling_above(1, "../secret").is_err());
    }
}
