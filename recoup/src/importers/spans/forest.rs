//! The trees that a trace's spans form: parents, agents and the order in time.

use std::collections::{BTreeSet, HashMap};

use super::span::{Kind, Span, Trace};

/// Where a span stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) parent: Option<usize>,
    /// The nearest agent's span above it.
    pub(super) agent: Option<usize>,
    /// Agents' spans above it.
    pub(super) depth: usize,
}

/// Finds each span's place and puts the spans in order of time. What the spans say wrongly of their
/// places is noted.
pub(super) fn plant(trace: &mut Trace<'_>) -> Vec<Place> {
    let mut lost = BTreeSet::new();
    unite(&mut trace.spans, &mut lost);
    // Those without a time keep their place in the file, before the others.
    trace.spans.sort_by(|one, other| (&one.start, &one.end).cmp(&(&other.start, &other.end)));
    let spans = &trace.spans;
    let mut by_id: HashMap<&str, usize> = HashMap::with_capacity(spans.len());
    for (index, span) in spans.iter().enumerate() {
        by_id.entry(&span.id).or_insert(index);
    }
    let mut parents: Vec<Option<usize>> = Vec::with_capacity(spans.len());
    for (index, span) in spans.iter().enumerate() {
        let found = span.parent.as_deref().map(|parent| by_id.get(parent).copied());
        if found == Some(None) {
            lost.insert(("span.parent", "the parent is not recorded"));
        }
        parents.push(found.flatten().filter(|parent| *parent != index));
    }
    cut_circles(&mut parents, &mut lost);
    for (span, parent) in spans.iter().zip(&parents) {
        let above = parent.and_then(|parent| spans.get(parent)?.start.as_ref());
        if matches!((&span.start, above), (Some(start), Some(above)) if start < above) {
            lost.insert(("span.start", "begins before the span it is part of; the clocks differ"));
        }
        if matches!((&span.start, &span.end), (Some(start), Some(end)) if end < start) {
            lost.insert(("span.end", "ends before it begins"));
        }
    }
    let places = places(spans, &parents);
    trace.lost.extend(lost.into_iter().map(|(field, reason)| (field.to_owned(), reason)));
    places
}

/// Makes one of spans that are the same operation: of a span stored again the last record counts.
fn unite(spans: &mut Vec<Span<'_>>, lost: &mut BTreeSet<(&'static str, &'static str)>) {
    let mut last: HashMap<(String, String), usize> = HashMap::with_capacity(spans.len());
    let mut ids: HashMap<String, usize> = HashMap::with_capacity(spans.len());
    for (index, span) in spans.iter().enumerate() {
        *ids.entry(span.id.clone()).or_default() += 1;
        last.insert((span.id.clone(), span.name.clone()), index);
    }
    if last.len() < spans.len() {
        lost.insert(("span.id", "a span stored twice, of which the last record counts"));
    }
    if ids.len() < last.len() {
        lost.insert(("span.id", "several spans with one id, all kept"));
    }
    let mut index = 0;
    spans.retain(|span| {
        index += 1;
        last.get(&(span.id.clone(), span.name.clone())) == Some(&(index - 1))
    });
}

/// Makes roots of spans that are their own ancestors.
fn cut_circles(parents: &mut [Option<usize>], lost: &mut BTreeSet<(&'static str, &'static str)>) {
    // 0: not seen yet; else the number of the walk that saw it first.
    let mut seen = vec![0; parents.len()];
    for start in 0..parents.len() {
        let mut at = start;
        while seen[at] == 0 {
            seen[at] = start + 1;
            match parents[at] {
                Some(parent) if seen[parent] == start + 1 => {
                    lost.insert(("span.parent", "the span is its own ancestor"));
                    parents[at] = None;
                }
                Some(parent) => at = parent,
                None => {}
            }
        }
    }
}

fn places(spans: &[Span<'_>], parents: &[Option<usize>]) -> Vec<Place> {
    let mut places: Vec<Option<Place>> = vec![None; parents.len()];
    for start in 0..parents.len() {
        // Up to what is known already, then down again: a chain may be as long as the trace.
        let mut chain = vec![start];
        while let Some(parent) =
            chain.last().and_then(|at| parents[*at]).filter(|parent| places[*parent].is_none())
        {
            chain.push(parent);
        }
        for at in chain.into_iter().rev() {
            let parent = parents[at];
            let above = parent.and_then(|parent| Some((parent, places[parent].clone()?)));
            let place = above.map(|(parent, above)| {
                if spans[parent].kind == Kind::Agent {
                    Place { parent: Some(parent), agent: Some(parent), depth: above.depth + 1 }
                } else {
                    Place { parent: Some(parent), ..above }
                }
            });
            places[at] = Some(place.unwrap_or_default());
        }
    }
    places.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Span, Trace, plant};
    use crate::importers::spans::time::Time;

    fn span(id: &str, parent: Option<&str>, start: i128) -> Span<'static> {
        Span {
            id: id.to_owned(),
            parent: parent.map(str::to_owned),
            start: Time::from_nanos(start),
            kind: if id.starts_with('a') { Kind::Agent } else { Kind::Model },
            ..Span::default()
        }
    }

    /// Each span with its parent and depth, then what was lost.
    type Planted = (Vec<(String, Option<usize>, usize)>, Vec<&'static str>);

    fn planted(spans: Vec<Span<'static>>) -> Planted {
        let mut trace = Trace { spans, ..Trace::default() };
        let places = plant(&mut trace);
        let names = trace.spans.iter().map(|span| span.id.clone());
        let places = names.zip(places).map(|(name, place)| (name, place.agent, place.depth)).collect();
        (places, trace.lost.into_iter().map(|(_, reason)| reason).collect())
    }

    #[test]
    fn spans_know_their_agents_whatever_their_order() {
        let (places, lost) = planted(vec![
            span("m", Some("x"), 4),
            span("x", Some("a2"), 3),
            span("a2", Some("a1"), 2),
            span("a1", None, 1),
        ]);
        let place = |id: &str, agent, depth| (id.to_owned(), agent, depth);
        assert_eq!(
            places,
            [place("a1", None, 0), place("a2", Some(0), 1), place("x", Some(1), 2), place("m", Some(1), 2)]
        );
        assert!(lost.is_empty(), "{lost:?}");
    }

    #[test]
    fn circles_orphans_doubles_and_clocks_are_noted() {
        let (places, lost) = planted(vec![
            span("x", Some("y"), 1),
            span("y", Some("x"), 2),
            span("z", Some("none"), 3),
            span("z", Some("none"), 4),
            span("self", Some("self"), 5),
            span("early", Some("self"), 2),
        ]);
        assert_eq!(places.len(), 5);
        assert_eq!(lost.len(), 4, "{lost:?}");
    }
}
