"""Is the allocation the same whatever the text? V's question of stability, over sizes and domains.

A *profile* is the share of the trunk's loss change by layer and component.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from shrink_utils.study.dynamics.followed import allocations, dynamics_config, follow, record_table
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.training.dynamics import shares

__all__ = ["measure_stability", "profile_correlations", "profiles_of"]

OBJECTIVE = "clm"  # it predicts every token: of as many sentences, the least noisy loss
RUN = ["source", "size", "seed"]
CELL = ["layer", "component"]


@measured("dynamics_stability")
def measure_stability(profile: Profile) -> pd.DataFrame:
    """Allocate a causal language model's loss for every corpus, data size and seed.

    Parameters
    ----------
    profile : Profile
        ``sources``, ``data_sizes`` and ``stability_steps`` of its ``dynamics``.

    Returns
    -------
    DataFrame
        Columns ``source``, ``size``, ``seed``, ``layer``, ``component``, ``parameters`` (how many
        scalars) and ``value`` (the contribution over all steps, by the trapezoid), trunk only.
    """
    sizes, seeds = profile.dynamics, profile.pretraining.seeds
    conditions = [(s, n, seed) for s in sizes.sources for n in sizes.data_sizes for seed in seeds]
    total, frames = len(conditions) * sizes.stability_steps, []
    with progress_bar(total=total, unit="step", description="sizes and domains") as bar:
        for source, size, seed in conditions:
            config = dynamics_config(
                profile,
                OBJECTIVE,
                seed=seed,
                source=source,
                sentences=size,
                steps=sizes.stability_steps,
            )
            followed = follow(
                config, sentences=sizes.sentences, rules=("trapezoid",), on_step=bar.update
            )
            blocks = followed.changes.blocks
            trunk = allocations(record_table(followed.changes)).query("layer > 0")
            cells = trunk.groupby(CELL, sort=False).value.sum().to_frame()
            cells["parameters"] = blocks.groupby(CELL)["size"].sum()
            keys = {"source": source, "size": size, "seed": seed}
            frames.append(cells.reset_index().assign(**keys))
    return pd.concat(frames, ignore_index=True)[[*RUN, *CELL, "parameters", "value"]]


def profiles_of(table: pd.DataFrame) -> pd.DataFrame:
    """Profiles of all runs: a row a run, a column a layer and component, each row of sum 1.

    Parameters
    ----------
    table : DataFrame
        Of `measure_stability`.
    """
    runs = {run: shares(rows, *CELL, trunk=True) for run, rows in table.groupby(RUN)}
    return pd.DataFrame(runs).T.rename_axis(index=RUN)


def profile_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Pearson's correlation of the profiles of runs that differ in one thing.

    Parameters
    ----------
    table : DataFrame
        Of `measure_stability`.

    Returns
    -------
    DataFrame
        One pair of runs a row: ``differs`` ("size", "source" or "seed": the noise floor), ``seed``
        (of both, or −1 where that is what differs) and ``r``.
    """
    profiles = profiles_of(table)
    rows = []
    for (first, x), (second, y) in combinations(profiles.iterrows(), 2):
        differing = [name for name, a, b in zip(RUN, first, second, strict=True) if a != b]
        if len(differing) == 1:
            seed = -1 if differing == ["seed"] else first[RUN.index("seed")]
            rows.append((differing[0], seed, float(np.corrcoef(x, y)[0, 1])))
    return pd.DataFrame(rows, columns=["differs", "seed", "r"])
