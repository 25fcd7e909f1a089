//! `recoup env serve`: tasks for other programs' agents and trainers.
//!
//! * Over a port: OpenEnv's verbs ([`openenv`]) and MCP ([`mcp`]), behind one [`guard`].
//! * Over standard input and output: MCP about one task.
//!
//! Connections, episodes and sizes are bounded; an idle connection is closed.

mod guard;
mod http;
mod mcp;
mod openenv;
mod sessions;
mod websocket;

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use recoup::answers::Serving;
use serde_json::{Map, Value, json};

use self::guard::Guard;
use self::http::{BODY_MAX, Request, Response};
use self::openenv::{Refused, Tasks};
use self::sessions::Sessions;
use super::super::environment;
use super::episode::Episode;
use super::play::seed_of;
use crate::Ended;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::printer::Printer;

/// Most connections at a time.
const CONNECTIONS_MAX: usize = 128;
/// How long a client may take to send a request.
const REQUEST_WITHIN: Duration = Duration::from_mins(1);

/// Serves until it is stopped, or until standard input ends.
pub(crate) fn serve(flags: &ServeArgs, printer: Printer) -> Result<Ended, Failure> {
    if !flags.host.is_loopback() && flags.token.as_deref().is_none_or(str::is_empty) {
        return Err(Failure::user(format!("{} can be reached by others, and there is no token", flags.host))
            .code("no-token")
            .hint("set one with `--token` or RECOUP_SERVE_TOKEN, or leave `--host` out"));
    }
    let environment = environment::open(&flags.named.package, flags.named.trust)?;
    let seed = seed_of(&*environment, &flags.task)?;
    if flags.mcp {
        let mut episode = Episode::start(&*environment, seed, flags.task.difficulty)?;
        return serve_stdio(environment.identity(), &mut episode, printer);
    }
    let families = environment.identity().manifest.families.len() as u64;
    let distance = if flags.task.family.is_some() { families } else { 1 };
    let name = format!("{} {}", environment.identity().manifest.name, environment.identity().version());
    let address = SocketAddr::new(flags.host, flags.port);
    let listener = TcpListener::bind(address).map_err(|error| {
        let failure = Failure::machine(&format!("cannot listen on {address}"), &error).code("port");
        if error.kind() == io::ErrorKind::AddrInUse {
            return failure.hint("another program uses the port; `--port 0` takes a free one");
        }
        failure
    })?;
    let bound = listener.local_addr().map_err(|error| Failure::machine("cannot listen", &error))?;
    let url = format!("http://{bound}");
    if printer.is_json() {
        let flags = (seed, flags.task.difficulty);
        let serving = Serving { environment: &name, url: &url };
        printer.json(&environment::answer(&*environment, &flags, serving));
    } else {
        printer.line(format_args!("{name} at {url}: OpenEnv's verbs, and MCP at {url}/mcp"));
    }
    let server = Arc::new(Server {
        tasks: Tasks::new(environment, seed, distance, flags.task.difficulty),
        guard: Guard::new(flags.host, flags.token.clone()),
        sessions: Sessions::default(),
        connections: AtomicUsize::new(0),
    });
    listen(&listener, &server, printer)
}

/// MCP, one message a line, until the input ends.
fn serve_stdio(
    identity: &recoup::environments::Identity,
    episode: &mut Episode,
    printer: Printer,
) -> Result<Ended, Failure> {
    let mut stdin = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let read = stdin.by_ref().take(BODY_MAX as u64).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::machine("cannot read standard input", &error))? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty()
            && let Some(answer) = mcp::answer(identity, episode, &text)
        {
            printer.json(&answer);
        }
    }
    let score = episode.score()?;
    printer.note(format_args!("{} steps, score {}", episode.steps(), score.score));
    Ok(Ended::Done)
}

fn listen(listener: &TcpListener, server: &Arc<Server>, printer: Printer) -> Result<Ended, Failure> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The client has gone already, or there are too many open files for now.
            Err(error) => {
                printer.warn(format_args!("a connection was lost: {error}"));
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let _ = stream.set_read_timeout(Some(REQUEST_WITHIN));
        let _ = stream.set_write_timeout(Some(REQUEST_WITHIN));
        let _ = stream.set_nodelay(true);
        if server.connections.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
            server.connections.fetch_sub(1, Ordering::SeqCst);
            let _ = Response::error(503, "too many connections").write(&mut stream);
            continue;
        }
        let connection = Connection(server.clone());
        let spawned = std::thread::Builder::new()
            .name("connection".to_owned())
            .spawn(move || connection.0.converse(stream));
        if let Err(error) = spawned {
            printer.warn(format_args!("a connection was lost: {error}"));
        }
    }
}

/// A connection that is counted while it lives.
struct Connection(Arc<Server>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What all connections share.
struct Server {
    tasks: Tasks,
    guard: Guard,
    sessions: Sessions,
    connections: AtomicUsize,
}

impl Server {
    /// Answers the requests of a connection until one side closes it.
    fn converse(&self, stream: TcpStream) {
        let Ok(mut out) = stream.try_clone() else { return };
        let mut stream = BufReader::new(stream);
        loop {
            let mut request = match Request::read(&mut stream) {
                Ok(Some(request)) => request,
                Ok(None) | Err(None) => return,
                Err(Some(refusal)) => {
                    let _ = refusal.write(&mut out);
                    return http::hear_out(stream);
                }
            };
            let closes = request.closes();
            if let Err(refusal) = self.guard.check(&mut request) {
                let _ = refusal.write(&mut out);
                return;
            }
            if request.path == "/ws" && request.has("upgrade") {
                return websocket::converse(&self.tasks, &request, stream, &mut out);
            }
            if self.respond(&request).write(&mut out).is_err() || closes {
                return;
            }
        }
    }

    fn respond(&self, request: &Request) -> Response {
        let answered = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/health") => Ok(json!({ "status": "healthy" })),
            ("GET", "/metadata") => Ok(self.metadata()),
            ("GET", "/schema") => Ok(openenv::schema()),
            ("GET", "/state") => Ok(self.state(request)),
            ("POST", "/reset") => self.reset(request),
            ("POST", "/step") => self.step(request),
            (method, "/mcp") => return self.mcp(method, request),
            (_, "/health" | "/metadata" | "/schema" | "/state" | "/reset" | "/step") => {
                return Response::error(405, "the method is another here");
            }
            _ => return Response::error(404, "there is nothing at this path"),
        };
        match answered {
            Ok(body) => Response::json(200, &body),
            Err(Refused { code, message }) => {
                let status = if code == "EXECUTION_ERROR" { 500 } else { 422 };
                Response::json(status, &json!({ "error": { "code": code, "message": message } }))
            }
        }
    }

    fn metadata(&self) -> Value {
        let identity = self.tasks.environment.identity();
        json!({
            "name": identity.manifest.name,
            "description": identity.manifest.description,
            "version": identity.version(),
        })
    }

    fn reset(&self, request: &Request) -> Result<Value, Refused> {
        let data = object(&request.body)?;
        let id = episode_id(&data)?;
        let episode = self.tasks.reset(&data)?;
        let shown = self.tasks.started(&episode);
        self.sessions.put(&id, episode);
        Ok(shown)
    }

    fn step(&self, request: &Request) -> Result<Value, Refused> {
        let data = object(&request.body)?;
        let action = data.get("action").and_then(Value::as_object);
        let action = action.ok_or_else(|| Refused::invalid("`action` is no JSON object"))?;
        self.with_episode(&episode_id(&data)?, |episode| openenv::step(episode, action))
    }

    fn state(&self, request: &Request) -> Value {
        let id = request.query.split('&').find_map(|pair| pair.strip_prefix("episode_id="));
        let id = id.unwrap_or(DEFAULT_EPISODE);
        match self.sessions.get(id) {
            None => self.tasks.state(None, id),
            Some(session) => self.tasks.state(Some(&*sessions::lock(&session)), id),
        }
    }

    fn with_episode<T>(
        &self,
        id: &str,
        act: impl FnOnce(&mut Episode) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let session = self.sessions.get(id);
        let session = session.ok_or_else(|| Refused::invalid("reset comes before step"))?;
        act(&mut sessions::lock(&session))
    }

    /// MCP over HTTP: a session begins with `initialize` and is named by a header from there on.
    fn mcp(&self, method: &str, request: &Request) -> Response {
        const HEADER: &str = "Mcp-Session-Id";
        let identity = self.tasks.environment.identity();
        let Ok(text) = std::str::from_utf8(&request.body) else { return Response::error(400, "not UTF-8") };
        match (method, request.header(HEADER)) {
            ("POST", None) if !mcp::opens(text) => match mcp::unopened(text) {
                Some(refusal) => Response::json(200, &refusal),
                None => Response::empty(202),
            },
            ("POST", None) => {
                let mut episode = match self.tasks.reset(&Map::new()) {
                    Ok(episode) => episode,
                    Err(Refused { message, .. }) => return Response::error(500, &message),
                };
                let answer = mcp::answer(identity, &mut episode, text).unwrap_or_default();
                Response::json(200, &answer).with(HEADER, self.sessions.put_new(episode))
            }
            ("POST", Some(id)) => match self.sessions.get(id) {
                None => Response::error(404, "there is no such session"),
                Some(session) => match mcp::answer(identity, &mut sessions::lock(&session), text) {
                    Some(answer) => Response::json(200, &answer),
                    None => Response::empty(202),
                },
            },
            ("DELETE", Some(id)) => {
                self.sessions.remove(id);
                Response::empty(204)
            }
            _ => Response::error(405, "this server sends nothing by itself").with("Allow", "POST, DELETE"),
        }
    }
}

/// The episode of a request that names none.
const DEFAULT_EPISODE: &str = "default";

fn object(body: &[u8]) -> Result<Map<String, Value>, Refused> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(data)) => Ok(data),
        _ => Err(Refused { code: "INVALID_JSON", message: "the body is no JSON object".to_owned() }),
    }
}

fn episode_id(data: &Map<String, Value>) -> Result<String, Refused> {
    match data.get("episode_id") {
        None | Some(Value::Null) => Ok(DEFAULT_EPISODE.to_owned()),
        Some(Value::String(id)) if id.len() <= 255 => Ok(id.clone()),
        Some(_) => Err(Refused::invalid("`episode_id` is a text of at most 255 bytes")),
    }
}
