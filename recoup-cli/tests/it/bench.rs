//! A folder to work in, and commands whose exit code and output are snapshots.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A temporary folder that commands run in.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A command in this folder with a bare environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
        command.args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A command for which permissions count: as nobody, where the tests run as root, for whom none does. `None`,
    /// said out loud, where nobody may not even start the program, which may lie where only root may go.
    pub fn powerless(&self, arguments: &[&str]) -> Option<Output> {
        use std::os::unix::process::CommandExt as _;
        let mut command = self.command(arguments);
        let whoami = Command::new("id").arg("-u").output().unwrap();
        if whoami.stdout == b"0\n" {
            command.uid(65534).gid(65534);
        }
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                eprintln!("SKIPPED: nobody else may run the program from here");
                None
            }
            output => Some(output.unwrap()),
        }
    }

    /// A command on a disk on which no file grows beyond so many blocks of 512 bytes.
    pub fn on_small_disk(&self, blocks: u32, arguments: &[&str]) -> Command {
        let wanted = self.command(arguments);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\""]).arg(blocks.to_string());
        command.arg(wanted.get_program()).args(wanted.get_args());
        command.current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command
    }

    /// Exit code, standard output and standard error, with what differs from run to run filtered.
    pub fn snapshot(&self, arguments: &[&str]) -> String {
        self.render(&self.output(arguments))
    }

    pub fn render(&self, output: &Output) -> String {
        let text = format!(
            "exit: {}\n----- stdout -----\n{}----- stderr -----\n{}",
            output.status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string()),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        text.replace(&*self.folder.path().to_string_lossy(), "[folder]")
    }

    /// The last line of standard output as JSON; the command must have ended with `code`.
    pub fn json(&self, arguments: &[&str], code: i32) -> Value {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", self.render(&output));
        let stdout = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
    }

    /// Every line of standard output as JSON.
    pub fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", self.render(&output));
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A chat run as one JSON line.
pub fn chat_line(id: &str, task: &str, success: Option<bool>, answer: &str) -> String {
    let mut row = serde_json::json!({
        "id": id,
        "task_id": task,
        "messages": [
            { "role": "user", "content": format!("solve {task}") },
            { "role": "assistant", "content": answer },
        ],
    });
    if let Some(success) = success {
        row["success"] = success.into();
    }
    format!("{row}\n")
}

/// A folder of the shared real traces, or `None`, said out loud, where they are absent.
pub fn shared_data(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("RECOUP_SHARED_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    let path = root.join(folder);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: no shared traces at {}; set RECOUP_SHARED_DATA", path.display());
    None
}
