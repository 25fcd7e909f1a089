//! Passwords, tokens and secrets that only show by what stands around them: headers, URLs, settings,
//! command lines, sentences. `{}` is the value.

use super::draw::Draw;
use super::planted::{Encode, Place, Planted, plant};
use recoup::redaction::Kind;

use Encode::{Json, Plain, Url};
use Place::{Arguments, Message, Result};

type Context = (&'static str, Place, Encode, &'static str);

const TOKENS: &[Context] = &[
    (
        "Bearer, curl",
        Arguments,
        Json,
        r#"{"command": "curl -s -H 'Authorization: Bearer {}' https://api.example.com/v1/me"}"#,
    ),
    (
        "Bearer, header",
        Result,
        Plain,
        "GET /v1/me HTTP/1.1\nHost: api.example.com\nAuthorization: Bearer {}\nAccept: */*\n",
    ),
    (
        "Bearer, Python",
        Message,
        Plain,
        "headers = {\"Authorization\": \"Bearer {}\", \"Accept\": \"application/json\"}",
    ),
    ("Bearer, f-string", Message, Plain, "session.headers.update({'authorization': f'Bearer {}'})"),
    ("token, header", Result, Plain, "> Authorization: token {}\n> User-Agent: curl/8.5.0\n"),
    ("Basic, header", Result, Plain, "Authorization: Basic {}==\r\nConnection: close\r\n"),
    ("raw, JSON", Result, Json, r#"{"headers": {"authorization": "{}", "x-request-id": "7f2a"}}"#),
    ("X-Api-Key", Result, Plain, "POST /v2/items\nX-Api-Key: {}\nContent-Length: 17\n"),
    ("x-auth-token", Arguments, Json, r#"{"method":"GET","headers":{"x-auth-token":"{}"}}"#),
    (
        "private-token",
        Message,
        Plain,
        "curl --header \"PRIVATE-TOKEN: {}\" https://git.example.com/api/v4/projects",
    ),
    ("query access_token", Result, Plain, "GET /feed?access_token={}&limit=20 200 12ms"),
    ("query api_key", Result, Plain, "https://maps.example.com/geocode?q=berlin&api_key={}"),
    ("query token", Message, Plain, "Open https://ci.example.com/hook?token={}&job=7 in a browser."),
    ("query key", Result, Plain, "https://translate.example.com/v2?key={}&target=de"),
    (
        "query sig",
        Result,
        Plain,
        "https://files.example.net/c/report.pdf?sv=2022-11-02&sr=b&sig={}&se=2030-01-01",
    ),
    (
        "query X-Amz-Signature",
        Result,
        Plain,
        "https://b.example.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=900&X-Amz-Signature={}",
    ),
    ("cookie", Result, Plain, "Set-Cookie: sessionid={}; Path=/; HttpOnly; Secure\n"),
    ("cookie sent", Result, Plain, "Cookie: theme=dark; session_token={}; lang=en\n"),
    (".npmrc", Result, Plain, "registry=https://npm.example.com/\n//npm.example.com/:_authToken={}\n"),
    ("--token", Arguments, Json, r#"{"command":"vault login --token {}"}"#),
    ("URL user", Result, Plain, "git clone https://{}@git.example.com/owner/name.git\n"),
    ("OAuth answer", Result, Json, r#"{"access_token":"{}","token_type":"bearer","expires_in":3600}"#),
    ("refresh token", Result, Json, r#"{"refresh_token": "{}", "scope": "offline"}"#),
];

const PASSWORDS: &[Context] = &[
    (
        "PostgreSQL URL",
        Result,
        Plain,
        "DATABASE_URL=postgres://app:{}@db.internal:5432/main?sslmode=require\n",
    ),
    (
        "PostgreSQL URL, code",
        Message,
        Plain,
        "engine = create_engine(\"postgresql+psycopg2://app:{}@localhost/main\")",
    ),
    ("MySQL URL", Result, Plain, "could not connect: mysql://root:{}@10.0.0.5:3306/shop\n"),
    (
        "MongoDB URL",
        Arguments,
        Json,
        r#"{"uri":"mongodb+srv://svc:{}@cluster0.example.net/?retryWrites=true"}"#,
    ),
    ("Redis URL", Result, Plain, "REDIS_URL=redis://:{}@cache:6379/0\n"),
    ("AMQP URL", Result, Plain, "broker_url: amqps://worker:{}@mq.example.com/vhost\n"),
    ("FTP URL", Message, Plain, "The files are at ftp://mirror:{}@ftp.example.org/pub now."),
    ("HTTPS URL", Result, Plain, "remote: https://deploy:{}@git.example.com/owner/name.git (fetch)\n"),
    (".env", Result, Plain, "DB_HOST=db\nDB_PASSWORD={}\nDB_PORT=5432\n"),
    (".env, quoted", Result, Plain, "export SMTP_PASSWORD=\"{}\"\n"),
    ("YAML", Result, Plain, "database:\n  user: app\n  password: {}\n  pool: 5\n"),
    ("YAML, quoted", Result, Plain, "spring:\n  datasource:\n    password: '{}'\n"),
    ("JSON", Result, Json, r#"{"user": "app", "password": "{}", "port": 5432}"#),
    ("JSON in JSON", Arguments, Json, r#"{"body": "{\"login\": \"mia\", \"password\": \"{}\"}"}"#),
    ("ini", Result, Plain, "[client]\nuser = root\npassword = {}\n"),
    ("connection string", Result, Plain, "Server=db,1433;User Id=sa;Password={};Encrypt=true\n"),
    ("connection string, Pwd", Result, Plain, "Driver={ODBC Driver 18};Server=db;Uid=sa;Pwd={};\n"),
    ("Python keyword", Message, Plain, "conn = connect(host=\"db\", user=\"app\", password=\"{}\")"),
    ("JavaScript", Message, Plain, "const config = { user: 'app', password: '{}' };"),
    ("Java properties", Result, Plain, "spring.datasource.password={}\n"),
    ("form", Result, Plain, "POST /login\n\nusername=mia&password={}&remember=1\n"),
    ("--password", Arguments, Json, r#"{"command":"mysqldump --user=root --password={} shop > dump.sql"}"#),
    (
        "--password, apart",
        Arguments,
        Json,
        r#"{"command":"docker login -u mia --password {} registry.example.com"}"#,
    ),
    ("sshpass", Arguments, Json, r#"{"command":"sshpass -p '{}' ssh root@web-3"}"#),
    ("curl -u", Arguments, Json, r#"{"command":"curl -u admin:{} https://jenkins.example.com/api"}"#),
    ("PGPASSWORD", Arguments, Json, r#"{"command":"PGPASSWORD={} psql -h db -U app"}"#),
    ("netrc", Result, Plain, "machine api.example.com\n  login mia\n  password {}\n"),
    ("SQL", Result, Plain, "CREATE USER 'app'@'%' IDENTIFIED BY '{}';\n"),
    ("SQL, PostgreSQL", Result, Plain, "ALTER ROLE app WITH PASSWORD '{}';\n"),
    ("XML", Result, Plain, "<server>\n  <username>mia</username>\n  <password>{}</password>\n</server>\n"),
    ("sentence", Message, Plain, "My password is {} and I still cannot log in."),
    ("sentence with colon", Message, Plain, "Please use this password: {}\nThanks!"),
    ("German", Message, Plain, "Das Passwort lautet: {}"),
    ("German, label", Message, Plain, "Benutzer: mia\nPasswort: {}\n"),
    ("French", Message, Plain, "Mot de passe : {}\n"),
    ("Spanish", Message, Plain, "Usuario: mia\nContraseña: {}\n"),
    ("Portuguese", Message, Plain, "Usuário: mia\nSenha: {}\n"),
    ("passphrase", Result, Plain, "ssh_passphrase: \"{}\"\n"),
];

const SECRETS: &[Context] = &[
    ("client_secret", Result, Json, r#"{"client_id":"web-7","client_secret":"{}","redirect_uris":[]}"#),
    ("SECRET_KEY", Result, Plain, "DEBUG = False\nSECRET_KEY = '{}'\n"),
    ("apiKey", Message, Plain, "firebase.initializeApp({ apiKey: \"{}\", projectId: \"demo\" });"),
    ("API_KEY", Result, Plain, "LOG_LEVEL=info\nWEATHER_API_KEY={}\nPORT=80\n"),
    ("export", Arguments, Json, r#"{"command":"export COHERE_API_KEY={} && python run.py"}"#),
    ("YAML api_key", Result, Plain, "datadog:\n  api_key: {}\n  site: eu\n"),
    ("YAML token", Result, Plain, "ci:\n  token: {}\n  url: https://ci.example.com\n"),
    ("TOML", Result, Plain, "[registry]\ntoken = \"{}\"\n"),
    ("Kubernetes", Result, Plain, "kind: Secret\ndata:\n  client-secret: {}\n"),
    (
        "AccountKey",
        Result,
        Plain,
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={}==;EndpointSuffix=core.example.net\n",
    ),
    (
        "SharedAccessKey",
        Result,
        Plain,
        "Endpoint=sb://bus.example.net/;SharedAccessKeyName=root;SharedAccessKey={}=\n",
    ),
    ("keyword", Message, Plain, "client = Client(api_key=\"{}\", timeout=30)"),
    ("constructor", Message, Plain, "new OpenAI({ apiKey: '{}' })"),
    ("AWS", Result, Plain, "[default]\nregion = eu-central-1\naws_secret_access_key = {}\n"),
    ("Terraform", Result, Plain, "provider \"x\" {\n  secret_key = \"{}\"\n}\n"),
    ("Dockerfile", Result, Plain, "FROM python:3.12\nENV AUTH_TOKEN={}\n"),
    ("hex digest as key", Result, Plain, "ENCRYPTION_KEY={}\n"),
    ("signing", Result, Json, r#"{"webhook":{"url":"https://a.example/h","signing_secret":"{}"}}"#),
    ("sentence", Message, Plain, "The API key is {}, please keep it safe."),
    ("URL-encoded", Result, Url, "POST grant_type=client_credentials&client_secret={}&scope=all\n"),
    ("--api-key", Arguments, Json, r#"{"command":"serve --port 80 --api-key {} --quiet"}"#),
];

/// Passwords as people and generators make them.
fn password(draw: &mut Draw) -> String {
    let word = draw.pick(&[
        "Sommer",
        "hunter",
        "Dragon",
        "Tr0ub4dor",
        "s3cret",
        "Welcome",
        "Monkey",
        "qwerty",
        "Barcelona",
        "P4ssw0rd",
    ]);
    match draw.below(4) {
        0 => format!("{word}{}!", draw.between(10, 2099)),
        1 => format!("{word}{}{}", draw.pick(&["#", "_", "-", "."]), draw.between(100, 9999)),
        2 => draw.picture("{a:12-16}7"),
        _ => draw.picture("{a:5}{d:1}!{a:5}{d:1}^{a:3}"),
    }
}

fn secret(draw: &mut Draw, form: &str) -> String {
    match form {
        "hex digest as key" | "query X-Amz-Signature" => draw.picture("{x:64}"),
        "AWS" => draw.picture("{a:13}/{s:24}A9"),

        "AccountKey" => draw.picture("{s:86}"),
        "SharedAccessKey" => draw.picture("{s:43}"),
        "SECRET_KEY" => draw.picture("django-insecure-{L:30}#{L:10}1!"),
        "URL-encoded" => draw.picture("{a:20}+/{a:18}3="),
        "Basic, header" | "query sig" => draw.picture("{a:21}7{a:20}"),
        _ => {
            let picture = draw.pick(&["{a:32}", "{x:32}", "{a:40}", "{w:43}", "{a:24}"]);
            draw.picture(picture)
        }
    }
}

/// `count` of each context's.
pub fn planted(draw: &mut Draw, count: usize) -> Vec<Planted> {
    let mut out = Vec::new();
    let tables: [(&'static str, Kind, &[Context]); 3] = [
        ("tokens in headers, URLs, cookies", Kind::Token, TOKENS),
        ("passwords", Kind::Password, PASSWORDS),
        ("secrets beside their names", Kind::Secret, SECRETS),
    ];
    for (row, kind, contexts) in tables {
        for (form, place, encode, template) in contexts {
            for _ in 0..count {
                let value = if kind == Kind::Password { password(draw) } else { secret(draw, form) };
                out.push(plant((row, form, kind), (*place, *encode, template), &value));
            }
        }
    }
    out
}
