//! The redaction corpus: drawn items of every kind in realistic messages, and text of which nothing is
//! to be touched. Pictures are the providers' and the countries', not the finders'.
//!
//! The table in `docs/redaction.md` is what this measures; `UPDATE_REDACTION=1 cargo test -p recoup
//! --test it redaction_corpus` writes it again.

mod carriers;
mod draw;
mod keys;
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
