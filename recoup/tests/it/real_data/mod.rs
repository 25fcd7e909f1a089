//! One module a group of formats; each reads the shared traces in place and skips, loudly, without them.

/// Agent harnesses: Inspect, SWE-agent, mini-swe-agent, OpenHands, ToolBench.
mod harness_family;
