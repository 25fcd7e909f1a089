//! The floor under an import's time: reads a file line by line into `serde_json::Value` and keeps nothing.
//!
//! `cargo run --release -p recoup --example bare_parse FILE` prints the bytes a second.

#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::time::Instant;

fn main() -> io::Result<()> {
    let path = std::env::args()
        .nth(1)
        .ok_or_else(|| io::Error::other("usage: bare_parse FILE (one JSON value a line)"))?;
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let start = Instant::now();
    let (mut line, mut bytes, mut values) = (Vec::new(), 0, 0_u64);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        bytes += read;
        let value: serde_json::Value = serde_json::from_slice(&line)?;
        values += 1;
        drop(std::hint::black_box(value));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{values} values, {bytes} bytes, {:.0} bytes/s", bytes as f64 / seconds);
    Ok(())
}
