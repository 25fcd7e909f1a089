//! Paths: from what a user names (files, folders, globs) to the sources beneath.
//!
//! A link, a pipe or a device in a folder is passed over. What the user names is another matter: a
//! link is followed, and what is no file says why it is not read.

use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ImportOptions, Source, SourceProblem};

/// Folders whose files are made by the kernel while they are read: some never end, some block.
const KERNEL_FOLDERS: [&str; 2] = ["/proc", "/sys"];

/// Expands what a user names (files, folders, globs) into sources, sorted by path.
///
/// Folders are walked without following symlinks and without hidden entries; zip archives other than
/// Inspect's `.eval` become their members.
pub fn sources_from_paths(
    paths: &[String],
    options: &Arc<ImportOptions>,
) -> (Vec<Source>, Vec<SourceProblem>) {
    wanted_sources(paths, options, &mut |_| true)
}

/// As [`sources_from_paths`], of the files that `wanted` takes: the others are not opened.
pub fn wanted_sources(
    paths: &[String],
    options: &Arc<ImportOptions>,
    wanted: &mut dyn FnMut(&Path) -> bool,
) -> (Vec<Source>, Vec<SourceProblem>) {
    let mut found = Found { options, wanted, files: 0, sources: Vec::new(), problems: Vec::new() };
    for given in paths {
        let path = Path::new(given);
        if is_kernels(path) {
            found.problem(given.clone(), "refused", "a file of the kernel, not read");
        } else if path.is_dir() {
            found.walk(path, path, None);
        } else if path.symlink_metadata().is_ok() {
            found.named(path);
        } else if given.contains(['*', '?', '[']) {
            found.glob(given);
        } else {
            found.problem(given.clone(), "not-found", "no such file or folder");
        }
    }
    (found.sources, found.problems)
}

/// What has been found so far.
struct Found<'a> {
    options: &'a Arc<ImportOptions>,
    wanted: &'a mut dyn FnMut(&Path) -> bool,
    /// Files, wanted or not.
    files: usize,
    sources: Vec<Source>,
    problems: Vec<SourceProblem>,
}

impl Found<'_> {
    fn problem(&mut self, uri: String, code: &'static str, reason: impl Into<String>) {
        self.problems.push(SourceProblem { uri, code, reason: reason.into() });
    }

    /// A file that the user names.
    fn named(&mut self, path: &Path) {
        let uri = path.to_string_lossy().into_owned();
        match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.problem(uri, "not-found", "a symbolic link that leads nowhere");
            }
            Err(error) => self.problem(uri, "unreadable", error.to_string()),
            Ok(metadata) if !metadata.is_file() => {
                let reason = format!("{}, not a file", kind(metadata.file_type()));
                self.problem(uri, "refused", reason);
            }
            Ok(_) => {
                let parent = path.parent();
                let root =
                    parent.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
                self.file(path, root.map(Path::to_path_buf));
            }
        }
    }

    fn glob(&mut self, pattern: &str) {
        let matcher = match globset::GlobBuilder::new(pattern).literal_separator(true).build() {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => return self.problem(pattern.to_owned(), "bad-glob", error.to_string()),
        };
        let fixed: PathBuf = Path::new(pattern)
            .components()
            .take_while(|component| !component.as_os_str().to_string_lossy().contains(['*', '?', '[']))
            .collect();
        let base = if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed };
        if is_kernels(&base) {
            return self.problem(pattern.to_owned(), "refused", "files of the kernel, not read");
        }
        let before = self.files;
        self.walk(&base, &base, Some(&matcher));
        if self.files == before {
            self.problem(pattern.to_owned(), "not-found", "the pattern matches no file");
        }
    }

    fn walk(&mut self, folder: &Path, root: &Path, matcher: Option<&globset::GlobMatcher>) {
        let visible = |entry: &walkdir::DirEntry| {
            let hidden = entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.');
            !hidden && !KERNEL_FOLDERS.iter().any(|kernel| entry.path() == Path::new(kernel))
        };
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(visible) {
            match entry {
                Ok(entry) => {
                    let path = entry.path();
                    let shown = path.strip_prefix("./").unwrap_or(path);
                    if entry.file_type().is_dir() || matcher.is_some_and(|matcher| !matcher.is_match(shown)) {
                        continue;
                    }
                    let uri = || path.to_string_lossy().into_owned();
                    if entry.file_type().is_symlink() {
                        self.problem(uri(), "symlink", "a symbolic link, not followed");
                    } else if entry.file_type().is_file() {
                        self.file(path, Some(root.to_path_buf()));
                    } else {
                        self.problem(uri(), "not-a-file", format!("{}, not read", kind(entry.file_type())));
                    }
                }
                Err(error) => {
                    let uri = error.path().unwrap_or(folder).to_string_lossy().into_owned();
                    self.problem(uri, "unreadable", error.to_string());
                }
            }
        }
    }

    fn file(&mut self, path: &Path, root: Option<PathBuf>) {
        self.files += 1;
        if !(self.wanted)(path) {
            return;
        }
        let uri = path.to_string_lossy().into_owned();
        let source = Source::from_path(uri, path.to_path_buf(), root, self.options.clone());
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
            source.add_members(&mut self.sources, &mut self.problems);
        } else {
            self.sources.push(source);
        }
    }
}

/// Whether a path leads, through whatever links, to a file that the kernel makes.
fn is_kernels(path: &Path) -> bool {
    let real = path.canonicalize();
    real.is_ok_and(|real| KERNEL_FOLDERS.iter().any(|folder| real.starts_with(folder)))
}

/// What something is that is no file.
fn kind(file_type: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if file_type.is_fifo() {
            return "a pipe";
        }
        if file_type.is_socket() {
            return "a socket";
        }
        if file_type.is_char_device() || file_type.is_block_device() {
            return "a device";
        }
    }
    if file_type.is_dir() { "a folder" } else { "something special" }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::sources_from_paths;
    use crate::importers::Source;

    #[test]
    fn a_folder_gives_its_files_in_order_and_says_what_it_skips() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", ".hidden"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        std::os::unix::fs::symlink("a.json", folder.path().join("link.json")).unwrap();
        let given = folder.path().to_string_lossy().into_owned();
        let (sources, problems) = sources_from_paths(std::slice::from_ref(&given), &Arc::default());
        let names: Vec<&str> = sources.iter().map(Source::name).collect();
        assert_eq!(names, ["a.json", "b.json"]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].is_skip());
        let (globbed, _) = sources_from_paths(&[format!("{given}/*a.json")], &Arc::default());
        assert_eq!(globbed.len(), 1);
    }

    #[test]
    fn what_is_named_and_cannot_be_read_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        fs::write(place("a.json"), "{}").unwrap();
        fs::write(place("bad.zip"), "PK and no more").unwrap();
        std::os::unix::fs::symlink("a.json", place("link.json")).unwrap();
        std::os::unix::fs::symlink("/dev/null", place("device")).unwrap();
        std::os::unix::fs::symlink("/proc/self/status", place("status")).unwrap();
        std::os::unix::fs::symlink("nothing", place("dangling")).unwrap();
        let (sources, problems) = sources_from_paths(&[place("link.json")], &Arc::default());
        assert_eq!((sources.len(), problems.len()), (1, 0), "a named link is followed");
        let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        for (given, code, word) in [
            ("/dev/null".to_owned(), "refused", "a device"),
            (place("device"), "refused", "a device"),
            (place("socket"), "refused", "a socket"),
            ("/proc/kmsg".to_owned(), "refused", "the kernel"),
            (place("status"), "refused", "the kernel"),
            (place("dangling"), "not-found", "leads nowhere"),
            (place("bad.zip"), "bad-archive", "rchive"),
        ] {
            let (sources, problems) = sources_from_paths(std::slice::from_ref(&given), &Arc::default());
            assert!(sources.is_empty() && problems.len() == 1, "{given}");
            assert_eq!((problems[0].code, problems[0].is_skip()), (code, false), "{given}");
            assert!(problems[0].reason.contains(word), "{given}: {}", problems[0].reason);
            assert!(!problems[0].reason.contains(&given), "{given}: {}", problems[0].reason);
        }
    }
}
