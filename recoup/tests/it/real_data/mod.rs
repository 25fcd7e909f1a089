//! One module a group of formats; each reads the shared traces in place and skips, loudly, without them.

mod chat_family;
/// Agent harnesses: Inspect, SWE-agent, mini-swe-agent, OpenHands, ToolBench.
mod harness_family;
/// All folders together: which importer takes which file, and that runs stay apart.
mod pack;
/// Sessions and text logs: Reflexion, ReAct, ADP, nebius, WebVoyager, Claude Code, Codex.
mod session_family;
