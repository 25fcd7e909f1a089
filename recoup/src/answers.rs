//! Answers: what a command says under `--json` where no stage's own record says it.

mod asked;
mod collected;
mod environments;
mod exported;
mod failed;
mod imported;
mod proxied;
mod replayed;
mod reviewed;

pub use self::asked::{ModelAnswer, NumberedAnswer, Questioned};
pub use self::collected::{CollectPlan, Collected, RoundCollected, RoundPlan, Success};
pub use self::environments::{Listed, Played, Serving, Versioned};
pub use self::exported::{Exported, ExportedRows, ExportedTasks};
pub use self::failed::{Failed, Origin, Problem};
pub use self::imported::{Formats, Found, Labelled, Look, Watched};
pub use self::proxied::{Proxied, Proxying};
pub use self::replayed::{ReplayPlanned, Replayed};
pub use self::reviewed::{Blind, Reviewed, Shown};
use crate::artifact::Body;
use crate::evaluation::attribution::Attribution;
use crate::models::Estimate;
use crate::pipeline::{AtifExport, Diagnosing, FlipAgreement, Injecting, Relabeling, Summary};
use crate::store::{ForgetReport, GcReport, Stats, VerifyReport};
use crate::synthesis::admission::Admission;

macro_rules! bodies {
    ($($body:ty: $format:literal,)*) => {$(
        impl Body for $body {
            const FORMAT: &'static str = $format;
        }
    )*};
}

bodies! {
    Summary: "recoup.summary",
    Formats: "recoup.formats",
    Watched: "recoup.watched",
    Diagnosing: "recoup.diagnosing",
    Stats: "recoup.stats",
    VerifyReport: "recoup.verification",
    GcReport: "recoup.collection",
    ForgetReport: "recoup.forgetting",
    Labelled: "recoup.labelling",
    Shown: "recoup.run",
    AtifExport: "recoup.export",
    Exported<'_>: "recoup.exported",
    ModelAnswer<'_>: "recoup.answer",
    Reviewed: "recoup.reviewing",
    Collected<'_>: "recoup.collected",
    CollectPlan: "recoup.collect-plan",
    RoundCollected<'_>: "recoup.round",
    RoundPlan: "recoup.round-plan",
    Replayed<'_>: "recoup.replayed",
    ReplayPlanned: "recoup.replay-plan",
    Injecting: "recoup.injected",
    Admission: "recoup.admission",
    Played<'_>: "recoup.played",
    ExportedTasks<'_>: "recoup.exported-tasks",
    Serving<'_>: "recoup.serving",
    Proxying<'_>: "recoup.proxying",
    Proxied<'_>: "recoup.proxied",
    Estimate: "recoup.estimate",
    Questioned: "recoup.questioned",
    Attribution: "recoup.attribution",
    FlipAgreement: "recoup.flip-agreement",
    Relabeling: "recoup.relabeling",
}
