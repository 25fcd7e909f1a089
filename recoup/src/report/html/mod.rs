//! The page: one HTML file that needs nothing else, no network and no script.
//!
//! The content security policy forbids all loading and all scripts, so even text that escaped its
//! escaping could not act. Sections are written in reading order by [`html`]; each is one function.

mod breakdowns;
mod charts;
mod detectors;
mod failures;
mod judges;
mod opening;
mod outputs;
mod replay;
mod runs;
mod shared;
mod text;
mod views;

use std::fmt::{self, Write};

use self::text::Plain;
use super::model::Report;
use super::wording::{number, outcome as outcome_word};
use crate::trajectory::Status;

const STYLE: &str = include_str!("page.css");

/// Stripes mark what is only suspected or unknown, so that it differs by more than its color.
const PATTERNS: &str = "<svg class=defs width=0 height=0 aria-hidden=true><defs><pattern id=stripes width=6 height=6 \
patternUnits=userSpaceOnUse patternTransform=\"rotate(45)\"><rect class=stripe-ground width=6 height=6></rect>\
<rect class=stripe width=3 height=6></rect></pattern></defs></svg>";

/// The report as one page.
pub fn html(report: &Report) -> String {
    let mut out = String::with_capacity(256 * 1024);
    // Writing to a string cannot fail.
    let _ = page(&mut out, report);
    out
}

fn page(out: &mut String, report: &Report) -> fmt::Result {
    write!(
        out,
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=generator content=\"{}\">\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\
         <meta name=viewport content=\"width=device-width, initial-scale=1\"><meta name=color-scheme content=\"light dark\">\
         <meta name=referrer content=no-referrer><title>{}</title><style>{STYLE}</style></head><body>{PATTERNS}<main>",
        Plain(&report.provenance.producer),
        Plain(&report.title)
    )?;
    opening::opening(out, report)?;
    let mut body = String::new();
    sections(&mut body, report)?;
    contents(out, &body)?;
    out.push_str(&body);
    opening::footer(out, report)?;
    out.push_str("</main></body></html>\n");
    Ok(())
}

fn sections(out: &mut String, report: &Report) -> fmt::Result {
    failures::blame(out, report)?;
    failures::classes(out, report)?;
    detectors::detectors(out, report)?;
    failures::positions(out, report)?;
    judges::judges(out, report)?;
    replay::replay(out, report)?;
    shared::shared(out, report)?;
    breakdowns::breakdowns(out, report)?;
    outputs::learning(out, report)?;
    views::views(out, report)?;
    outputs::import(out, report)?;
    next(out, report)?;
    runs::runs(out, report)
}

/// Links to the sections that were written. Only [`section`] writes this markup: in foreign text its
/// first character is escaped.
fn contents(out: &mut String, body: &str) -> fmt::Result {
    out.push_str("<nav aria-label=Contents><ul>");
    for section in body.split("<section id=").skip(1) {
        let heading = section.split_once("</h2>").and_then(|(head, _)| head.split_once("><h2>"));
        if let Some((id, title)) = heading {
            write!(out, "<li><a href=\"#{id}\">{title}</a></li>")?;
        }
    }
    out.push_str("</ul></nav>");
    Ok(())
}

fn next(out: &mut String, report: &Report) -> fmt::Result {
    if report.next.is_empty() {
        return Ok(());
    }
    section(out, "next", "What to do next", "")?;
    opening::actions(out, &report.next)?;
    if let Some(attach) = report.attach.as_ref().filter(|attach| !attach.opens) {
        opening::ambiguous(out, attach)?;
    }
    out.push_str("</section>");
    Ok(())
}

/// Opens a section with its heading and one sentence on how to read it.
fn section(out: &mut String, id: &str, title: &str, how: &str) -> fmt::Result {
    write!(out, "<section id={id}><h2>{}</h2>", Plain(title))?;
    if how.is_empty() { Ok(()) } else { write!(out, "<p class=how>{}</p>", Plain(how)) }
}

/// A run's outcome, as a sign and a word.
fn outcome(out: &mut String, status: Status) -> fmt::Result {
    let sign = match status {
        Status::Success => "✓",
        Status::Failure => "✕",
        Status::Unknown => "?",
    };
    write!(
        out,
        "<span class=\"outcome {}\"><i aria-hidden=true>{sign}</i> {}</span>",
        status.as_str(),
        outcome_word(status)
    )
}

/// The last item of a list that was cut.
fn left_out(out: &mut String, count: u64, of: &str) -> fmt::Result {
    if count == 0 { Ok(()) } else { write!(out, "<li class=muted>and {} more {of}</li>", number(count)) }
}
