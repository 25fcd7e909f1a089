//! The proxy: an endpoint between a harness and its models that records every conversation.
//!
//! Nothing in the harness changes but the base URL, and nothing in what it gets: an answer is relayed
//! byte for byte as it comes ([`relay`]). What was seen goes to a [`journal`] and from there into the
//! project ([`fold`]).
//!
//! A request passes the [`guard`], is read ([`request`]), placed in its conversation
//! ([`conversations`], by [`fingerprint`]s), forwarded ([`service`], [`upstream`]) and read along on its
//! way back ([`answer`]); a [`turn`] ends exactly once. Where there is a [`teacher`], [`sharing`] says who
//! acts, its [`label`]s are asked for, what it may cost stands in [`spending`], and what the teacher sees wears a [`disguise`]; one behind another API
//! is asked in its own ([`foreign`]), and one that is not told the [`history`] has it told by the proxy.

mod answer;
mod api;
mod control;
mod conversations;
mod disguise;
mod fingerprint;
mod fold;
mod foreign;
mod guard;
mod history;
mod journal;
mod label;
mod metrics;
mod relay;
mod replay;
mod request;
mod seen;
mod server;
mod service;
mod sharing;
mod spending;
mod teacher;
mod turn;
mod upstream;

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hyper::header::HeaderMap;
use recoup::importers::recoup_proxy;
use recoup::models::{Amount, Secret};
use recoup::store::{Filter, Page, Store};
use tokio::sync::Semaphore;

use self::conversations::Conversations;
use self::fingerprint::Fingerprint;
use self::fold::{Folding, Order};
use self::guard::Guard;
use self::journal::{Journal, Line};
use self::metrics::Metrics;
use self::seen::Seen;
pub(crate) use self::sharing::Sharing;
pub(crate) use self::spending::Spending;
pub(crate) use self::teacher::{Teacher, Teachers};
pub(crate) use self::upstream::{Upstream, Upstreams};
use crate::failure::Failure;
use crate::printer::Printer;

/// How a proxy is to be run.
pub(crate) struct Config {
    pub address: SocketAddr,
    pub token: Option<Secret<String>>,
    pub upstreams: Upstreams,
    /// Who teaches whom, where somebody does.
    pub sharing: Option<(Sharing, Teachers)>,
    /// Proxy for upstreams that are not this machine.
    pub http_proxy: Option<Secret<String>>,
    pub threads: usize,
    pub limits: Limits,
    pub timing: Timing,
    /// The project's folder.
    pub project: PathBuf,
}

/// What is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Longest body of a request.
    pub body_bytes: usize,
    /// Most requests under way.
    pub in_flight: usize,
}

/// When conversations are put into the project, and let go of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub fold_after: Duration,
    pub forget_after: Duration,
}

/// What all requests share.
struct Proxy {
    guard: Guard,
    upstreams: Upstreams,
    sharing: Option<Sharing>,
    teachers: Option<Teachers>,
    /// Labels that are on their way.
    labels_open: AtomicUsize,
    limits: Limits,
    timing: Timing,
    conversations: Mutex<Conversations>,
    seen: Seen,
    journal: Journal,
    folding: Folding,
    metrics: Metrics,
    /// Places for turns under way, and for other requests.
    turns: Arc<Semaphore>,
    others: Arc<Semaphore>,
    /// What clients' keys are hashed with.
    salt: [u8; 32],
    begun: Instant,
    /// The project's folder.
    project: PathBuf,
    printer: Printer,
    /// Held as long as the process lives: a journal has one writer.
    _lock: fs::File,
}

/// A proxy that runs.
pub(crate) struct Running {
    proxy: Arc<Proxy>,
    server: server::Server,
    folder: std::thread::JoinHandle<Result<(), Failure>>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

/// What a proxy has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Requests for a turn, by how they ended.
    pub ended: Vec<(&'static str, u64)>,
    /// What teachers took.
    pub spent: Amount,
}

/// Starts a proxy on a project.
pub(crate) fn start(config: Config, printer: Printer) -> Result<Running, Failure> {
    let listener = TcpListener::bind(config.address).map_err(|error| {
        let failure = Failure::machine(&format!("cannot listen on {}", config.address), &error).code("port");
        if error.kind() == std::io::ErrorKind::AddrInUse {
            return failure.hint("another program uses the port; `--port 0` takes a free one");
        }
        failure
    })?;
    let address = listener.local_addr().map_err(|error| Failure::machine("cannot listen", &error))?;
    let journal_failed = |error: std::io::Error| Failure::machine("cannot use the proxy's journal", &error);
    let folder = config.project.join("proxy");
    fs::create_dir_all(&folder).map_err(journal_failed)?;
    let lock = locked(&folder.join("lock"))?;
    let salt = salt(&folder.join("salt")).map_err(journal_failed)?;
    let segments = journal::segments(&folder).map_err(journal_failed)?;
    let first = segments.last().map_or(0, |last| last + 1);
    let journal = Journal::start(&folder, first).map_err(journal_failed)?;
    let (sharing, teachers) = config.sharing.unzip();
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut conversations =
        Conversations::new(format!("{:x}", since_epoch.as_millis()), taken(&config.project)?);
    let replayed =
        replay::replay(&folder, &segments, &journal, &mut conversations).map_err(journal_failed)?;
    if replayed > 0 {
        printer.note(format_args!("{replayed} conversations of the journal go on"));
    }
    let (orders, inbox) = std::sync::mpsc::channel();
    let proxy = Arc::new(Proxy {
        guard: Guard::new(config.address.ip(), config.token),
        upstreams: config.upstreams,
        sharing,
        teachers,
        labels_open: AtomicUsize::new(0),
        limits: config.limits,
        timing: config.timing,
        conversations: Mutex::new(conversations),
        seen: Seen::default(),
        journal,
        folding: Folding::new(orders),
        metrics: Metrics::default(),
        turns: Arc::new(Semaphore::new(config.limits.in_flight)),
        others: Arc::new(Semaphore::new(config.limits.in_flight)),
        salt,
        begun: Instant::now(),
        project: config.project,
        printer,
        _lock: lock,
    });
    let folding = Arc::clone(&proxy);
    let folder = std::thread::Builder::new()
        .name("fold".to_owned())
        .spawn(move || fold::run(&folding, &inbox))
        .map_err(|error| Failure::machine("cannot start a thread", &error))?;
    let server = server::start(&proxy, listener, config.threads, config.http_proxy.as_ref())?;
    Ok(Running { proxy, server, folder, address })
}

impl Running {
    /// Ends it: turns under way are finished, everything is put into the project.
    pub(crate) fn finish(self) -> Result<Done, Failure> {
        self.server.finish();
        self.proxy.journal.finish();
        self.proxy.folding.send(Order::Finish);
        let folded = self.folder.join();
        folded.unwrap_or_else(|_| Err(Failure::user("the thread that fills the project has ended")))?;
        let ended = self.proxy.metrics.by_ending().map(|(ended, count)| (ended.as_str(), count));
        let spent = self.proxy.teachers.as_ref().map(|teachers| teachers.spending.spent());
        Ok(Done { ended: ended.collect(), spent: spent.unwrap_or_default() })
    }
}

impl Proxy {
    fn conversations(&self) -> MutexGuard<'_, Conversations> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, line: Line) {
        self.journal.append(line);
    }

    /// Milliseconds since the proxy began.
    fn now_millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    #[expect(clippy::unused_self, reason = "whoever writes an entry has the proxy at hand")]
    fn timestamp(&self) -> String {
        humantime::format_rfc3339_millis(SystemTime::now()).to_string()
    }

    /// What may be seen with a client's key.
    fn scope(&self, headers: &HeaderMap) -> Fingerprint {
        let hash = blake3::keyed_hash(&self.salt, service::key_of(headers));
        Fingerprint::of(&[hash.as_bytes()])
    }

    fn in_flight(&self) -> usize {
        self.limits.in_flight - self.turns.available_permits().min(self.limits.in_flight)
    }
}

/// The lock of a project's journal, which ends with the process.
fn locked(path: &Path) -> Result<fs::File, Failure> {
    let failed = |error: std::io::Error| Failure::machine("cannot lock the proxy's journal", &error);
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Failure::user("another proxy records into this project")
            .code("project-in-use")
            .hint("end it first, or name another project with `--project`")),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Names that conversations have in the project.
fn taken(project: &Path) -> Result<HashSet<String>, Failure> {
    let ours = Filter { format: Some(recoup_proxy::FORMAT.to_owned()), ..Filter::default() };
    let rows = Store::create_or_open(project)?.list(&ours, Page::ALL)?;
    Ok(rows.into_iter().filter_map(|row| row.native_id).collect())
}

/// The salt of a project, made where there is none: a key's hash can be compared here and guessed nowhere.
fn salt(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut salt = [0; 32];
    if let Ok(mut file) = fs::File::open(path) {
        file.read_exact(&mut salt)?;
        return Ok(salt);
    }
    fs::File::open("/dev/urandom")?.read_exact(&mut salt)?;
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    // A crash in between must not leave half a salt behind.
    let new = path.with_extension("new");
    options.write(true).create(true).truncate(true);
    let mut file = options.open(&new)?;
    std::io::Write::write_all(&mut file, &salt)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    Ok(salt)
}
