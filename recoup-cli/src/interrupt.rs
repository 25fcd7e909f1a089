//! An interruption: the first Ctrl-C (or a request to end) asks for a clean end, the second one ends the
//! program at once.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Waits for an interruption between two pieces of work, so that none is cut in half.
pub(crate) struct Interrupt {
    told: Receiver<()>,
    /// Kept where no thread listens: the system's own way to end the program stands.
    _silent: Option<Sender<()>>,
}

impl Interrupt {
    /// Listens from now on. Called before other threads are started, which must not get the signals.
    pub(crate) fn listen() -> Self {
        let (teller, told) = channel();
        Self { told, _silent: listen(teller).err() }
    }

    /// Waits until an interruption comes.
    pub(crate) fn wait(&self) {
        // Nobody tells any more: the program ends.
        let _ = self.told.recv();
    }

    /// Lets the time pass, or less where an interruption comes; true if it has come.
    pub(crate) fn comes_within(&self, time: Duration) -> bool {
        !matches!(self.told.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }
}

#[cfg(unix)]
fn listen(teller: Sender<()>) -> Result<(), Sender<()>> {
    use nix::sys::signal::{SigSet, Signal, raise};
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    if signals.thread_block().is_err() {
        return Err(teller);
    }
    std::thread::spawn(move || {
        let first = signals.wait();
        let _ = teller.send(());
        if let (Ok(_), Ok(second)) = (first, signals.wait()) {
            let _ = signals.thread_unblock();
            let _ = raise(second);
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn listen(teller: Sender<()>) -> Result<(), Sender<()>> {
    Err(teller)
}
