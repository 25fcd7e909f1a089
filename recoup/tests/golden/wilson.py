"""Writes wilson.json: Wilson intervals as statsmodels computes them.

Run: python -m pip install -r recoup/tests/golden/requirements.txt && python recoup/tests/golden/wilson.py
"""

import json
import pathlib

from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

cases = []
for alpha in (0.05, 0.01):
    z = float(norm.ppf(1 - alpha / 2))
    for trials in (1, 2, 10, 58, 126, 200, 100_000):
        for successes in sorted({0, 1, trials // 3, trials // 2, trials - 1, trials}):
            low, high = proportion_confint(successes, trials, alpha=alpha, method="wilson")
            cases.append({"successes": successes, "trials": trials, "z": z, "low": float(low), "high": float(high)})

lines = ",\n".join(json.dumps(case) for case in cases)
pathlib.Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
