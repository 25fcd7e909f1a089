//! Carriers: what stands around a value that shows by itself, from tool results to signatures.

use super::draw::Draw;
use super::lines;
use super::planted::{Encode, Place, Planted, plant};
use recoup::redaction::Kind;

use Encode::{Json, Plain, Url};
use Place::{Arguments, Message, Result};

pub type Carrier = (Place, Encode, &'static str);

/// For any value.
pub const ANY: &[Carrier] = &[
    (Result, Json, r#"{"status":"ok","rows":[{"id":17,"value":"{}","active":true}],"took_ms":12}"#),
    (Result, Json, r#"[["id","value"],[4,"{}"],[5,null]]"#),
    (Result, Json, r#"{"output":"first line\nvalue {}\nlast line\n","exit_code":0}"#),
    (Arguments, Json, r#"{"path":"notes.txt","content":"first line\n{}\nlast line"}"#),
    (Arguments, Json, r#"{"query":"{}"}"#),
    (Arguments, Json, r#"{"command":"grep -rn '{}' src/ | head -5"}"#),
    (Arguments, Json, r#"{"thought":"I have {} now.","n":1}"#),
    (Message, Plain, "I found {} in the old notes; is that still right?"),
    (Message, Plain, "It is {}."),
    (Message, Plain, "Use `{}` for the second step."),
    (Message, Plain, "Here ({}) is what you asked for!"),
    (Message, Plain, "Ich habe {} in den Unterlagen gefunden, stimmt das noch?"),
    (Message, Plain, "J’ai trouvé « {} » dans les notes."),
    (Message, Plain, "Encontré {} en los archivos, ¿es correcto?"),
    (Message, Plain, "Está anotado {} na página três."),
    (Message, Plain, "資料に {} と書いてあります。"),
    (Message, Plain, "记录是 {},请确认。"),
    (Result, Plain, "$ cat notes.txt\n{}\n$ "),
    (Result, Plain, "VALUE={}\n"),
    (Result, Plain, "value: {}\nother: 3\n"),
    (Result, Plain, "    value = \"{}\"  # old\n"),
    (Result, Plain, "const value = '{}';\n"),
    (Result, Plain, "17,{},2024-05-15,open\n"),
    (Result, Plain, "17\t{}\topen\n"),
    (Result, Plain, "| 17 | {} | open |\n"),
    (Result, Plain, "<row><value>{}</value><n>3</n></row>\n"),
    (Result, Plain, "<td class=\"v\">{}</td>\n"),
    (Result, Plain, "2024-05-15T15:00:00Z INFO worker-3 got {} in 12ms\n"),
    (Result, Plain, "ValueError: cannot use '{}' here\n"),
    (Result, Plain, "\u{1b}[32m{}\u{1b}[0m\n"),
    (Result, Plain, "-value = \"old\"\n+value = \"{}\"\n"),
    (Result, Plain, "{\\\"value\\\": \\\"{}\\\", \\\"n\\\": 1}\n"),
    (Result, Plain, "value → {}\n"),
];

pub const EMAIL: &[Carrier] = &[
    (Result, Plain, "From: Mia Li <{}>\nTo: team\nSubject: hello\n"),
    (Result, Plain, "Author: Mia Li <{}>\nDate:   Wed May 15 15:00:00 2024 +0200\n"),
    (Result, Plain, "<a href=\"mailto:{}\">write</a>\n"),
    (Arguments, Json, r#"{"to":["{}"],"subject":"hello"}"#),
    (Arguments, Json, r#"{"command":"git config user.email {}"}"#),
    (Message, Plain, "Best regards,\nMia Li\nHead of Sales\n{}\nwww.example.com\n"),
    (Message, Plain, "Mit freundlichen Grüßen\nMia Li\nE-Mail: {}\n"),
    (Result, Url, "GET /unsubscribe?email={}&list=7 200\n"),
    (Result, Plain, "550 5.1.1 <{}>: Recipient address rejected\n"),
    (Result, Plain, "(15,'Mia Li','{}','2024-05-15'),\n"),
];

/// With a word that says what comes, for numbers that could be anything else.
pub const PHONE: &[Carrier] = &[
    (Result, Json, r#"{"name":"Mia Li","phone":"{}","city":"Berlin"}"#),
    (Arguments, Json, r#"{"phone_number":"{}"}"#),
    (Result, Json, r#"{"customer":{"mobile":"{}"}}"#),
    (Message, Plain, "Mia Li\nSales\nTel.: {}\nBerlin\n"),
    (Message, Plain, "Phone: {}\n"),
    (Message, Plain, "My phone number is {}, call me."),
    (Message, Plain, "Téléphone : {}\n"),
    (Message, Plain, "Teléfono: {}\n"),
    (Message, Plain, "Telefon: {}\n"),
    (Message, Plain, "Mobile: {}\n"),
    (Message, Plain, "Fax: {}\n"),
    (Message, Plain, "電話番号: {}\n"),
    (Message, Plain, "You can reach me on WhatsApp {}."),
    (Message, Plain, "cell: {}\n"),
    (Result, Plain, "phone={}\n"),
    (Result, Plain, "tel:{}\n"),
];

pub const IP: &[Carrier] = &[
    (Result, Plain, "{} - - [15/May/2024:15:00:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"curl/8.5.0\"\n"),
    (Result, Plain, "sshd[812]: Failed password for root from {} port 52144 ssh2\n"),
    (Arguments, Json, r#"{"command":"ssh root@{}"}"#),
    (Result, Plain, "PING web ({}) 56 data bytes\n"),
    (Result, Json, r#"{"ip":"{}","country":"DE"}"#),
    (Result, Plain, "X-Forwarded-For: {}, 10.0.0.7\n"),
    (Result, Plain, "ec2-web.compute.example.com/{} refused the connection\n"),
    (Result, Plain, "Name: web.example.com\nAddress: {}\n"),
    (Result, Plain, "allow {}/32;\n"),
    (Message, Plain, "The server at {} does not answer."),
];

/// One value in one carrier, mostly with ordinary lines around it.
pub fn carried(
    draw: &mut Draw,
    what: (&'static str, &str, Kind),
    carriers: &[Carrier],
    value: &str,
) -> Planted {
    let (place, encode, template) = draw.pick(carriers);
    let whole = serde_json::from_str::<serde_json::Value>(template).is_ok();
    if whole || draw.chance(4) {
        return plant(what, (place, encode, template), value);
    }
    let newline = if template.ends_with('\n') { "" } else { "\n" };
    let template = format!("{}\n{template}{newline}{}", lines::line(draw), lines::line(draw));
    plant(what, (place, encode, &template), value)
}
