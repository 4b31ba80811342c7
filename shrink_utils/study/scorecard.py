"""Known answers: clouds whose ranking holds by construction, and which measure finds it (03).

After the ReSi benchmark (Klabunde et al. 2024), which does so for similarity with trained models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from torch import from_numpy
from torch.nn.functional import normalize

from shrink_utils.geometry import (
    anisotropy,
    avg_sim,
    cca,
    cka,
    effective_rank,
    intrinsic_dimension,
    iso_score,
    partition_isotropy,
    pwcca,
    rsa,
    svcca,
)
from shrink_utils.study.language.trees import rtd_lite

Cloud = np.ndarray
Similarity = Callable[[Cloud, Cloud], float]  # larger is more alike
Isotropy = Callable[[Cloud], float]  # larger is more isotropic, or of higher dimension
Clouds = list[tuple[Cloud, ...]]  # what a measure is called with, step by step
Path = Callable[[np.random.Generator], Clouds]

SIMILARITIES: dict[str, Similarity] = {
    "RSA": rsa,
    "CCA, mean": lambda x, y: float(cca(x, y).mean()),
    "SVCCA": svcca,
    "PWCCA": pwcca,
    "CKA": cka,
    "CKA, debiased": lambda x, y: cka(x, y, debiased=True),
    "− RTD-Lite": lambda x, y: -rtd_lite(x, y),
    "− RTD-Lite, matched": lambda x, y: -rtd_lite(x, y, matched=True),
}
ISOTROPIES: dict[str, Isotropy] = {
    "− AvgSim": lambda x: -avg_sim(x).value,
    "− first score, raw": lambda x: -float(anisotropy(x, k=1)),
    "− first score, centred": lambda x: -float(anisotropy(x, k=1, center=True)),
    "log I(W), unit norm": lambda x: partition_isotropy(normalize(from_numpy(x), dim=1)),
    "IsoScore": iso_score,
    "IsoScore, corrected": lambda x: iso_score(x, bias_corrected=True),
    "effective rank": effective_rank,
    "TwoNN dimension": intrinsic_dimension,
    "PH dimension": lambda x: intrinsic_dimension(x, method="ph"),
}
DRAWS = 8  # clouds per question


def similarity_scorecard() -> pd.DataFrame:
    """Whether each similarity (rows) gives each known answer (columns)."""
    return _scorecard(SIMILARITIES, SIMILARITY_TESTS)


def isotropy_scorecard() -> pd.DataFrame:
    """Whether each measure of isotropy or dimension (rows) gives each known answer (columns)."""
    return _scorecard(ISOTROPIES, ISOTROPY_TESTS)


def _scorecard(measures: Mapping[str, Callable], tests: Mapping[str, Callable]) -> pd.DataFrame:
    answers = {
        name: {test: bool(passes(measure)) for test, passes in tests.items()}
        for name, measure in measures.items()
    }
    return pd.DataFrame(answers).T


def _drawn(measure: Callable, path: Path) -> np.ndarray:
    """The measure along the path of every draw, (draws, steps)."""
    rngs = map(np.random.default_rng, range(DRAWS))
    return np.array([[measure(*clouds) for clouds in path(rng)] for rng in rngs])


def _falls(path: Path) -> Callable[[Callable], bool]:
    """Whether every step down is more than twice its standard error over the draws."""

    def passes(measure: Callable) -> bool:
        steps = np.diff(_drawn(measure, path), axis=1)
        error = steps.std(axis=0, ddof=1) / np.sqrt(len(steps))
        return bool((steps.mean(axis=0) < -2 * error).all())

    return passes


def _turn(rng: np.random.Generator, d: int) -> Cloud:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


# --- similarity of two clouds -------------------------------------------------------------------


def _cloud(rng: np.random.Generator, n: int = 100, d: int = 8) -> Cloud:
    return rng.normal(size=(n, d)) * np.geomspace(2, 0.5, d)


def _ignores_turn_and_scale(similarity: Similarity) -> bool:
    x = _cloud(np.random.default_rng(0))
    turned = 7 * x @ _turn(np.random.default_rng(1), 8)
    return np.isclose(similarity(x, turned), similarity(x, x), atol=1e-8)


def _noise(rng: np.random.Generator) -> Clouds:
    x, noise = _cloud(rng), rng.normal(size=(100, 8))
    return [(x, x + size * noise) for size in (0.25, 0.5, 1, 2)]


def _replaced_columns(rng: np.random.Generator) -> Clouds:
    x, other = rng.normal(size=(2, 100, 8))
    return [(x, np.where(np.arange(8) < replaced, other, x)) for replaced in (0, 2, 4, 6, 8)]


def _layers_between(rng: np.random.Generator) -> Clouds:
    layers = [_cloud(rng)]
    for _ in range(4):
        layers.append((layers[-1] + rng.normal(size=(100, 8))) @ _turn(rng, 8))
    return [(layers[0], layer) for layer in layers]


def _changed_clusters(rng: np.random.Generator) -> Clouds:
    centres, where = 6 * np.eye(8)[:5], np.arange(100) % 5

    def clusters(share: float) -> Cloud:
        """This share of the rows in another cluster; what is within clusters is new."""
        moved = where + (rng.permutation(100) < share * 100)
        return centres[moved % 5] + rng.normal(size=(100, 8))

    x = clusters(0)
    return [(x, clusters(share)) for share in (0, 0.1, 0.2, 0.4)]


def _has_null_at_zero(similarity: Similarity) -> bool:
    nulls = _drawn(similarity, lambda rng: [(_cloud(rng, n=50), _cloud(rng, n=50))])
    return abs(nulls.mean()) < 0.05


SIMILARITY_TESTS: dict[str, Callable[[Similarity], bool]] = {
    "ignores a turn and the scale": _ignores_turn_and_scale,
    "falls with noise": _falls(_noise),
    "falls with replaced columns": _falls(_replaced_columns),
    "falls with the layers between": _falls(_layers_between),
    "falls with rows in another cluster": _falls(_changed_clusters),
    "is 0 for independent clouds": _has_null_at_zero,
}


# --- isotropy of one cloud ----------------------------------------------------------------------


def _round(rng: np.random.Generator, n: int = 200, d: int = 16) -> Cloud:
    return rng.normal(size=(n, d))


def _stretched(rng: np.random.Generator) -> Clouds:
    x, first = _round(rng), np.arange(16) == 0
    return [(x * np.where(first, s, 1),) for s in (1, 2, 4, 8)]


def _lost_directions(rng: np.random.Generator) -> Clouds:
    x, turn = _round(rng), _turn(rng, 16)
    return [((x * (np.arange(16) < kept)) @ turn,) for kept in (16, 8, 4, 2)]


def _ignores_scale(isotropy: Isotropy) -> bool:
    x, turn = _round(np.random.default_rng(0)), _turn(np.random.default_rng(1), 16)
    x[:, 0] *= 3  # a turn of a round cloud would be no test
    return np.isclose(isotropy(7 * x @ turn), isotropy(x), rtol=1e-6)


def _ignores_shift(isotropy: Isotropy) -> bool:
    x = _round(np.random.default_rng(0))
    return np.isclose(isotropy(x + 3), isotropy(x), rtol=1e-6)


def _needs_few_rows(isotropy: Isotropy) -> bool:
    few, many = _drawn(isotropy, lambda rng: [(_round(rng, n=n),) for n in (32, 500)]).mean(axis=0)
    return np.isclose(few, many, rtol=0.1, atol=0.01)


def _rolled_up_sheet(rng: np.random.Generator) -> Clouds:
    t = rng.uniform(4, 12, size=500)
    roll = np.stack([t * np.cos(t), rng.uniform(-10, 10, size=500), t * np.sin(t)], axis=1)
    return [(roll,)]


ISOTROPY_TESTS: dict[str, Callable[[Isotropy], bool]] = {
    "falls as one direction is stretched": _falls(_stretched),
    "falls as directions are lost": _falls(_lost_directions),
    "ignores a turn and the scale": _ignores_scale,
    "ignores a shift": _ignores_shift,
    "needs few rows": _needs_few_rows,
    "counts a rolled-up sheet as 2": lambda isotropy: (
        abs(_drawn(isotropy, _rolled_up_sheet).mean() - 2) < 0.5
    ),
}
