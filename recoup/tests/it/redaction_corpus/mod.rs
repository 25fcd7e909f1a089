//! The redaction corpus: drawn items of every kind in realistic messages, and text of which nothing is
//! to be touched. Pictures are the providers' and the countries', not the finders'.
//!
//! The table in `docs/redaction.md` is what this measures; `UPDATE_REDACTION=1 cargo test -p recoup
//! --test it redaction_corpus` writes it again.

mod carriers;
mod draw;
mod keys;
mod lines;
mod measure;
mod named;
mod ordinary;
mod personal;
mod planted;
mod table;
mod traces;

use self::draw::Draw;
use self::planted::Planted;
use recoup::redaction::Kind;

/// Everything that must be found.
fn planted() -> Vec<Planted> {
    let mut draw = Draw::seeded(20_261_129);
    let draw = &mut draw;
    let mut out = Vec::new();
    for (provider, picture) in keys::KEYS {
        for index in 0..24 {
            let key = draw.picture(picture);
            let glued = [(planted::Place::Result, planted::Encode::Plain, "export RUN=run_{}\n")];
            // A picture that begins with random characters cannot be told from a word that it is glued to.
            let carriers = if index == 0 && !picture.starts_with('{') { &glued[..] } else { carriers::ANY };
            out.push(carriers::carried(draw, ("API keys", provider, Kind::ApiKey), carriers, &key));
        }
    }
    for _ in 0..300 {
        let (algorithm, token) = keys::jwt(draw);
        out.push(carriers::carried(draw, ("JSON web tokens", algorithm, Kind::Jwt), carriers::ANY, &token));
        let (label, block) = keys::private_key(draw);
        out.push(carriers::carried(draw, ("private keys", label, Kind::PrivateKey), carriers::ANY, &block));
    }
    out.extend(named::planted(draw, 25));
    out.extend(personal::planted(draw, 1_000));
    out
}

/// Where tokens, keys and passwords are concerned, and where persons are: least share found, in percent.
const SECRETS: usize = 99;
const PERSONS: usize = 97;
/// Rows of secrets; all others are of persons.
const SECRET_ROWS: &[&str] = &[
    "API keys",
    "JSON web tokens",
    "private keys",
    "passwords",
    "secrets beside their names",
    "tokens in headers, URLs, cookies",
];
/// Classes of which nothing at all may be hit.
const UNTOUCHED: &[&str] = &[
    "UUIDs",
    "git hashes and digests",
    "order, item and tracking ids",
    "base64 blobs",
    "ids of API objects",
];

#[test]
fn the_aims_are_met_and_the_published_table_is_what_is_measured() {
    let items = planted();
    assert!(items.len() >= 5_000, "{}", items.len());
    let kinds: std::collections::BTreeSet<Kind> = items.iter().map(|item| item.kind).collect();
    assert_eq!(kinds.len(), Kind::ALL.len(), "a kind is not in the corpus: {kinds:?}");

    let rows = measure::found(&items);
    for (name, row) in &rows {
        let least = if SECRET_ROWS.contains(name) { SECRETS } else { PERSONS };
        assert!(
            row.found * 100 >= row.items * least,
            "{name}: {} of {}; missed {:?}",
            row.found,
            row.items,
            row.missed
        );
        assert!(row.wider * 100 <= row.items, "{name}: {} hits take ordinary text along", row.wider);
    }

    let ordinary = measure::ordinary(&mut Draw::seeded(7));
    let (mut tokens, mut hits) = (0, 0);
    for class in &ordinary {
        let hit: usize = class.hits.values().sum();
        assert!(hit == 0 || !UNTOUCHED.contains(&class.class), "{}: {:?}", class.class, class.hits);
        (tokens, hits) = (tokens + class.tokens, hits + hit);
    }
    assert!(tokens >= 200_000 && hits * 10_000 <= tokens, "{hits} hits on {tokens} ordinary tokens");

    table::published(&table::render(&rows, &ordinary));
}

/// The measure itself: with an item that nothing finds, a row must fall.
#[test]
fn what_is_not_found_counts_as_missed() {
    let what = ("e-mail addresses", "none", Kind::Email);
    let of =
        |value| planted::plant(what, (planted::Place::Message, planted::Encode::Plain, "to {} now"), value);
    let rows = measure::found(&[of("mia@example.com"), of("nobody at all"), of("mia@example.com, and")]);
    let row = &rows["e-mail addresses"];
    assert_eq!((row.items, row.found, row.missed["none"]), (3, 1, 2));
}
