//! Keys by provider, as the providers document or issue them; drawn, so none of them opens anything.

use super::draw::{Draw, base64};

/// Who issues it, and its picture ([`Draw::picture`]).
pub const KEYS: &[(&str, &str)] = &[
    ("OpenAI legacy", "sk-{a:20}T3BlbkFJ{a:20}"),
    ("OpenAI project", "sk-proj-{w:74}T3BlbkFJ{w:74}"),
    ("OpenAI service account", "sk-svcacct-{w:74}T3BlbkFJ{w:74}"),
    ("OpenAI admin", "sk-admin-{w:58}T3BlbkFJ{w:58}"),
    ("Anthropic", "sk-ant-api03-{w:93}AA"),
    ("Anthropic admin", "sk-ant-admin01-{w:93}AA"),
    ("Anthropic OAuth", "sk-ant-oat01-{w:93}AA"),
    ("OpenRouter", "sk-or-v1-{x:64}"),
    ("DeepSeek", "sk-{x:32}"),
    ("Langfuse", "sk-lf-{x:8}-{x:4}-4{x:3}-a{x:3}-{x:12}"),
    ("Google API", "AIzaSy{w:33}"),
    ("Google OAuth client", "GOCSPX-{w:28}"),
    ("Google OAuth access", "ya29.a0{w:120-180}"),
    ("Google OAuth refresh", "1//0{a:1}{w:61}"),
    ("GitHub personal", "ghp_{a:36}"),
    ("GitHub OAuth", "gho_{a:36}"),
    ("GitHub user-to-server", "ghu_{a:36}"),
    ("GitHub server-to-server", "ghs_{a:36}"),
    ("GitHub refresh", "ghr_{a:76}"),
    ("GitHub fine-grained", "github_pat_{a:22}_{a:59}"),
    ("GitLab personal", "glpat-{w:20}"),
    ("GitLab routable", "glpat-{w:27}.{L:2}.{L:9}"),
    ("GitLab deploy", "gldt-{w:20}"),
    ("GitLab runner", "glrt-{w:20}"),
    ("GitLab CI job", "glcbt-{x:2}_{w:20}"),
    ("GitLab trigger", "glptt-{x:40}"),
    ("AWS access key id", "AKIA{b:16}"),
    ("AWS temporary key id", "ASIA{b:16}"),
    ("Azure client secret", "{a:3}8Q~{w:34}"),
    ("Alibaba Cloud", "LTAI5t{a:18}"),
    ("Slack bot", "xoxb-{d:11}-{d:13}-{a:24}"),
    ("Slack user", "xoxp-{d:11}-{d:12}-{d:13}-{x:32}"),
    ("Slack app", "xapp-1-A{U:10}-{d:13}-{x:64}"),
    ("Slack rotated", "xoxe.xoxp-1-{a:160}"),
    ("Slack webhook", "hooks.slack.com/services/T{U:10}/B{U:10}/{a:24}"),
    ("Discord webhook", "discord.com/api/webhooks/{d:19}/{w:68}"),
    ("Telegram bot", "{d:10}:AA{w:33}"),
    ("Stripe live", "sk_live_51{a:97}"),
    ("Stripe short", "sk_live_{a:24}"),
    ("Stripe test", "sk_test_51{a:97}"),
    ("Stripe restricted", "rk_live_51{a:97}"),
    ("Stripe webhook", "whsec_{a:32}"),
    ("Square access", "EAAA{w:60}"),
    ("Square OAuth", "sq0csp-{w:43}"),
    ("Square personal", "sq0atp-{w:22}"),
    ("Shopify app", "shpat_{x:32}"),
    ("Shopify custom app", "shpca_{x:32}"),
    ("Shopify shared secret", "shpss_{x:32}"),
    ("Twilio account", "AC{x:32}"),
    ("Twilio key", "SK{x:32}"),
    ("SendGrid", "SG.{w:22}.{w:43}"),
    ("Mailgun", "key-{x:32}"),
    ("Mailchimp", "{x:32}-us{d:2}"),
    ("Brevo", "xkeysib-{x:64}-{a:16}"),
    ("Resend", "re_{a:8}_{a:24}"),
    ("Hugging Face", "hf_{c:34}"),
    ("Replicate", "r8_{a:37}"),
    ("Groq", "gsk_{a:52}"),
    ("xAI", "xai-{a:80}"),
    ("NVIDIA", "nvapi-{w:64}"),
    ("Perplexity", "pplx-{a:48}"),
    ("Tavily", "tvly-dev-{a:32}"),
    ("Pinecone", "pcsk_{a:6}_{a:63}"),
    ("LangSmith", "lsv2_pt_{x:32}_{x:10}"),
    ("Cerebras", "csk-{L:48}"),
    ("Voyage", "pa-{w:43}"),
    ("E2B", "e2b_{x:40}"),
    ("Jina", "jina_{x:32}{w:28}"),
    ("Firecrawl", "fc-{x:32}"),
    ("ElevenLabs", "sk_{x:48}"),
    ("npm", "npm_{a:36}"),
    ("PyPI", "pypi-AgEIcHlwaS5vcmc{w:150-170}"),
    ("RubyGems", "rubygems_{x:48}"),
    ("crates.io", "cio{a:32}"),
    ("Clojars", "CLOJARS_{x:60}"),
    ("Docker Hub", "dckr_pat_{w:27}"),
    ("DigitalOcean personal", "dop_v1_{x:64}"),
    ("DigitalOcean OAuth", "doo_v1_{x:64}"),
    ("Heroku", "HRKU-AA{w:58}"),
    ("Netlify", "nfp_{a:36}"),
    ("Cloudflare origin CA", "v1.0-{x:24}-{x:146}"),
    ("Supabase", "sbp_{x:40}"),
    ("PlanetScale", "pscale_tkn_{w:43}"),
    ("Render", "rnd_{a:28}"),
    ("HashiCorp Vault", "hvs.{w:95}"),
    ("HCP Terraform", "{a:14}.atlasv1.{w:67}"),
    ("Doppler", "dp.pt.{a:43}"),
    ("Pulumi", "pul-{x:40}"),
    ("Databricks", "dapi{x:32}"),
    ("Grafana service account", "glsa_{a:32}_{x:8}"),
    ("New Relic user", "NRAK-{U:27}"),
    ("Sentry user", "sntryu_{x:64}"),
    ("Dynatrace", "dt0c01.{b:24}.{b:64}"),
    ("PostHog personal", "phx_{a:43}"),
    ("Atlassian", "ATATT3xFfGF0{w:172}={X:8}"),
    ("Linear", "lin_api_{a:40}"),
    ("Notion", "ntn_{d:11}{a:35}"),
    ("Airtable", "pat{a:14}.{x:64}"),
    ("Figma", "figd_{w:40}"),
    ("Postman", "PMAK-{x:24}-{x:34}"),
    ("Contentful", "CFPAT-{w:43}"),
    ("Shippo", "shippo_live_{x:40}"),
    ("EasyPost", "EZAK{a:54}"),
    ("Duffel", "duffel_live_{w:43}"),
    ("ReadMe", "rdme_{L:70}"),
    ("SonarQube", "sqp_{x:40}"),
    ("JFrog", "AKCp8{a:68}"),
    ("age", "AGE-SECRET-KEY-1{U:58}"),
    ("Facebook", "EAA{a:160}"),
    ("Dropbox", "sl.u.{w:130}"),
];

/// A JSON web token as a server signs it.
pub fn jwt(draw: &mut Draw) -> (&'static str, String) {
    let (algorithm, signature) = draw.pick(&[("HS256", 32), ("RS256", 256), ("ES256", 64), ("EdDSA", 64)]);
    let header = match draw.below(3) {
        0 => format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#),
        1 => format!(r#"{{"alg":"{algorithm}"}}"#),
        _ => format!(r#"{{"typ":"JWT","alg":"{algorithm}","kid":"{}"}}"#, draw.picture("{w:12}")),
    };
    let issued = draw.between(1_600_000_000, 1_800_000_000);
    let claims = match draw.below(3) {
        0 => format!(r#"{{"sub":"{}","iat":{issued}}}"#, draw.picture("{d:10}")),
        1 => format!(r#"{{"iss":"https://login.example","aud":"api","exp":{issued},"scope":"read write"}}"#),
        _ => format!(r#"{{"user_id":{},"role":"admin","exp":{issued}}}"#, draw.below(100_000)),
    };
    let parts = [
        base64(header.as_bytes(), true),
        base64(claims.as_bytes(), true),
        base64(&draw.bytes(signature), true),
    ];
    (algorithm, parts.join("."))
}

/// A private key's block: its label, and the whole in PEM.
pub fn private_key(draw: &mut Draw) -> (&'static str, String) {
    let (label, length) = draw.pick(&[
        ("RSA PRIVATE KEY", 1190),
        ("EC PRIVATE KEY", 118),
        ("PRIVATE KEY", 1216),
        ("ENCRYPTED PRIVATE KEY", 1300),
        ("OPENSSH PRIVATE KEY", 390),
        ("DSA PRIVATE KEY", 450),
        ("PGP PRIVATE KEY BLOCK", 900),
    ]);
    let body = base64(&draw.bytes(length), false);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64 is ASCII")).collect();
    let head = if label.starts_with("PGP") { "\nVersion: GnuPG v2\n" } else { "" };
    (label, format!("-----BEGIN {label}-----\n{head}{}\n-----END {label}-----", lines.join("\n")))
}
