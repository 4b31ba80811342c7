"""Claims on training dynamics: those of Vázquez et al. 2022 (V), and what the method promises.

One difference a seed: models that differ in their initial weights and dropout, and in nothing else.
The noise floor of a row is by how much two such models differ in the row's own quantity, on
average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from shrink_utils.study.claims.claim import Claim, Direction, evaluate
from shrink_utils.study.dynamics.followed import allocations, closure_errors
from shrink_utils.study.dynamics.hurting_steps import COUNTED, hurting_steps, published_steps
from shrink_utils.study.dynamics.objectives import OBJECTIVE_NAMES
from shrink_utils.study.dynamics.stability import profile_correlations
from shrink_utils.training.dynamics import shares

__all__ = ["dynamics_claims"]

GRADIENT_IDS = {"fixed set": "fixed", "mini-batch": "batch"}
ATTENDING = ["key", "query"]
EVEN = len(ATTENDING) / len(COUNTED)  # their share of the steps that hurt, if all were alike
PAPER = "V (COLING 2022), table of positive steps"
OWN = "our control"
MARGIN = 0.05  # of a correlation: what still counts as alike

Tested = tuple[Claim, pd.Series]  # a claim and its differences, one a seed


def dynamics_claims(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Test every claim.

    Parameters
    ----------
    dynamics : DataFrame
        Of `objectives.measure_dynamics`.
    stability : DataFrame
        Of `stability.measure_stability`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`.
    """
    tested = [
        *_attention(dynamics),
        *_lasting(dynamics),
        *_embeddings(dynamics),
        *_closure(dynamics),
        *_stability(stability),
    ]
    return evaluate(dict(tested), dict(tested).__getitem__)


def _attention(dynamics: pd.DataFrame) -> Iterator[Tested]:
    """V: keys and queries hurt most often in language models, value, out and W2 in translation."""
    published = published_steps().set_index(["objective", "component"]).share
    for gradient, short in GRADIENT_IDS.items():
        for objective, direction in (("mlm", "greater"), ("clm", "greater"), ("mt", "less")):
            found = _by_seed(dynamics, objective, lambda r, g=gradient: hurting_steps(r, g).share)
            side = "more" if direction == "greater" else "less"
            yield _tested(
                f"lca-attention-{objective}-{short}",
                PAPER,
                f"{OBJECTIVE_NAMES[objective]}: keys and queries have {side} than their even third "
                f"of the steps that hurt ({gradient} gradients)",
                direction,
                found[ATTENDING].sum(axis=1) - EVEN,
                published=published[objective][ATTENDING].sum() - EVEN,
            )


def _lasting(dynamics: pd.DataFrame) -> Iterator[Tested]:
    """V: hurting ends early in causal LM and in translation, and goes on in masked LM."""
    ends = published_steps().groupby("objective")["last"].max()
    for gradient, short in GRADIENT_IDS.items():
        last = {
            objective: _by_seed(
                dynamics, objective, lambda r, g=gradient: hurting_steps(r, g)["last"]
            ).max(axis=1)
            for objective in OBJECTIVE_NAMES
        }
        for other in ("clm", "mt"):
            yield _tested(
                f"lca-lasting-{other}-{short}",
                PAPER,
                "the last step that hurts comes later, in shares of the training, in masked LM "
                f"than in {OBJECTIVE_NAMES[other]} ({gradient} gradients)",
                "greater",
                last["mlm"] - last[other],
                published=ends["mlm"] - ends[other],
            )


def _embeddings(dynamics: pd.DataFrame) -> Iterator[Tested]:
    """Embeddings, which these models also predict with, take most of the loss change."""
    for objective, name in OBJECTIVE_NAMES.items():
        found = _by_seed(dynamics, objective, lambda r: shares(allocations(r), "component"))
        yield _tested(
            f"lca-embeddings-{objective}",
            OWN,
            f"{name}: embeddings take more than half of the loss change",
            "greater",
            found["embedding"] - 0.5,
        )


def _closure(dynamics: pd.DataFrame) -> Iterator[Tested]:
    for objective, name in OBJECTIVE_NAMES.items():
        found = _by_seed(dynamics, objective, closure_errors)
        yield _tested(
            f"lca-closure-{objective}",
            OWN,
            f"{name}: the trapezoid's contributions sum to the loss change within 1 %",
            "less",
            found["trapezoid"] - 0.01,
        )


def _stability(stability: pd.DataFrame) -> Iterator[Tested]:
    """V: which components contribute is the same over data sizes, languages and corpora."""
    found = profile_correlations(stability)
    seeds = found[found.differs == "seed"].r
    for differs, what in (("size", "data sizes"), ("source", "domains")):
        r = found[found.differs == differs].groupby("seed").r.mean()
        yield _tested(
            f"lca-stable-{differs}",
            "V (COLING 2022)",
            f"profiles of different {what} correlate as closely (by {MARGIN}) as those of "
            "different seeds",
            "no_worse",
            r - seeds.mean(),
            margin=MARGIN,
            floor=float(1 - seeds.mean()),
        )


def _by_seed(
    dynamics: pd.DataFrame, objective: str, quantity: Callable[[pd.DataFrame], pd.Series]
) -> pd.DataFrame:
    """A quantity of every run of an objective, a row a seed."""
    rows = dynamics[dynamics.objective == objective]
    return pd.DataFrame({seed: quantity(record) for seed, record in rows.groupby("seed")}).T


def _tested(
    name: str,
    source: str,
    statement: str,
    direction: Direction,
    differences: pd.Series,
    *,
    published: float | None = None,
    margin: float = 0.0,
    floor: float | None = None,
) -> Tested:
    claim = Claim(
        id=f"v:{name}",
        source=source,
        statement=statement,
        direction=direction,
        margin=margin,
        published=None if published is None else round(float(published), 6),
        floor=_floor(differences) if floor is None else floor,
    )
    return claim, differences


def _floor(values: pd.Series) -> float | None:
    """Mean distance of two seeds; None for a single one."""
    pairs = [abs(a - b) for a, b in combinations(values, 2)]
    return float(np.mean(pairs)) if pairs else None
