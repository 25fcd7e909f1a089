//! The servers between: recoup's proxy and, to compare, LiteLLM's.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long LiteLLM may take to start.
const START_WITHIN: Duration = Duration::from_mins(2);

/// A server, ended with this value.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// `recoup proxy` on a new project.
    pub(crate) fn recoup(binary: &str, project: &Path, upstream: &str) -> Self {
        let mut child = Command::new(binary)
            .args(["proxy", "--json", "--port", "0", "--rest", "2s", "--forget", "10s", "--upstream"])
            .arg(format!("http://{upstream}/v1"))
            .arg("--project")
            .arg(project)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// LiteLLM's proxy with one worker, its default.
    pub(crate) fn litellm(binary: &str, folder: &Path, upstream: &str) -> Self {
        let config = folder.join("litellm.yaml");
        let text = format!(
            "model_list:\n  - model_name: toy\n    litellm_params:\n      model: openai/toy\n      api_base: http://{upstream}/v1\n      api_key: k\n"
        );
        std::fs::write(&config, text).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(binary)
            .arg("--config")
            .arg(config)
            .args(["--host", "127.0.0.1", "--port"])
            .arg(port.to_string())
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("LITELLM_LOG", "ERROR")
            .env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, address };
        let started = Instant::now();
        while std::net::TcpStream::connect(&server.address).is_err() {
            let has_ended = server.child.try_wait().unwrap().is_some();
            assert!(!has_ended && started.elapsed() < START_WITHIN, "LiteLLM's proxy does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// Resident bytes, and the greatest so far.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
        };
        (kib("VmRSS:"), kib("VmHWM:"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
