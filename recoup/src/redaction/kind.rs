//! A kind of thing that must not leave: what a placeholder is named after and reports count by.

use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A block of a private key.
    PrivateKey,
    /// A key in the shape of a known provider (`sk-…`, `ghp_…`, `AKIA…`).
    ApiKey,
    /// A JSON web token.
    Jwt,
    /// What an `Authorization` header carries.
    Token,
    /// A password: in a URL, or assigned to a name that says so.
    Password,
    /// Random characters assigned to a name that says they are secret.
    Secret,
    /// An e-mail address.
    Email,
    /// A bank account with valid check digits.
    Iban,
    /// A payment card's number that passes the Luhn check.
    Card,
    /// A national id (US social security, UK national insurance, Brazilian CPF).
    NationalId,
    /// A telephone number.
    Phone,
    /// A public IPv4 or IPv6 address.
    IpAddress,
}

impl Kind {
    /// Every kind, in the order of precedence where two begin at one byte.
    pub const ALL: [Self; 12] = [
        Self::PrivateKey,
        Self::ApiKey,
        Self::Jwt,
        Self::Token,
        Self::Password,
        Self::Secret,
        Self::Email,
        Self::Iban,
        Self::Card,
        Self::NationalId,
        Self::Phone,
        Self::IpAddress,
    ];

    /// The word in placeholders: `EMAIL` of `<EMAIL_1>`.
    pub fn word(self) -> &'static str {
        match self {
            Self::PrivateKey => "PRIVATE_KEY",
            Self::ApiKey => "API_KEY",
            Self::Jwt => "JWT",
            Self::Token => "TOKEN",
            Self::Password => "PASSWORD",
            Self::Secret => "SECRET",
            Self::Email => "EMAIL",
            Self::Iban => "IBAN",
            Self::Card => "CARD",
            Self::NationalId => "NATIONAL_ID",
            Self::Phone => "PHONE",
            Self::IpAddress => "IP",
        }
    }
}
