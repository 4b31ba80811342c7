"""Allocations summed over layers, components, heads and time, and the steps that hurt.

All functions take the tidy table of `LossChanges.table`, whole or in part, and columns ``by``: one
or more of ``step``, ``stack``, ``layer``, ``component``, ``head`` and ``parameter``. They raise
ValueError for no column, or one that the table does not have.
"""

import pandas as pd


def allocated(table: pd.DataFrame, *by: str) -> pd.Series:
    """Sum of the contributions per group, in units of the loss; these add up to that of all."""
    _check(table, by)
    return table.groupby(list(by), sort=True, dropna=False).value.sum()


def shares(table: pd.DataFrame, *by: str, trunk: bool = False) -> pd.Series:
    """Share of the loss change: positive where a group lowered a loss that fell; their sum is 1.

    `trunk` leaves out the embeddings, the head and what is in no layer, and divides by the sum of
    the rest: the embeddings' share is so large that it hides the others. Contributions that sum to
    zero are a ValueError.
    """
    sums = allocated(table[table.layer > 0] if trunk else table, *by)
    total = sums.sum()
    if total == 0:
        raise ValueError("table: its contributions sum to 0, shares are not defined")
    return sums / total


def block_steps(table: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Contributions of each group at each step, (steps, groups).

    Blocks whose sign means nothing are left out: the biases of keys, whose true gradient is zero,
    and word-pieces that the loss has nothing to do with.
    """
    _check(table, by)
    counted = table[table.counted]
    return counted.pivot_table(index="step", columns=list(by), values="value", aggfunc="sum")


def hurting(table: pd.DataFrame, *by: str, gradient: str) -> pd.DataFrame:
    """Parameters that hurt: block-steps that raised the loss, A > 0 (Vázquez et al.).

    There is one row per block, as told by `by`: ``positive`` (how many steps), ``of`` (how many
    there are), ``last`` (the last such step, 0 for none), ``maximum`` (the largest contribution,
    negative when all helped) and ``gradient``: of what it is, such as ``"fixed set"`` or
    ``"mini-batch"``, because the counts depend on it.
    """
    values = block_steps(table, *by)
    positive = values > 0
    last = positive.mul(values.index, axis=0).max()
    found = pd.DataFrame(
        {"positive": positive.sum(), "of": len(values), "last": last, "maximum": values.max()}
    )
    return found.reset_index().assign(gradient=gradient)


def _check(table: pd.DataFrame, by: tuple[str, ...]) -> None:
    if not by or not set(by) <= set(table.columns):
        raise ValueError(f"by: {list(by)}, expected columns out of {', '.join(table.columns)}")
