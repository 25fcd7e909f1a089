//! The meter: what asking models has taken so far, read before and after.

use crate::models::Ledger;

/// What a ledger says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meter {
    /// Questions answered by a model.
    pub calls: u64,
    /// Questions answered from the cache.
    pub cached: u64,
    /// Cost in US dollars; `None` where a model has no price.
    pub cost_usd: Option<f64>,
}

impl Meter {
    /// What a ledger says so far, all stages and models together.
    pub fn of(ledger: &Ledger) -> Self {
        let (calls, cached) = ledger.calls();
        let costs = ledger.lines().into_iter().map(|line| line.cost_usd);
        Self { calls, cached, cost_usd: costs.sum::<Option<f64>>() }
    }

    /// What was added to an earlier reading.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            cached: self.cached - before.cached,
            cost_usd: self.cost_usd.map(|cost| cost - before.cost_usd.unwrap_or_default()),
        }
    }
}
