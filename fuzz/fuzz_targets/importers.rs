//! Gives arbitrary bytes to one importer, or to detection. What must hold is written once, with the tests that run the cases found again.

#![no_main]

#[path = "../../recoup/tests/it/fuzz_properties.rs"]
#[allow(dead_code, unreachable_pub)]
mod fuzz_properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_properties::importers(bytes));
