//! Inline SVG charts. Positions are percentages of the width and heights are pixels, so a chart fills
//! its column on a phone and on paper without scaling its text. Each says its content in words, in a
//! `<title>` and `<desc>` or in the text beside it, so color is never the only carrier.

use crate::triage::SEVERITY_MAX_TRAINED;
use std::fmt::{self, Write};

use super::super::model::{Curves, Positions, Rate, Severities};
use super::super::wording::{number, outcome, percent, rate as rate_words, runs, two_decimals};
use super::text::Plain;
use crate::trajectory::Status;

/// One part of a stacked bar.
pub(super) struct Part {
    /// Class in the style sheet, which gives the color.
    pub(super) style: &'static str,
    /// Name.
    pub(super) name: String,
    /// Size.
    pub(super) value: u64,
}

/// Least share that has room for its own label.
const LABELLED: f64 = 0.1;

/// Parts of a whole, in one bar with a legend beneath. Empty parts are left out.
pub(super) fn stacked(out: &mut String, title: &str, parts: &[Part]) -> fmt::Result {
    out.push_str("<figure class=stack>");
    whole(out, title, parts)?;
    out.push_str("<figcaption><ul class=legend>");
    let total: u64 = parts.iter().map(|part| part.value).sum();
    for part in parts.iter().filter(|part| part.value > 0) {
        write!(
            out,
            "<li>{}<span>{}</span> <b>{}</b> <small>{}</small></li>",
            key(part.style),
            Plain(&part.name),
            number(part.value),
            percent(part.value as f64 / total as f64)
        )?;
    }
    out.push_str("</ul></figcaption></figure>");
    Ok(())
}

/// The bar alone, for what is listed beside it with the same keys.
pub(super) fn whole(out: &mut String, title: &str, parts: &[Part]) -> fmt::Result {
    let total: u64 = parts.iter().map(|part| part.value).sum();
    if total == 0 {
        return Ok(());
    }
    let shown: Vec<(&Part, f64)> = parts
        .iter()
        .filter(|part| part.value > 0)
        .map(|part| (part, part.value as f64 / total as f64))
        .collect();
    let words: Vec<String> = shown
        .iter()
        .map(|(part, share)| format!("{} {} ({})", part.name, number(part.value), percent(*share)))
        .collect();
    write!(
        out,
        "<svg class=whole width=\"100%\" height=40 role=img><title>{}</title><desc>{}</desc>",
        Plain(title),
        Plain(&words.join(", "))
    )?;
    let mut x = 0.0;
    for (part, share) in &shown {
        write!(
            out,
            "<rect class={} x=\"{:.3}%\" width=\"{:.3}%\" height=40></rect>",
            part.style,
            x * 100.0,
            share * 100.0
        )?;
        if x > 0.0 {
            write!(out, "<line class=gap x1=\"{0:.3}%\" x2=\"{0:.3}%\" y1=0 y2=40></line>", x * 100.0)?;
        }
        if *share >= LABELLED {
            write!(
                out,
                "<text class=\"on {}\" x=\"{:.3}%\" y=25 text-anchor=middle>{}</text>",
                part.style,
                (x + share / 2.0) * 100.0,
                percent(*share)
            )?;
        }
        x += share;
    }
    out.push_str("</svg>");
    Ok(())
}

/// A color's key.
pub(super) fn key(style: &str) -> String {
    format!(
        "<svg class=key width=12 height=12 aria-hidden=true><rect class={style} width=12 height=12 rx=2></rect></svg>"
    )
}

/// A share as a bar with its interval.
pub(super) fn bar(out: &mut String, style: &str, share: &Rate) -> fmt::Result {
    open_scale(out, &rate_words(share))?;
    let (rate, low, high) = (share.rate * 100.0, share.low * 100.0, share.high * 100.0);
    write!(out, "<rect class=\"{style} soft\" width=\"{rate:.2}%\" y=5 height=14></rect>")?;
    write!(out, "<line class=\"whisker {style}\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=12 y2=12></line>")?;
    write!(out, "<circle class={style} cx=\"{rate:.2}%\" cy=12 r=4.5></circle></svg>")
}

/// A count as a bar out of the greatest; the second part is hatched.
pub(super) fn count_bar(
    out: &mut String,
    style: &str,
    solid: u64,
    hatched: u64,
    greatest: u64,
) -> fmt::Result {
    let width = |n: u64| n as f64 / greatest.max(1) as f64 * 100.0;
    write!(
        out,
        "<svg class=scale width=\"100%\" height=24 aria-hidden=true><rect class=track width=\"100%\" y=5 height=14></rect>"
    )?;
    write!(out, "<rect class={style} width=\"{:.2}%\" y=5 height=14></rect>", width(solid))?;
    write!(
        out,
        "<rect class=unknown x=\"{:.2}%\" width=\"{:.2}%\" y=5 height=14></rect></svg>",
        width(solid),
        width(hatched)
    )
}

/// Shares of the runs of each outcome, on one scale: each a mark with its interval.
pub(super) fn marks(out: &mut String, shares: &[(Status, &Rate)], end: f64) -> fmt::Result {
    let words: Vec<String> =
        shares.iter().map(|(status, share)| format!("{} {}", outcome(*status), rate_words(share))).collect();
    open_scale(out, &words.join(", "))?;
    // Drawn from the last to the first, so the first lies on top.
    for (status, share) in shares.iter().rev() {
        let [rate, low, high] = [share.rate, share.low, share.high].map(|at| at / end * 100.0);
        let style = status.as_str();
        let (hollow, radius) = if *status == Status::Failure { ("", 5.5) } else { ("hollow ", 4.5) };
        write!(
            out,
            "<line class=\"whisker {style}\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=12 y2=12></line>\
             <circle class=\"{hollow}{style}\" cx=\"{rate:.2}%\" cy=12 r={radius}></circle>"
        )?;
    }
    out.push_str("</svg>");
    Ok(())
}

/// The end of a scale that holds every interval: a round share.
pub(super) fn scale_end<'a>(shares: impl Iterator<Item = &'a Rate>) -> f64 {
    let most = shares.map(|share| share.high).fold(0.0, f64::max);
    [0.1, 0.2, 0.4, 0.6, 0.8].into_iter().find(|&end| most <= end).unwrap_or(1.0)
}

/// A share with its interval where there is one.
pub(super) fn mark(
    out: &mut String,
    title: &str,
    (at, low, high): (f64, Option<f64>, Option<f64>),
) -> fmt::Result {
    open_scale(out, title)?;
    whisker(out, "success", (low.map(|low| low * 100.0), high.map(|high| high * 100.0)))?;
    write!(out, "<circle class=success cx=\"{:.2}%\" cy=12 r=4.5></circle></svg>", at * 100.0)
}

/// A difference in points on a scale from −100 to +100, with the line of no difference.
pub(super) fn difference(
    out: &mut String,
    title: &str,
    (at, low, high): (f64, Option<f64>, Option<f64>),
) -> fmt::Result {
    let place = |points: f64| 50.0 + points / 2.0;
    open_scale(out, title)?;
    out.push_str("<line class=base x1=\"50%\" x2=\"50%\" y1=0 y2=24></line>");
    let style = match (low, high) {
        (Some(low), _) if low > 0.0 => "success",
        (_, Some(high)) if high < 0.0 => "failure",
        _ => "unknown",
    };
    whisker(out, style, (low.map(place), high.map(place)))?;
    write!(out, "<circle class={style} cx=\"{:.2}%\" cy=12 r=4.5></circle></svg>", place(at))
}

/// The labels under a column of differences, as the last of the rows.
pub(super) fn difference_axis(out: &mut String) {
    out.push_str(
        "<div class=\"row scale-end\"><div class=what></div><div class=chart>\
         <svg class=axis width=\"100%\" height=16 aria-hidden=true><text x=0 y=12>−100</text>\
         <text x=\"50%\" y=12 text-anchor=middle>no difference</text>\
         <text x=\"100%\" y=12 text-anchor=end>+100</text></svg></div></div>",
    );
}

fn whisker(out: &mut String, style: &str, (low, high): (Option<f64>, Option<f64>)) -> fmt::Result {
    let (Some(low), Some(high)) = (low, high) else { return Ok(()) };
    write!(out, "<line class=\"whisker {style}\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=12 y2=12></line>")
}

/// Height of the curves' +1, 0 and −1, in pixels from their top.
const CURVE: (f64, f64, f64) = (10.0, 60.0, 110.0);

/// Recoverability and flip effects of a run, by step.
pub(super) fn curves(out: &mut String, curves: &Curves) -> fmt::Result {
    let sweep = &curves.sweep;
    let x = |step: usize| (step as f64 + 0.5) / (curves.steps + 1) as f64 * 100.0;
    let y = |effect: f64| CURVE.1 - effect * (CURVE.1 - CURVE.0);
    let words: Vec<String> = sweep
        .flips
        .iter()
        .map(|flip| {
            format!("step {}: {:+.2} ({:+.2} to {:+.2})", flip.step, flip.effect, flip.low, flip.high)
        })
        .collect();
    let last = sweep.last_recoverable.map_or_else(|| "no step".to_owned(), |last| format!("step {last}"));
    write!(
        out,
        "<svg class=histogram width=\"100%\" height=136 role=img><title>Recoverable until {last}</title><desc>{}</desc>\
         <line class=base x1=0 x2=\"100%\" y1={1} y2={1}></line>",
        Plain(&words.join(", ")),
        CURVE.1
    )?;
    for pair in sweep.recoverability.windows(2) {
        let [from, to] = pair else { continue };
        let height = |recovered: bool| y(f64::from(recovered));
        write!(
            out,
            "<line class=\"whisker infrastructure\" x1=\"{:.2}%\" y1={:.0} x2=\"{:.2}%\" y2={:.0}></line>",
            x(from.step),
            height(from.recovered),
            x(to.step),
            height(to.recovered)
        )?;
    }
    for flip in &sweep.flips {
        let decisive = sweep.decisive.is_some_and(|decisive| decisive.step == flip.step);
        let (style, hollow) = if decisive { ("success", "") } else { ("unknown", "hollow ") };
        write!(
            out,
            "<line class=\"whisker {style}\" x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1={1:.1} y2={2:.1}></line>\
             <circle class=\"{hollow}{style}\" cx=\"{0:.2}%\" cy={3:.1} r=4.5></circle>",
            x(flip.step),
            y(flip.low.clamp(-1.0, 1.0)),
            y(flip.high.clamp(-1.0, 1.0)),
            y(flip.effect)
        )?;
    }
    out.push_str(
        "<text class=tick-label x=0 y=130>first step</text>\
         <text class=tick-label x=\"100%\" y=130 text-anchor=end>end</text></svg>",
    );
    Ok(())
}

fn open_scale(out: &mut String, title: &str) -> fmt::Result {
    write!(
        out,
        "<svg class=scale width=\"100%\" height=24 role=img><title>{}</title><rect class=track width=\"100%\" y=5 height=14></rect>",
        Plain(title)
    )?;
    for quarter in ["25%", "50%", "75%"] {
        write!(out, "<line class=tick x1=\"{quarter}\" x2=\"{quarter}\" y1=5 y2=19></line>")?;
    }
    Ok(())
}

/// The labels under a column of scales, as the last of the rows.
pub(super) fn axis(out: &mut String, end: f64) -> fmt::Result {
    write!(
        out,
        "<div class=\"row scale-end\"><div class=what></div><div class=chart>\
         <svg class=axis width=\"100%\" height=16 aria-hidden=true><text x=0 y=12>0%</text>\
         <text x=\"50%\" y=12 text-anchor=middle>{}</text><text x=\"100%\" y=12 text-anchor=end>{}</text></svg></div></div>",
        percent(end / 2.0),
        percent(end)
    )
}

/// Severities by tenth, with the line above which a failure teaches nothing.
pub(super) fn severities(out: &mut String, severities: &Severities) -> fmt::Result {
    let most = severities.tenths.iter().copied().max().unwrap_or(0).max(1);
    write!(
        out,
        "<svg class=severity width=100 height=26 role=img><title>mean severity {}, {} above {SEVERITY_MAX_TRAINED}</title>",
        two_decimals(severities.mean),
        runs(severities.too_severe)
    )?;
    for (tenth, &count) in severities.tenths.iter().enumerate() {
        let height = if count == 0 { 1.0 } else { (count as f64 / most as f64 * 22.0).max(2.5) };
        let style = if tenth as f64 / 10.0 >= SEVERITY_MAX_TRAINED { "failure" } else { "mild" };
        write!(
            out,
            "<rect class={style} x={} width=8 y={:.1} height={height:.1}></rect>",
            tenth * 10 + 1,
            24.0 - height
        )?;
    }
    write!(
        out,
        "<line class=limit x1={0:.0} x2={0:.0} y1=0 y2=26></line></svg>",
        SEVERITY_MAX_TRAINED * 100.0
    )
}

/// Where the histogram's columns stand, in pixels from its top.
const FLOOR: f64 = 164.0;

/// Decisive steps by tenth of the run.
pub(super) fn histogram(out: &mut String, positions: &Positions) -> fmt::Result {
    let totals: Vec<u64> = positions
        .failures
        .iter()
        .zip(&positions.suspected)
        .map(|(failures, suspected)| failures + suspected)
        .collect();
    let most = totals.iter().copied().max().unwrap_or(0).max(1) as f64;
    let words: Vec<String> = totals
        .iter()
        .enumerate()
        .map(|(tenth, n)| format!("{}–{}%: {n}", tenth * 10, tenth * 10 + 10))
        .collect();
    write!(
        out,
        "<svg class=histogram width=\"100%\" height=190 role=img><title>Decisive steps by tenth of the run</title><desc>{}</desc>",
        Plain(&words.join(", "))
    )?;
    for (tenth, (&failures, &suspected)) in positions.failures.iter().zip(&positions.suspected).enumerate() {
        let x = tenth as f64 * 10.0;
        let (solid, hatched) = (failures as f64 / most * 140.0, suspected as f64 / most * 140.0);
        write!(
            out,
            "<rect class=failure x=\"{:.1}%\" width=\"9%\" y={:.1} height={solid:.1}></rect>",
            x + 0.5,
            FLOOR - solid
        )?;
        write!(
            out,
            "<rect class=unknown x=\"{:.1}%\" width=\"9%\" y={:.1} height={hatched:.1}></rect>",
            x + 0.5,
            FLOOR - solid - hatched
        )?;
        if failures + suspected > 0 {
            write!(
                out,
                "<text class=value x=\"{:.1}%\" y={:.1} text-anchor=middle>{}</text>",
                x + 5.0,
                FLOOR - solid - hatched - 6.0,
                number(failures + suspected)
            )?;
        }
    }
    write!(out, "<line class=base x1=0 x2=\"100%\" y1={FLOOR} y2={FLOOR}></line>")?;
    out.push_str(
        "<text class=tick-label x=0 y=182>first step</text>\
         <text class=tick-label x=\"50%\" y=182 text-anchor=middle>halfway</text>\
         <text class=tick-label x=\"100%\" y=182 text-anchor=end>last step</text></svg>",
    );
    Ok(())
}

/// Where in a run its decisive step stands.
pub(super) fn position(out: &mut String, step: usize, steps: usize) -> fmt::Result {
    let share = if steps == 0 { 0.0 } else { (step.min(steps - 1) as f64 + 0.5) / steps as f64 };
    write!(
        out,
        "<svg class=position width=64 height=8 aria-hidden=true><rect class=track width=64 y=2 height=4 rx=2></rect>\
         <circle class=failure cx={:.1} cy=4 r=4></circle></svg>",
        4.0 + share * 56.0
    )
}

/// A figure of one round of collection.
pub(super) struct AtRound {
    /// Round, from 1.
    pub(super) round: u32,
    /// The figure.
    pub(super) value: f64,
    /// Its interval, where there is one.
    pub(super) interval: Option<(f64, f64)>,
}

/// Height of the highest and the lowest figure, in pixels from the top.
const PLOT: (f64, f64) = (24.0, 124.0);

/// A figure round by round, from 0 (or the least, where that is below) to the greatest. Nothing without points.
pub(super) fn by_round(
    out: &mut String,
    style: &str,
    title: &str,
    points: &[AtRound],
    said: impl Fn(f64) -> String,
) -> fmt::Result {
    if points.is_empty() {
        return Ok(());
    }
    let bounds = |point: &AtRound| point.interval.unwrap_or((point.value, point.value));
    let low = points.iter().map(|point| bounds(point).0.min(point.value)).fold(0.0, f64::min);
    let high = points.iter().map(|point| bounds(point).1.max(point.value)).fold(0.0, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let y = |value: f64| PLOT.1 - (value - low) / span * (PLOT.1 - PLOT.0);
    let x = |place: usize| (place as f64 + 0.5) / points.len() as f64 * 100.0;
    let words: Vec<String> = points
        .iter()
        .map(|point| {
            let interval = point.interval.map(|(low, high)| format!(" ({} to {})", said(low), said(high)));
            format!("round {}: {}{}", point.round, said(point.value), interval.unwrap_or_default())
        })
        .collect();
    write!(
        out,
        "<figure class=curves><figcaption>{0}</figcaption><svg class=histogram width=\"100%\" height=150 role=img>\
         <title>{0}</title><desc>{1}</desc><line class=base x1=0 x2=\"100%\" y1={2:.1} y2={2:.1}></line>",
        Plain(title),
        Plain(&words.join(", ")),
        y(0.0)
    )?;
    for (place, pair) in points.windows(2).enumerate() {
        let [from, to] = pair else { continue };
        write!(
            out,
            "<line class=\"whisker {style}\" x1=\"{:.2}%\" y1={:.1} x2=\"{:.2}%\" y2={:.1}></line>",
            x(place),
            y(from.value),
            x(place + 1),
            y(to.value)
        )?;
    }
    for (place, point) in points.iter().enumerate() {
        if let Some((low, high)) = point.interval {
            write!(
                out,
                "<line class=\"whisker {style}\" x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1={1:.1} y2={2:.1}></line>",
                x(place),
                y(low),
                y(high)
            )?;
        }
        write!(
            out,
            "<circle class={style} cx=\"{0:.2}%\" cy={1:.1} r=4.5></circle>\
             <text class=value x=\"{0:.2}%\" y={2:.1} text-anchor=middle>{3}</text>\
             <text class=tick-label x=\"{0:.2}%\" y=146 text-anchor=middle>round {4}</text>",
            x(place),
            y(point.value),
            y(bounds(point).1.max(point.value)) - 8.0,
            said(point.value),
            point.round
        )?;
    }
    out.push_str("</svg></figure>");
    Ok(())
}
