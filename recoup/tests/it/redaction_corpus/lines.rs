//! Lines of prose, code and output: full of the words that secrets and numbers stand beside, without one.

use super::draw::Draw;

const PROSE: &[&[&str]] = &[
    &[
        "the", "customer", "asked", "whether", "a", "later", "flight", "could", "be", "booked", "without",
        "paying", "again", "and", "I", "checked", "policy", "first", "because", "rules", "differ", "between",
        "fares", "password", "token", "key", "phone", "number", "secret", "address", "card", "is", "on",
        "file", "we", "cannot", "change", "it", "here",
    ],
    &[
        "der",
        "Kunde",
        "möchte",
        "seine",
        "Bestellung",
        "ändern",
        "weil",
        "das",
        "Paket",
        "noch",
        "nicht",
        "angekommen",
        "ist",
        "Passwort",
        "vergessen",
        "Telefon",
        "und",
        "Adresse",
        "bitte",
        "prüfen",
    ],
    &[
        "le",
        "client",
        "souhaite",
        "modifier",
        "sa",
        "réservation",
        "avant",
        "lundi",
        "mais",
        "le",
        "tarif",
        "ne",
        "permet",
        "pas",
        "de",
        "remboursement",
        "mot",
        "de",
        "passe",
        "oublié",
    ],
    &[
        "el",
        "cliente",
        "quiere",
        "cambiar",
        "la",
        "dirección",
        "del",
        "pedido",
        "porque",
        "se",
        "mudó",
        "la",
        "semana",
        "pasada",
        "contraseña",
        "nueva",
        "teléfono",
    ],
    &[
        "お客様",
        "は",
        "予約",
        "の",
        "変更",
        "を",
        "希望",
        "しています",
        "が",
        "電話",
        "番号",
        "が",
        "わかりません",
    ],
    &["客户", "要求", "修改", "订单", "因为", "地址", "错误", "但是", "密码", "忘记", "了"],
];

const NAMES: &[&str] = &[
    "user",
    "order",
    "item",
    "total",
    "index",
    "config",
    "token_count",
    "max_tokens",
    "api_key_name",
    "password_field",
    "secret_name",
    "get_user_by_id",
    "parse_header",
    "is_valid",
    "phone_number_field",
    "email_template",
    "access_token_url",
    "session",
    "cache_key",
    "primary_key",
    "foreign_key",
    "sort_key",
    "keyboard",
    "tokenizer",
    "credentials_path",
    "sk_learn_model",
    "hf_model_name",
    "npm_package_version",
    "run_test_suite_2",
    "convert_hf_to_gguf_update_all_v2_final",
    "AC_CONFIG_HEADERS",
    "SKIP_TESTS_ON_CI",
];

/// Lines of code; `%n` is a name, `%d` a number, `%w` a word.
const CODE: &[&str] = &[
    "def %n(self, %n: str, %n=None) -> dict:",
    "    return self.%n[%d].%n(%d, key=lambda %w: %w.%n)",
    "for (let i = %d; i < %n.length; i++) {",
    "password = request.form['password']",
    "api_key = os.environ[\"API_KEY\"]",
    "token = tokens[%d]",
    "self.token = token or get_token()",
    "client = OpenAI(api_key=os.getenv('OPENAI_API_KEY'))",
    "if key == 'password': raise KeyError(key)",
    "secret = secrets.token_hex(%d)",
    "#include <%w.h>",
    "std::vector<int> %n = {%d, %d, %d, %d};",
    "assert %n(%d) == %d  # %w",
    "@pytest.mark.parametrize('%w', [%d, %d])",
    "SELECT %n, count(*) FROM %n WHERE %n > %d GROUP BY 1;",
    "%n: { type: 'string', minLength: %d },",
    "let %n = %n.iter().map(|%w| %w.len()).sum::<usize>();",
    "x = a @ b.T + c@d.mm(e)",
    "print(f\"{%n:>%d} of {%n}\")",
    "np.array([[0.%d, 1.%d], [-2.%d, 3e-%d]])",
    "- [ ] %w: see #%d and src/%w/%n.py:%d",
    "    %n = models.CharField(max_length=%d, unique=True)",
    "export const %n = async (%w: string): Promise<number> => %d;",
    "key: ${{ secrets.%n }}",
    "password: ${DB_PASSWORD}",
    "API_KEY=<your-api-key>",
    "token: xxxxxxxxxxxxxxxxxxxxxxxx",
    "Authorization: Bearer $TOKEN",
    "\"Authorization\": f\"Bearer {token}\"",
    "https://user:${PASSWORD}@host.example/path",
    "curl -u \"$USER:$PASS\" https://host.example",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "password=********",
];

const OUTPUT: &[&str] = &[
    "-rw-r--r-- 1 root root %d May 15 15:00 %w_%d.py",
    "tests/test_%w.py::test_%n[%d-%d] PASSED [ %d%]",
    "%d passed, %d failed, %d skipped in %d.%ds",
    "@@ -%d,%d +%d,%d @@ def %n(%w):",
    "+%d",
    "-%d -%d",
    "+    %n = %d",
    "  %d files changed, %d insertions(+), %d deletions(-)",
    "root %d 0.0 0.%d %d %d ? Ss 15:00 0:00 /usr/bin/%w --port %d",
    "Collecting numpy==1.26.%d",
    "%w 12.3.1.%d",
    "Step %d/%d : RUN pip install %w",
    "loss=0.%d lr=%d.0e-05 step=%d tokens/s=%d",
    "eta 0:%d:%d, %d.%d MB/s",
    "[%d/%d] Compiling %w v0.%d.%d",
    "epoch %d: 0.%d 0.%d 0.%d 0.%d",
    "00000%d: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF............",
    "01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10",
    "%d %d %d %d %d %d",
    "id,%w,%n\n%d,%d,%d",
    "HTTP/1.1 200 OK",
    "Mem: %d %d %d",
    "tel aviv %d, 5-10 pm, gate %d",
    "(%d) %w-%d points",
    "score: %d-%d",
];

fn word(draw: &mut Draw) -> &'static str {
    draw.pick(PROSE[0])
}

fn filled(draw: &mut Draw, template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let (piece, used) = match rest.as_bytes().get(at + 1) {
            Some(b'n') => (draw.pick(NAMES).to_owned(), 2),
            Some(b'w') => (word(draw).to_owned(), 2),
            Some(b'd') => {
                let bound = draw.pick(&[10, 100, 1000, 100_000]);
                (draw.below(bound).to_string(), 2)
            }
            _ => ("%".to_owned(), 1),
        };
        out.push_str(&piece);
        rest = &rest[at + used..];
    }
    out + rest
}

fn prose(draw: &mut Draw) -> String {
    let words = draw.pick(PROSE);
    let mut sentence: Vec<&str> = Vec::new();
    for _ in 0..draw.between(8, 20) {
        sentence.push(draw.pick(words));
    }
    format!("{}{}", sentence.join(" "), draw.pick(&[".", "!", "?", ":", "。"]))
}

/// One line of prose, code or output.
pub fn line(draw: &mut Draw) -> String {
    match draw.below(3) {
        0 => prose(draw),
        1 => {
            let template = draw.pick(CODE);
            filled(draw, template)
        }
        _ => {
            let template = draw.pick(OUTPUT);
            filled(draw, template)
        }
    }
    .replace("{}", "{ }")
}
