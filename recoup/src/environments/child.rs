//! A child process that answers each line with a line.
//!
//! It starts with a cleared environment in an empty folder of its own and leads a process group, which
//! ends as a whole when the child is dropped. A child that breaks the rules of the conversation is
//! ended at once: what it would say next answers a question nobody remembers.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{EnvironmentError, Fault};
use crate::visible::visible_line;

/// Variables that a child may inherit: what programs need to be found and to speak the right language.
/// Nothing here holds a secret.
pub const ALLOWED_VARIABLES: [&str; 8] =
    ["HOME", "JAVA_HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "VIRTUAL_ENV"];

/// How a child is started. The library starts only what it is given here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildCommand {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment, beside `TMPDIR`.
    pub variables: Vec<(OsString, OsString)>,
}

impl ChildCommand {
    /// How recoup, or a program that takes its `env-worker`, is started as a worker.
    pub fn worker(program: impl Into<OsString>, trust: bool) -> Self {
        let trust = trust.then(|| "--trust".into());
        Self {
            program: program.into(),
            arguments: std::iter::once("env-worker".into()).chain(trust).collect(),
            // Half of a worker's start was the zeroing of huge pages that it never uses.
            variables: vec![("MIMALLOC_ALLOW_THP".into(), "0".into())],
        }
    }
}

/// What is kept of a child's standard error, in bytes.
const TAIL_BYTES: usize = 4 << 10;
/// What a pipe that is ready takes without blocking (`PIPE_BUF`).
const WRITE_BYTES: usize = 4 << 10;
/// Parts that a time-out is waited in.
const SLICES: u32 = 64;
/// Pieces of a line that cost no time; so many more for every KiB received.
const FREE_PIECES: usize = 200;

/// A child process.
pub(super) struct Child {
    environment: Arc<str>,
    process: std::process::Child,
    input: ChildStdin,
    output: ChildStdout,
    /// What was read after the last line.
    pending: Vec<u8>,
    tail: Arc<Mutex<VecDeque<u8>>>,
    tail_ended: Receiver<()>,
    line_bytes: usize,
    /// Its working directory, removed with it.
    _folder: tempfile::TempDir,
}

impl Child {
    /// Starts a child.
    pub(super) fn spawn(
        environment: &Arc<str>,
        command: &ChildCommand,
        line_bytes: usize,
    ) -> Result<Self, EnvironmentError> {
        let cannot = |error: io::Error| {
            let program = command.program.display();
            EnvironmentError::new(environment, Fault::Process, format!("cannot start `{program}`: {error}"))
        };
        let folder = tempfile::tempdir().map_err(cannot)?;
        let mut process = Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
            .envs(command.variables.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let (Some(input), Some(output), Some(errors)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(cannot(io::Error::other("no pipes")));
        };
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let tail_ended = keep_tail(errors, tail.clone());
        Ok(Self {
            environment: environment.clone(),
            process,
            input,
            output,
            pending: Vec::new(),
            tail,
            tail_ended,
            line_bytes,
            _folder: folder,
        })
    }

    /// Sends a line and waits for the answer. After an error the child is ended.
    ///
    /// # Errors
    /// A [`Fault::Timeout`], a [`Fault::Process`] where it ended, a [`Fault::Limit`] where the line is too
    /// long, a [`Fault::Contract`] where it spoke without being asked.
    pub(super) fn ask(&mut self, line: &str, timeout: Duration) -> Result<String, EnvironmentError> {
        if !self.pending.is_empty() {
            let found = String::from_utf8_lossy(&self.pending).into_owned();
            return Err(
                self.fault(Fault::Contract, &format!("it answered what nobody asked: {}", shortened(&found)))
            );
        }
        self.send(line, timeout)?;
        self.receive(timeout)
    }

    fn send(&mut self, line: &str, timeout: Duration) -> Result<(), EnvironmentError> {
        // JSON has line breaks between tokens only, where a space says the same.
        let mut line = line.as_bytes().to_vec();
        if memchr::memchr2(b'\n', b'\r', &line).is_some() {
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
        line.push(b'\n');
        let mut waits = Waits::new(timeout);
        let mut rest = &line[..];
        while !rest.is_empty() {
            if !waits.ready(self.input.as_fd(), PollFlags::POLLOUT, line.len() - rest.len()) {
                return Err(self.fault(Fault::Timeout, &format!("it did not read for {timeout:?}")));
            }
            let piece = rest.get(..WRITE_BYTES).unwrap_or(rest);
            match self.input.write(piece) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// The next line.
    pub(super) fn receive(&mut self, timeout: Duration) -> Result<String, EnvironmentError> {
        let mut waits = Waits::new(timeout);
        let mut searched = 0;
        let mut buffer = [0; 16 << 10];
        loop {
            let fresh = self.pending.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', fresh).map(|at| searched + at) {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.pop();
                return String::from_utf8(line)
                    .map_err(|_| self.fault(Fault::Contract, "a line of its output is not UTF-8"));
            }
            searched = self.pending.len();
            if searched > self.line_bytes {
                let message = format!("a line of its output has more than {} bytes", self.line_bytes);
                return Err(self.fault(Fault::Limit, &message));
            }
            if !waits.ready(self.output.as_fd(), PollFlags::POLLIN, searched) {
                return Err(self.fault(Fault::Timeout, &format!("no answer within {timeout:?}")));
            }
            match self.output.read(&mut buffer) {
                Ok(0) => return Err(self.ended()),
                Ok(count) => self.pending.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended()),
            }
        }
    }

    /// Ends the child for a fault of its own.
    pub(super) fn fault(&mut self, fault: Fault, message: &str) -> EnvironmentError {
        self.kill();
        EnvironmentError::new(&self.environment, fault, format!("{message}{}", self.last_words()))
    }

    fn ended(&mut self) -> EnvironmentError {
        // Its pipes close a moment before its exit code can be had.
        let mut status = None;
        for _ in 0..20 {
            status = self.process.try_wait().ok().flatten();
            if status.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let how = status
            .map_or_else(|| "it closed its output".to_owned(), |status| format!("it ended with {status}"));
        self.fault(Fault::Process, &how)
    }

    fn kill(&mut self) {
        // Before the child is waited for: until then its number, which is its group's, is its own.
        if let Ok(group) = i32::try_from(self.process.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.process.wait();
    }

    /// The end of its standard error, as an addition to a message.
    fn last_words(&self) -> String {
        // The pipe ends with the group; a process that left the group may hold it open.
        let _ = self.tail_ended.recv_timeout(Duration::from_millis(200));
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.is_empty() { String::new() } else { format!("; its standard error: {}", visible_line(text)) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads standard error to its end, so that the child never waits for a reader, and keeps the tail.
fn keep_tail(mut errors: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) -> Receiver<()> {
    let (ended, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; TAIL_BYTES];
        while let Ok(count @ 1..) = errors.read(&mut buffer) {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(buffer.get(..count).unwrap_or_default());
            let surplus = tail.len().saturating_sub(TAIL_BYTES);
            tail.drain(..surplus);
        }
        let _ = ended.send(());
    });
    receiver
}

/// Waiting for one line without a clock: in slices, and a line that comes in many tiny pieces pays a
/// slice for each, so that a child which dribbles is not waited for without end.
struct Waits {
    slice: PollTimeout,
    left: u32,
    pieces: usize,
}

impl Waits {
    fn new(timeout: Duration) -> Self {
        let slice = (timeout / SLICES).max(Duration::from_millis(1));
        Self { slice: PollTimeout::try_from(slice).unwrap_or(PollTimeout::MAX), left: SLICES, pieces: 0 }
    }

    /// Waits until the pipe is ready; false when the time is over. `moved` bytes have passed so far.
    fn ready(&mut self, pipe: BorrowedFd<'_>, what: PollFlags, moved: usize) -> bool {
        self.pieces += 1;
        if self.pieces > FREE_PIECES + moved / 1024 {
            self.left = self.left.saturating_sub(1);
        }
        while self.left > 0 {
            match poll(&mut [PollFd::new(pipe, what)], self.slice) {
                Ok(1..) => return true,
                Ok(_) | Err(nix::errno::Errno::EINTR) => self.left -= 1,
                // The read or write that follows meets the same error.
                Err(_) => return true,
            }
        }
        false
    }
}

/// The beginning of foreign text, for a message.
pub(super) fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    let text = text.trim();
    let shown = text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", visible_line(shown))
}
