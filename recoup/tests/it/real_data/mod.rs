//! One module a group of formats; each reads the shared traces in place and skips, loudly, without them.

mod chat_family;
