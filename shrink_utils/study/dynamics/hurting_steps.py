"""Parameters that hurt, counted as Vázquez et al. 2022 count them, and their published counts.

A block-step is a step at which a component of a layer has A > 0. How many there are depends on
whose gradient A is taken with, so everything here says which.
"""

from __future__ import annotations

import pandas as pd

from shrink_utils.names import unknown_name
from shrink_utils.paths import data_dir
from shrink_utils.study.dynamics.followed import allocations
from shrink_utils.training.dynamics import BATCH, hurting

__all__ = ["COUNTED", "GRADIENTS", "hurting_steps", "published_steps"]

COUNTED = ("key", "query", "value", "out", "W1", "W2")  # V's components
GRADIENTS = {"fixed set": "trapezoid", "mini-batch": BATCH}  # and the rule that has it


def hurting_steps(record: pd.DataFrame, gradient: str) -> pd.DataFrame:
    """Steps of one run in which a component of a layer raised the loss.

    Parameters
    ----------
    record : DataFrame
        Of `followed.record_table`, of one run.
    gradient : {"fixed set", "mini-batch"}
        "fixed set": A is what the step did to the loss of the fixed set. "mini-batch": Δ times the
        gradient that the optimizer was given at the start of the step.

    Returns
    -------
    DataFrame
        Indexed by V's components (cross-attention is left out): ``positive`` block-steps, ``share``
        of all positive ones (even shares where there are none), ``rate`` among all block-steps,
        ``last`` (as a share of the training, 0 for none) and ``maximum`` (in nats).

    Raises
    ------
    ValueError
        Another gradient.
    """
    if gradient not in GRADIENTS:
        raise unknown_name("gradient", "gradient", gradient, GRADIENTS)
    table = allocations(record, GRADIENTS[gradient])
    steps = table.step.max()
    table = table[table.component.isin(COUNTED)]
    found = hurting(table, "stack", "layer", "component", gradient=gradient)
    named = {"positive": "sum", "of": "sum", "last": "max", "maximum": "max"}
    by = found.groupby("component").agg(named).loc[list(COUNTED)]
    total = by.positive.sum()
    share = by.positive / total if total else pd.Series(1 / len(by), index=by.index)
    return pd.DataFrame(
        {
            "positive": by.positive,
            "share": share,
            "rate": by.positive / by.of,
            "last": by["last"] / steps,
            "maximum": by.maximum,
        }
    )


def published_steps() -> pd.DataFrame:
    """V's counts: columns objective, component, positive, share, last (as a share of training)."""
    table = pd.read_csv(data_dir() / "published" / "lca_positive_steps.csv")
    total = table.groupby("objective").positive.transform("sum")
    found = table.assign(share=table.positive / total, last=table["last"] / table.updates)
    return found[["objective", "component", "positive", "share", "last"]]
