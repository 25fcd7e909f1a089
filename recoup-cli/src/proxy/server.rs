//! The server: threads that each own their connections, and an end in which no turn is cut short.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use recoup::models::Secret;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::Proxy;
use super::relay::{Never, Outgoing};
use super::service::respond;
use super::upstream::Clients;
use crate::failure::Failure;

/// Most connections at a time.
const CONNECTIONS_MAX: usize = 4096;
/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How long turns that are under way may take when the server ends.
const DRAIN: Duration = Duration::from_secs(30);

/// The threads of a server.
pub(super) struct Server {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts the threads.
pub(super) fn start(
    proxy: &Arc<Proxy>,
    listener: TcpListener,
    threads: usize,
    http_proxy: Option<&Secret<String>>,
) -> Result<Server, Failure> {
    let (stop, stopped) = watch::channel(false);
    let teachers = proxy.teachers.iter().flat_map(|teachers| &teachers.all);
    let mut urls = teachers.map(|teacher| &teacher.base_url).chain(proxy.upstreams.urls());
    let needs_secure = urls.any(|url| url.starts_with("https://"));
    let mut workers = Vec::new();
    let mut handles = Vec::new();
    let failed = |error: std::io::Error| Failure::machine("cannot start a thread", &error);
    for number in 0..threads.max(1) {
        let clients = Clients::new(needs_secure, http_proxy)
            .map_err(|error| Failure::machine("cannot make an HTTP client", &error))?;
        let (connections, inbox) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        workers.push((connections, Arc::clone(&open)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (proxy, stopped) = (Arc::clone(proxy), stopped.clone());
        let handle = std::thread::Builder::new().name(format!("proxy-{number}")).spawn(move || {
            runtime.block_on(work(proxy, clients, inbox, open, stopped));
        });
        handles.push(handle.map_err(failed)?);
    }
    listener.set_nonblocking(true).map_err(|error| Failure::machine("cannot listen", &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = std::thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || runtime.block_on(accept(listener, workers, stopped)));
    handles.push(handle.map_err(failed)?);
    Ok(Server { stop, threads: handles })
}

impl Server {
    /// Takes no more connections, and waits until the turns under way have ended.
    pub(super) fn finish(self) {
        let _ = self.stop.send(true);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

type Worker = (mpsc::UnboundedSender<std::net::TcpStream>, Arc<AtomicUsize>);

/// Hands each connection to the thread that has the fewest.
async fn accept(listener: TcpListener, workers: Vec<Worker>, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            // The client has gone already, or there are too many open files for now.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let total: usize = workers.iter().map(|(_, open)| open.load(Ordering::Relaxed)).sum();
        let fewest = workers.iter().min_by_key(|(_, open)| open.load(Ordering::Relaxed));
        if let (Some((connections, open)), true, Ok(stream)) =
            (fewest, total < CONNECTIONS_MAX, stream.into_std())
        {
            open.fetch_add(1, Ordering::Relaxed);
            let _ = connections.send(stream);
        }
    }
}

async fn work(
    proxy: Arc<Proxy>,
    clients: Clients,
    mut inbox: mpsc::UnboundedReceiver<std::net::TcpStream>,
    open: Arc<AtomicUsize>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let stream = tokio::select! {
            stream = inbox.recv() => stream,
            _ = stopped.changed() => None,
        };
        let Some(stream) = stream else { break };
        let Ok(stream) = TcpStream::from_std(stream) else {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        };
        let (proxy, clients, stopped) = (Arc::clone(&proxy), clients.clone(), stopped.clone());
        let open = Arc::clone(&open);
        tokio::spawn(async move {
            converse(proxy, clients, stream, stopped).await;
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    let drained = async {
        while open.load(Ordering::Relaxed) > 0 || proxy.labels_open.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // What takes longer is cut, and recorded as such.
    let _ = tokio::time::timeout(DRAIN, drained).await;
}

async fn converse(
    proxy: Arc<Proxy>,
    clients: Clients,
    stream: TcpStream,
    mut stopped: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let (proxy, clients) = (Arc::clone(&proxy), clients.clone());
        async move { Ok::<Response<Outgoing>, Never>(respond(proxy, clients, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
