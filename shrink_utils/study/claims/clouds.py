"""What the last [CLS] vectors of a run show, before and after fine-tuning.

Of the validation rows, which every fine-tuning run keeps: STL, Rajaee & Pilehvar (RP), and Mickus,
Grönroos & Attieh 2024, *Isotropy, Clusters, and Classifiers* (arXiv 2402.03191; MGA).
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from shrink_utils.study.claims.claim import _as_table, _per_seed, claim
from shrink_utils.study.claims.rajaee import _about_rp
from shrink_utils.study.claims.stl import ARM, SELECTED, _about_stl, _table3
from shrink_utils.study.run_tables import TASK_OF_MODEL

ALIGNED = 0.9  # |cos|, within 26 degrees; ours, and exploratory: it was set after first results
YARDSTICKS = ("own", "pretrained")  # whose mean eigenvalue


@_as_table
def _clouds_claims(clouds: pd.DataFrame) -> Iterator[dict]:
    """On the table ``clouds``; RP's and MGA's on every arm."""
    for (model, task), rows in clouds.groupby(TASK_OF_MODEL, sort=False):
        yield from _of_stl(model, task, rows)
    # RP count eigenvalues above 5 times a mean. Whether the count rises depends on which mean.
    for yardstick in YARDSTICKS:
        for (model, task, arm), rows in clouds.groupby([*TASK_OF_MODEL, "arm"], sort=False):
            rise = _per_seed(rows, f"elongated_{yardstick}") - _per_seed(rows, "elongated_before")
            yield claim(f"rp:elongated-{yardstick}", rise, **_about_rp(model, task, arm))
    for (model, task), rows in clouds.groupby(TASK_OF_MODEL, sort=False):
        if rows.classes.iloc[0] > 1 and "none" in set(rows.arm) and rows.arm.nunique() > 1:
            yield claim("mga:conflict", _conflict(rows), cell=f"{model}:{task}", task=task)


def _conflict(rows: pd.DataFrame) -> pd.Series:
    """By seed: what the arms' silhouettes gain, with the sign of what IsoScore gains."""
    wide = rows.pivot(index="seed", columns="arm", values=["isoscore", "silhouette"])
    isotropy, clusters = (
        wide[measure].drop(columns="none").sub(wide[measure]["none"], axis=0)
        for measure in ("isoscore", "silhouette")
    )
    return (np.sign(isotropy) * clusters).mean(axis=1)


def _of_stl(model: str, task: str, rows: pd.DataFrame) -> Iterator[dict]:
    name = _table3(model, task)[1]
    for arm, own in rows.groupby("arm", sort=False):
        about = _about_stl(model, task, arm, table3=name)
        if arm == "all" and ARM in set(rows.arm):
            # Bars are one class's; lengths scale with the cloud, so their logarithm is compared.
            shorter = _per_seed(own, "log_edge") - _per_seed(rows[rows.arm == ARM], "log_edge")
            yield claim("stl:shorter-tree", shorter, **about)
        if arm != "none" and own.classes.iloc[0] > 1 and "none" in set(rows.arm):
            clusters = _per_seed(own, "silhouette")
            lost = clusters - _per_seed(rows[rows.arm == "none"], "silhouette")
            yield claim("stl:clusters-kept", lost, **about)
            if arm in SELECTED and "all" in set(rows.arm):
                gain = clusters - _per_seed(rows[rows.arm == "all"], "silhouette")
                yield claim("stl:clusters-above-all", gain, **about)
        if own.classes.iloc[0] == 2:
            # STL speak of the classifier's hyperplane; its weights are not kept with the clouds.
            beyond = _per_seed(own, "class_cosine") - ALIGNED
            yield claim("stl:class-normal", beyond, aligned=ALIGNED, **about)
