//! Gives arbitrary bytes to one importer, or to detection: to that of the format named by
//! `RECOUP_FUZZ_FORMAT`, else to whichever their first byte means. What must hold is written once, with the
//! tests that run the cases found again.

#![no_main]

#[path = "../../recoup/tests/it/fuzz_properties.rs"]
#[allow(dead_code, unreachable_pub)]
mod fuzz_properties;

use std::sync::LazyLock;

static CHOSEN: LazyLock<Option<u8>> = LazyLock::new(|| {
    let name = std::env::var("RECOUP_FUZZ_FORMAT").ok()?;
    Some(fuzz_properties::choice_of(&name).expect("a format's name"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match (*CHOSEN, bytes.split_first()) {
    (Some(choice), Some((_, file))) => fuzz_properties::importers(&[&[choice], file].concat()),
    _ => fuzz_properties::importers(bytes),
});
