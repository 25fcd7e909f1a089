#!/usr/bin/env python3
"""Statistics as scipy and statsmodels compute them: the figures that `recoup/src/statistics/` must reach.

    python3 inference.py > inference.json     # writes the golden file; needs requirements.txt

Bootstrap intervals depend on the draws. So that they can be compared to the last digits, the documented draws
(`draws.rs`, SplitMix64 by position) are made a second time here, on numpy, and scipy is given the resampled
means. Each case also holds what scipy makes of draws of its own.
"""

import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy
import scipy
import statsmodels
import statsmodels.api
from scipy.optimize import brentq
from scipy.special import betaln, ndtri
from scipy.stats import bootstrap, permutation_test
from scipy.stats._resampling import _bca_interval
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests

RESAMPLES = 10_000
BOOTSTRAP_STREAM, SIGN_FLIP_STREAM = 1, 2


# --- the draws ---------------------------------------------------------------------------------------------

def mix(words):
    words = (words ^ (words >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return words ^ (words >> numpy.uint64(31))


def drawn_words(seed, stream, words_each):
    """One row of words for each resample."""
    key = mix(mix(numpy.array([seed], dtype=numpy.uint64)) + numpy.uint64(stream))
    positions = numpy.arange(1, RESAMPLES * words_each + 1, dtype=numpy.uint64)
    return mix(key + positions * numpy.uint64(0x9E3779B97F4A7C15)).reshape(RESAMPLES, words_each)


def resampled_indices(seed, clusters):
    """One row of cluster indices for each resample."""
    words = drawn_words(seed, BOOTSTRAP_STREAM, (clusters + 1) // 2)
    halves = numpy.stack([words & numpy.uint64(0xFFFFFFFF), words >> numpy.uint64(32)], axis=-1)
    indices = (halves * numpy.uint64(clusters)) >> numpy.uint64(32)
    return indices.reshape(RESAMPLES, -1)[:, :clusters].astype(int)


def drawn_signs(seed, clusters):
    """One row of signs for each resample: the bits of a word from the lowest up, a set one for minus."""
    words = drawn_words(seed, SIGN_FLIP_STREAM, (clusters + 63) // 64)
    bits = (words[:, :, None] >> numpy.arange(64, dtype=numpy.uint64)) & numpy.uint64(1)
    return 1.0 - 2.0 * bits.reshape(RESAMPLES, -1)[:, :clusters]


# --- bootstrap and design effect ---------------------------------------------------------------------------

def ratio(sums, counts, axis=-1):
    return sums.sum(axis=axis) / counts.sum(axis=axis)


class Given:
    """Resampled means in the place where scipy looks for those of an earlier call."""

    def __init__(self, means):
        self.bootstrap_distribution = means


def bounds(result):
    low, high = result.confidence_interval
    return {"low": float(low), "high": float(high)}


def bootstrap_case(name, clusters, values, confidence, seed):
    names = sorted(set(clusters))
    clusters, values = numpy.array(clusters), numpy.array(values, dtype=float)
    sums = numpy.array([values[clusters == cluster].sum() for cluster in names])
    counts = numpy.array([(clusters == cluster).sum() for cluster in names], dtype=float)
    indices = resampled_indices(seed, len(names))
    means = sums[indices].sum(axis=1) / counts[indices].sum(axis=1)
    center = ratio(sums, counts)
    # A resample of every cluster once has the mean itself, whatever the order of addition made of its last bit.
    means[abs(means - center) < 1e-12 * numpy.ptp(values)] = center

    options = {"paired": True, "vectorized": True, "confidence_level": confidence}
    given = {method: bootstrap((sums, counts), ratio, n_resamples=0, bootstrap_result=Given(means), method=method,
                               **options) for method in ("percentile", "bca")}
    # Single observations go through scipy's plain one-sample bootstrap, clusters through its paired one.
    single = len(names) == len(values)
    data, statistic = ((values,), numpy.mean) if single else ((sums, counts), ratio)
    own = {method: bootstrap(data, statistic, n_resamples=200_000, batch=2_000, method=method,
                             rng=numpy.random.default_rng(seed), **options | {"paired": not single})
           for method in ("percentile", "bca")}

    # scipy's paired form resamples the indices of the clusters; its acceleration leaves out one of them.
    cluster_indices = numpy.arange(len(names))
    _, _, acceleration = _bca_interval(
        (cluster_indices,), lambda chosen, axis: ratio(sums[chosen], counts[chosen], axis), -1,
        (1 - confidence) / 2, means, None, numpy)
    below = ((means < center).sum() + (means <= center).sum()) / (2 * len(means))

    constant = numpy.ones((len(values), 1))
    ordinary = statsmodels.api.OLS(values, constant).fit()
    robust = statsmodels.api.OLS(values, constant).fit(
        cov_type="cluster", cov_kwds={"groups": numpy.searchsorted(names, clusters)})
    return {
        "name": name, "clusters": clusters.tolist(), "values": values.tolist(), "resamples": RESAMPLES,
        "confidence": confidence, "seed": seed, "mean": float(center),
        "percentile": bounds(given["percentile"]), "bca": bounds(given["bca"]),
        "bias": float(ndtri(below)), "acceleration": float(acceleration),
        "independent": {method: bounds(result) for method, result in own.items()},
        "design_effect": float((robust.bse[0] / ordinary.bse[0]) ** 2),
    }


def drawn_clusters(rng, number, largest):
    return [f"task-{cluster:03}" for cluster in range(number) for _ in range(rng.integers(1, largest + 1))]


def bootstrap_cases():
    rng = numpy.random.default_rng(20260402)

    def single(number):
        return [f"task-{cluster:03}" for cluster in range(number)]

    def per_cluster(clusters, draw):
        effect = {cluster: draw() for cluster in dict.fromkeys(clusters)}
        return [effect[cluster] for cluster in clusters]

    uneven = drawn_clusters(rng, 30, 5)
    rates = numpy.array(per_cluster(uneven, rng.random))
    few = drawn_clusters(rng, 10, 3)
    many = drawn_clusters(rng, 121, 3)
    repaired = numpy.array(per_cluster(many, lambda: rng.random() < 0.4)) & (rng.random(len(many)) < 0.9)
    skewed = drawn_clusters(rng, 25, 6)
    shuffled = rng.permutation(len(skewed))
    return [
        bootstrap_case("single normal", single(40), rng.normal(2, 3, 40).tolist(), 0.95, 1),
        bootstrap_case("single skewed", single(25), rng.lognormal(0, 1, 25).tolist(), 0.95, 2),
        bootstrap_case("single passes", single(60), (rng.random(60) < 0.2).astype(float).tolist(), 0.90, 3),
        bootstrap_case("clustered passes", uneven, (rng.random(len(uneven)) < rates).astype(float).tolist(), 0.95,
                       2**64 - 1),
        bootstrap_case("ten clusters", few, (rng.normal(0, 1, len(few)) +
                                             per_cluster(few, lambda: rng.normal(0, 2))).tolist(), 0.95, 5),
        bootstrap_case("differences", many, (repaired.astype(float) - (rng.random(len(many)) < 0.1)).tolist(), 0.99, 6),
        bootstrap_case("skewed, shuffled", [skewed[i] for i in shuffled],
                       numpy.array(per_cluster(skewed, lambda: rng.exponential(4)))[shuffled].tolist(), 0.95, 7),
    ]


# --- tests -------------------------------------------------------------------------------------------------

def sign_flip_case(name, clusters, differences):
    """The sums of the clusters, with and without exchanging the two sides of each."""
    names = sorted(set(clusters))
    sums = numpy.array([sum(d for c, d in zip(clusters, differences) if c == cluster) for cluster in names])
    exact = 2 ** len(names) <= RESAMPLES
    result = permutation_test(
        (sums, numpy.zeros(len(names))), lambda left, right, axis: (left - right).sum(axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=numpy.inf if exact else 1_000_000, batch=10_000,
        rng=numpy.random.default_rng(8))
    seed = 7
    totals = abs((drawn_signs(seed, len(names)) * sums).sum(axis=1))
    far = int((totals >= abs(sums.sum()) - 1e-9).sum())
    return {"name": name, "clusters": clusters, "differences": differences, "seed": seed, "p": float(result.pvalue),
            "p_by_draws": None if exact else (far + 1) / (RESAMPLES + 1)}


def sign_flip_cases():
    rng = numpy.random.default_rng(20260403)
    few, thirteen, many = drawn_clusters(rng, 7, 4), drawn_clusters(rng, 13, 3), drawn_clusters(rng, 150, 3)
    return [
        sign_flip_case("few", few, rng.normal(1, 1, len(few)).tolist()),
        sign_flip_case("thirteen, with ties", thirteen, rng.integers(-1, 2, len(thirteen)).tolist()),
        sign_flip_case("many, weak", many, (rng.normal(0.12, 1, len(many))).tolist()),
        sign_flip_case("many, passes", many, rng.choice([-1, 0, 1], len(many), p=[0.15, 0.6, 0.25]).tolist()),
    ]


def mcnemar_case(first_only, second_only):
    result = mcnemar([[3, first_only], [second_only, 4]], exact=True)
    return {"first_only": first_only, "second_only": second_only, "p": float(result.pvalue)}


def holm_case(p_values):
    return {"p": p_values, "adjusted": multipletests(p_values, method="holm")[1].tolist()}


def kappa_case(name, table):
    result = cohens_kappa(numpy.array(table))
    return {"name": name, "table": table, "kappa": float(result.kappa),
            "low": float(max(result.kappa_low, -1)), "high": float(min(result.kappa_upp, 1))}


def sequence_case(outcomes, total, confidence):
    """The means at which the mixture is 1/alpha times likelier than they are."""

    def surplus(mean):
        rest = outcomes - total
        likelihood = (total and total * numpy.log(mean)) + (rest and rest * numpy.log1p(-mean))
        return betaln(1 + total, 1 + rest) - likelihood + numpy.log(1 - confidence)

    tiny, observed = 1e-15, min(max(total / outcomes, 1e-12), 1 - 1e-12)
    low = brentq(surplus, tiny, observed, xtol=1e-14) if surplus(tiny) > 0 else 0.0
    high = brentq(surplus, observed, 1 - tiny, xtol=1e-14) if surplus(1 - tiny) > 0 else 1.0
    return {"outcomes": outcomes, "sum": total, "confidence": confidence, "low": float(low), "high": float(high)}


def main():
    rng = numpy.random.default_rng(20260404)
    script = Path(__file__)
    golden = {
        "written_by": {
            "script": script.name, "sha256": hashlib.sha256(script.read_bytes()).hexdigest(),
            "python": platform.python_version(), "numpy": numpy.__version__, "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
        },
        "bootstrap": bootstrap_cases(),
        "sign_flip": sign_flip_cases(),
        "mcnemar": [mcnemar_case(*counts) for counts in [
            (0, 1), (1, 0), (0, 2), (3, 9), (10, 2), (5, 6), (7, 7), (0, 30), (41, 98), (100, 101), (480, 560),
            (1001, 1480), (50_000, 50_900), (2, 900)]],
        "holm": [holm_case(p) for p in [
            [0.04], [0.01, 0.04], [0.04, 0.01, 0.03, 0.005], [0.5, 0.6, 0.9], [0.02, 0.02, 0.02], [0.0, 1.0, 0.3],
            rng.random(12).tolist(), (rng.random(9) ** 4).tolist()]],
        "kappa": [
            kappa_case("two labels", [[20, 5], [10, 15]]),
            kappa_case("skewed", [[118, 5], [2, 0]]),
            kappa_case("three labels, lopsided", [[11, 3, 1], [0, 7, 9], [4, 2, 20]]),
            kappa_case("opposed", [[1, 12], [14, 0]]),
            kappa_case("four labels", rng.integers(0, 15, (4, 4)).tolist()),
        ],
        "sequence": [sequence_case(*case) for case in [
            (1, 1.0, 0.95), (3, 3.0, 0.95), (3, 0.0, 0.95), (8, 8.0, 0.95), (10, 4.0, 0.95), (40, 2.0, 0.99),
            (100, 61.0, 0.95), (100, 33.25, 0.9), (5000, 4900.0, 0.95), (100_000, 50_200.0, 0.95)]],
    }
    # A line a case: a change of one shows as one.
    sections = []
    for section, content in golden.items():
        text = json.dumps(content) if isinstance(content, dict) else \
            "[\n" + ",\n".join(json.dumps(case) for case in content) + "\n]"
        sections.append(f"{json.dumps(section)}: {text}")
    print("{" + ",\n".join(sections) + "}")


if __name__ == "__main__":
    sys.exit(main())
