//! The outcome of a SWE-agent run, which stands in another file: the evaluation's `report.json`.

use crate::importers::Source;
use crate::importers::object::Object;
use crate::json::Json;
use crate::trajectory::Outcome;

/// Bytes above which a report is not read.
const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Folders above the trace's own that are searched for the evaluation's.
const LEVELS_MAX: usize = 6;

/// What an evaluation says of one run.
pub(super) struct Report {
    /// Whether the tests passed.
    pub outcome: Outcome,
    /// The whole report.
    pub output: Json,
}

/// The report beside the trace, or in the evaluation's own folder
/// `run_evaluation/[<run>/]<instance>/` beneath a folder that both share and that was imported.
/// `None` where there is none, or none that says `resolved`.
pub(super) fn find(source: &Source, instance: Option<&str>) -> Option<Report> {
    let folders = source.folder_names();
    let beside = [(0, "report.json".to_owned())];
    let mut elsewhere = Vec::new();
    if let Some(instance) = instance {
        for levels in 1..=folders.len().min(LEVELS_MAX) {
            for evaluation in ["run_evaluation", "logs/run_evaluation"] {
                elsewhere.push((levels, format!("{evaluation}/{instance}/report.json")));
                for run in &folders[..levels] {
                    elsewhere.push((levels, format!("{evaluation}/{run}/{instance}/report.json")));
                }
            }
        }
    }
    beside.iter().chain(&elsewhere).find_map(|(levels, name)| {
        let bytes = source.sibling_above(*levels, name).ok()?.read_all(REPORT_BYTES_MAX).ok()?;
        read(&bytes, instance)
    })
}

/// Reads `{"resolved": …}`, or that under the instance's id.
fn read(bytes: &[u8], instance: Option<&str>) -> Option<Report> {
    let mut report: Object<'_> = serde_json::from_slice(bytes).ok()?;
    let resolved: bool = report.read("resolved").or_else(|| report.object(instance?).read("resolved"))?;
    let output = Json::from_foreign(std::str::from_utf8(bytes).ok()?);
    Some(Report { outcome: Outcome::from_flag(resolved, "report.json resolved"), output })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use super::find;
    use crate::importers::Source;
    use crate::trajectory::Status;

    fn source(root: &Path, trace: &str) -> Source {
        let path = root.join(trace);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{}").unwrap();
        Source::from_path(trace.to_owned(), path, Some(root.to_path_buf()), Arc::default())
    }

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_report_is_found_beside_the_trace_and_in_the_evaluation_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let trace = source(root, "logs/trajectories/a__b-1/a__b-1.traj");
        assert!(find(&trace, Some("a__b-1")).is_none());
        put(root, "logs/run_evaluation/a__b-1/report.json", r#"{"resolved":false}"#);
        assert_eq!(find(&trace, Some("a__b-1")).unwrap().outcome.status, Status::Failure);
        put(root, "logs/trajectories/a__b-1/report.json", r#"{"a__b-1":{"resolved":true}}"#);
        assert_eq!(find(&trace, Some("a__b-1")).unwrap().outcome.status, Status::Success);
    }

    #[test]
    fn a_run_has_its_own_evaluation_folder() {
        let folder = tempfile::tempdir().unwrap();
        let trace = source(folder.path(), "trajectories/me/run-7/a__b-1/a__b-1.traj");
        put(folder.path(), "logs/run_evaluation/run-7/a__b-1/report.json", r#"{"resolved":true}"#);
        assert_eq!(find(&trace, Some("a__b-1")).unwrap().outcome.status, Status::Success);
        assert!(find(&trace, Some("a__b-2")).is_none());
    }

    #[test]
    fn an_instance_id_never_leads_out_of_the_imported_folder() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "secret/report.json", r#"{"resolved":true}"#);
        put(folder.path(), "imported/run_evaluation/x/report.json", "[]");
        let root = folder.path().join("imported");
        let trace = source(&root, "trajectories/x/x.traj");
        for hostile in ["../../secret", "/etc", "x/../../../secret", ".."] {
            assert!(find(&trace, Some(hostile)).is_none(), "{hostile}");
        }
        assert!(find(&trace, Some("x")).is_none(), "an array is no report");
    }
}
