"""Every standard error that the package returns is the spread of its estimate over samples."""

import numpy as np
import pytest

from shrink_utils.geometry import avg_sim, intra_sim, intrinsic_dimension, self_sim

SAMPLES = 200


def _rows(rng, n):
    """Rows (n, 6) of unequal variances about a mean."""
    return rng.normal(size=(n, 6)) * [3, 2, 1, 1, 1, 1] + [2, 0, 0, 0, 0, 0]


def _grouped(rng, n):
    """Rows of n/8 groups that share a direction, and the groups."""
    groups = np.arange(n) // 8
    return _rows(rng, n) + rng.normal(size=(n // 8, 6))[groups], groups


def _avg_sim_of_groups(rng, n):
    x, groups = _grouped(rng, n)
    return avg_sim(x, groups=groups)


MEASURES = {
    "avg_sim": lambda rng, n: avg_sim(_rows(rng, n)),
    "avg_sim, groups": _avg_sim_of_groups,
    "self_sim": lambda rng, n: self_sim(*_grouped(rng, n)),
    "intra_sim": lambda rng, n: intra_sim(*_grouped(rng, n)),
    "twonn": lambda rng, n: intrinsic_dimension(rng.normal(size=(n, 3)), return_error=True),
}


@pytest.mark.parametrize("n", [64, 256])
@pytest.mark.parametrize("measure", MEASURES)
def test_a_standard_error_is_the_spread_over_samples(measure, n):
    """Within a quarter: what 200 samples tell of their spread is ± 5 %."""
    rng = np.random.default_rng(n)
    found = [MEASURES[measure](rng, n) for _ in range(SAMPLES)]
    pairs = [f if isinstance(f, tuple) and len(f) == 2 else (f.value, f.stderr) for f in found]
    values, errors = np.array([[float(a), float(b)] for a, b in pairs]).T
    assert 0.8 < np.sqrt(np.mean(errors**2)) / values.std(ddof=1) < 1.3
