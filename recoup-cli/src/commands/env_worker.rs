//! `recoup env-worker`: the process that a package which is not bundled runs in. Nobody types it.

use std::io;

use recoup::environments::worker::serve_worker;

use crate::Ended;
use crate::args::EnvWorkerArgs;
use crate::failure::Failure;
use crate::sandbox;

/// Shuts the process in, then answers requests from standard input.
pub(crate) fn env_worker(flags: &EnvWorkerArgs) -> Result<Ended, Failure> {
    if let Err(lacking) = sandbox::shut_in()
        && !flags.trust
    {
        let message = format!("a package cannot be shut in here: {lacking}");
        return Err(Failure::user(message)
            .code("no-sandbox")
            .hint("`--trust` runs the package without walls; read its environment.star first"));
    }
    let (input, output) = (io::BufReader::with_capacity(64 << 10, io::stdin()), io::stdout().lock());
    serve_worker(input, io::BufWriter::with_capacity(64 << 10, output))
        .map_err(|error| Failure::machine("cannot talk to the program that started this worker", &error))?;
    Ok(Ended::Done)
}
