//! What tests share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::importers::{
    Event, ImportOptions, Importer, LooseLabel, Source, SourceProblem, detect, sources_from_paths,
};
use recoup::trajectory::{Sealed, Trajectory};
use recoup::verdict::ReferenceLabel;
use recoup::warning::{Loss, Quarantine};

/// Everything that importing some paths gave, in order.
#[derive(Default)]
pub struct Imported {
    /// Runs, each put together again from its sealed form, with the labels that came with it.
    pub runs: Vec<(Trajectory, Vec<ReferenceLabel>)>,
    pub labels: Vec<LooseLabel>,
    pub quarantined: Vec<Quarantine>,
    /// Losses with how often each occurred.
    pub losses: BTreeMap<Loss, usize>,
    /// Files that no importer recognized.
    pub unrecognized: Vec<String>,
    pub problems: Vec<SourceProblem>,
}

impl Imported {
    pub fn trajectories(&self) -> impl Iterator<Item = &Trajectory> {
        self.runs.iter().map(|(trajectory, _)| trajectory)
    }

    pub fn node_count(&self) -> usize {
        self.trajectories().map(|run| run.nodes.len()).sum()
    }

    pub fn step_count(&self) -> usize {
        self.trajectories().flat_map(|run| &run.nodes).filter(|node| node.occurrence.sampled).count()
    }

    pub fn tool_call_count(&self) -> usize {
        self.trajectories().map(Trajectory::tool_call_count).sum()
    }

    pub fn tool_result_count(&self) -> usize {
        self.trajectories().map(Trajectory::tool_result_count).sum()
    }

    pub fn outcome_count(&self, status: recoup::trajectory::Status) -> usize {
        self.trajectories().filter(|run| run.outcome().status == status).count()
    }
}

/// Imports paths with default options.
pub fn import(paths: &[&Path]) -> Imported {
    import_with(paths, ImportOptions::default())
}

/// Imports paths; a file that cannot be read at all is a test failure.
pub fn import_with(paths: &[&Path], options: ImportOptions) -> Imported {
    let paths: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let (sources, problems) = sources_from_paths(&paths, &Arc::new(options));
    let mut imported = Imported { problems, ..Imported::default() };
    let mut read: Vec<(&dyn Importer, Vec<&Source>)> = Vec::new();
    for source in &sources {
        let Some(importer) = detect(source).expect("a readable file") else {
            imported.unrecognized.push(source.uri().to_owned());
            continue;
        };
        let joins = |(known, _): &&mut (&dyn Importer, _)| {
            importer.family().is_some() && known.family() == importer.family()
        };
        match read.iter_mut().find(joins) {
            Some((_, sources)) => sources.push(source),
            None => read.push((importer, vec![source])),
        }
    }
    for (importer, sources) in read {
        let mut events: Vec<Event> = Vec::new();
        let uri = sources[0].uri();
        importer.import_together(&sources, &mut events).unwrap_or_else(|error| panic!("{uri}: {error}"));
        for event in events {
            match event {
                Event::Trajectory(sealed) => imported.runs.push(unseal(&sealed)),
                Event::Label(label) => imported.labels.push(label),
                Event::Quarantine(quarantine) => imported.quarantined.push(quarantine),
                Event::Loss(loss) => *imported.losses.entry(loss).or_default() += 1,
            }
        }
    }
    imported
}

pub fn unseal(sealed: &Sealed) -> (Trajectory, Vec<ReferenceLabel>) {
    let bodies: Vec<_> =
        sealed.bodies.iter().map(|body| (body.hash, body.bytes.clone().into_bytes())).collect();
    let mut trajectory =
        Trajectory::unseal(&sealed.record, sealed.head.source.clone(), sealed.head.key, &bodies)
            .expect("a sealed trajectory reads back");
    assert_eq!(trajectory.id, sealed.head.id, "the id is the content's");
    trajectory.media = sealed.media.iter().cloned().collect();
    (trajectory, sealed.labels.clone())
}

/// Whether tests that take minutes run; said out loud where they do not.
pub fn slow_tests() -> bool {
    let wanted = std::env::var_os("RECOUP_SLOW_TESTS").is_some();
    if !wanted {
        eprintln!("SKIPPED: a slow test; set RECOUP_SLOW_TESTS");
    }
    wanted
}

/// A folder of the shared real traces, or `None`, said out loud, where they are absent.
///
/// They lie beside the checkout, or where `RECOUP_SHARED_DATA` says.
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
