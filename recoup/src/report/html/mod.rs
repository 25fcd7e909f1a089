//! The page.
use super::model::Report;
/// The report as one page.
pub fn html(report: &Report) -> String {
    format!("<!doctype html><title>{}</title>", report.format)
}
