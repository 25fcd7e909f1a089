//! Ordinary text, of which nothing is to be touched: prose, code, output, and everything that looks a
//! little like a secret or a number of somebody's.

use super::draw::{Draw, base64};
use super::lines::line;

fn uuid(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "{x:8}-{x:4}-4{x:3}-a{x:3}-{x:12}",
        "{X:8}-{X:4}-7{X:3}-8{X:3}-{X:12}",
        "urn:uuid:{x:8}-{x:4}-1{x:3}-9{x:3}-{x:12}",
    ]);
    draw.picture(picture)
}

fn commit(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "{x:40}",
        "{x:7}",
        "{x:12}",
        "commit {x:40}",
        "index {x:7}..{x:7} 100644",
        "{x:40} refs/heads/main",
        "sha256:{x:64}",
        "md5 {x:32}",
        "git+https://git.example/a/b@{x:40}",
    ]);
    draw.picture(picture)
}

/// Numbers that shops and carriers give to orders and parcels.
fn order(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "#W{d:7}",
        "112-{d:7}-{d:7}",
        "SO-2024-{d:5}",
        "1000{d:5}",
        "order {d:13}",
        "{d:2}-{d:5}-{d:5}",
        "1Z{U:6}{d:10}",
        "INV{d:8}",
        "RMA-{d:6}",
        "tracking 7{d:11}",
        "GPA.{d:4}-{d:4}-{d:4}-{d:5}",
        "PO {d:10}",
        "item_id: {d:10}",
        "payment: credit_card_{d:7}",
        "gift_card_{d:7}",
        "EV-{U:8}",
        "reservation {U:6}",
        "flight HAT{d:3}",
        "ticket JIRA-{d:5}",
        "customer {d:6}",
        "9{d:21}",
        "{u:2}{d:9}{u:2}",
        "80{d:14}",
        "order_{a:14}",
    ]);
    draw.picture(picture)
}

fn blob(draw: &mut Draw) -> String {
    let length = draw.pick(&[24, 48, 96, 300, 1200]);
    let url = draw.chance(3);
    let bytes = draw.bytes(length);
    let text = base64(&bytes, url);
    match draw.below(4) {
        0 => format!("data:image/png;base64,{text}"),
        1 => format!("\"integrity\": \"sha512-{text}\""),
        2 => text,
        _ => format!("{{\"type\":\"image\",\"data\":\"{text}\"}}"),
    }
}

fn object_id(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "call_{a:24}",
        "toolu_01{a:22}",
        "chatcmpl-{a:29}",
        "msg_01{a:22}",
        "req_{x:32}",
        "run-{x:8}",
        "resp_{x:48}",
        "file-{a:24}",
        "asst_{a:24}",
        "pi_3{a:23}",
        "cus_{a:14}",
        "ch_3{a:23}",
        "evt_1{a:23}",
        "price_1{a:23}",
        "arn:aws:iam::{d:12}:role/worker",
        "i-0{x:16}",
        "sg-0{x:16}",
        "ami-0{x:16}",
        "vpc-{x:17}",
        "01{U:24}",
        "{x:24}",
        "projects/{d:12}/locations/eu",
        "trace_id={x:32}",
        "span_id={x:16}",
        "pod/web-{x:9}-{L:5}",
        "U0{U:9}",
        "C0{U:9}",
        "T0{U:8}",
        "etag: \"{x:32}\"",
        "thread_{a:24}",
        "vs_{x:32}",
        "id={d:18}",
        "snowflake 1{d:18}",
        "sess_{L:8}",
        "step_{d:4}",
        "https://youtu.be/{w:11}",
        "https://docs.example.com/document/d/1{w:43}/edit",
        "doi:10.{d:4}/{d:7}.{d:7}",
        "container {x:64}",
        "layer {x:12}",
    ]);
    draw.picture(picture)
}

fn version(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "v1.{d:2}.{d:1}",
        "python 3.12.{d:1}",
        "Chrome/120.0.{d:4}.{d:2}",
        "pkg==10.2{d:1}.3{d:1}.4{d:1}",
        "numpy>=1.2{d:1},<2",
        "12.3.1.{d:2}",
        "1.0.0-rc.{d:1}+{x:7}",
        "version 10.20.30.{d:2}",
        "gpt-4o-2024-0{d:1}-1{d:1}",
        "claude-3-5-sonnet-20241022",
        "node v20.{d:1}.0",
        "macOS 14.{d:1}.1",
        "section 4.3.2.1",
        "Linux 6.8.0-{d:2}-generic",
        "openssl-3.0.{d:1}",
        "tag 2024.05.{d:1}",
        "^{d:1}.{d:1}.{d:1}",
        "Safari/537.36",
        "Version: \"6.1.7601.18{d:2}\"",
    ]);
    draw.picture(picture)
}

fn time(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "2024-05-15T15:0{d:1}:0{d:1}.{d:6}Z",
        "17{d:8}",
        "17{d:11}",
        "17{d:17}",
        "15/May/2024:15:00:0{d:1} +0200",
        "2024-05-1{d:1} 15:00:00,{d:3}",
        "05/1{d:1}/2024",
        "1{d:1}.05.2024",
        "20240515_1500{d:2}",
        "Wed, 15 May 2024 15:00:0{d:1} GMT",
        "UTC+{d:1}",
        "0:00:{d:2}.{d:6}",
        "20240515T1500{d:2}Z",
        "15:00-16:30",
        "2024-W2{d:1}-3",
        "1{d:1}:2{d:1}:3{d:1}",
    ]);
    draw.picture(picture)
}

fn number(draw: &mut Draw) -> String {
    let picture = draw.pick(&[
        "0.{d:16}",
        "-{d:2}.{d:5}, {d:2}.{d:5}",
        "{d:1}.{d:8}e-{d:2}",
        "#{x:6}",
        "rgb({d:2}, {d:2}, {d:2})",
        "978-0-306-{d:5}-7",
        "ISBN 3-598-{d:5}-X",
        "0x{x:16}",
        "0x7f{x:10}",
        "$1,{d:3},{d:3}.99",
        "{d:3} {d:3} {d:3}",
        "[{d:4}, {d:4}, {d:4}]",
        "{d:5} {d:5} {d:5} {d:5}",
        "{d:2}%",
        "00:1b:44:{x:2}:3a:{x:2}",
        "52.5200{d:3}, 13.4050{d:3}",
        "{d:4}x{d:4}",
        "127.0.0.1:{d:4}",
        "192.168.{d:1}.{d:2}",
        "10.{d:1}.{d:1}.{d:2}/16",
        "0.0.0.0",
        "255.255.255.0",
        "fe80::{x:4}:1",
        "::1",
        "2001:db8::{x:4}",
        "EAN 40{d:11}",
        "{d:3}-{d:2}",
        "{d:6}-{d:4}",
    ]);
    draw.picture(picture)
}

type Class = (&'static str, fn(&mut Draw) -> String, usize);

/// The classes and how many items of each.
pub const CLASSES: &[Class] = &[
    ("prose, code and output (lines)", line, 25_000),
    ("UUIDs", uuid, 5_000),
    ("git hashes and digests", commit, 5_000),
    ("order, item and tracking ids", order, 10_000),
    ("base64 blobs", blob, 2_000),
    ("ids of API objects", object_id, 10_000),
    ("versions", version, 5_000),
    ("times", time, 5_000),
    ("numbers, colors, private addresses", number, 10_000),
];
