//! Times near-duplicates: sketches every run of some files, then finds the clusters among them.
//!
//! `near_duplicates FILE…` prints one line of JSON: runs, bytes of their messages, seconds for sketches on one
//! thread, seconds for clusters, runs that an earlier one nearly equals.

use std::time::Instant;

use recoup::deduplication::{Sketch, first_of_cluster};
use recoup::importers::{Event, Sink, SinkError, detect, sources_from_paths};
use recoup::trajectory::{Node, body_from_bytes};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sketches runs as they come and drops them.
#[derive(Default)]
struct Sketching {
    sketches: Vec<Sketch>,
    runs: usize,
    bytes: usize,
    seconds: f64,
}

impl Sink for Sketching {
    fn event(&mut self, event: Event) -> Result<(), SinkError> {
        let Event::Trajectory(sealed) = event else { return Ok(()) };
        let nodes = sealed.bodies.iter().map(|body| body_from_bytes(body.bytes.as_bytes()));
        let nodes: Vec<Node> = nodes.collect::<Result<_, _>>().map_err(|error| SinkError(Box::new(error)))?;
        let start = Instant::now();
        self.sketches.extend(Sketch::of(&nodes));
        self.seconds += start.elapsed().as_secs_f64();
        self.runs += 1;
        self.bytes += sealed.bodies.iter().map(|body| body.bytes.len()).sum::<usize>();
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "a program")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let mut sketching = Sketching::default();
    for source in sources_from_paths(&paths, &std::sync::Arc::default()).0 {
        if let Some(importer) = detect(&source)? {
            importer.import(&source, &mut sketching)?;
        }
    }
    let start = Instant::now();
    let first = first_of_cluster(&sketching.sketches);
    let cluster_seconds = start.elapsed().as_secs_f64();
    let near = first.iter().enumerate().filter(|(at, first)| at != *first).count();
    println!(
        "{}",
        serde_json::json!({
            "runs": sketching.runs,
            "bytes": sketching.bytes,
            "sketch_s": sketching.seconds,
            "cluster_s": cluster_seconds,
            "near_duplicates": near,
        })
    );
    Ok(())
}
