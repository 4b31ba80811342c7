"""Records of loss changes, and what chapter 10 and the claims read off them."""

from itertools import permutations

import numpy as np
import pandas as pd

from shrink_utils.training.dynamics import LossChanges, shares

NOWHERE = {"stack": "", "layer": -1, "component": "", "head": -1, "counted": False}
BLOCK = ["layer", "component"]
OBJECTIVE_NAMES = {"mlm": "masked LM", "clm": "causal LM", "mt": "translation"}
COUNTED = ("key", "query", "value", "out", "W1", "W2")  # of Vázquez et al. 2022


def record_table(changes: LossChanges) -> pd.DataFrame:
    """A record as one tidy table of one value per row.

    Columns ``quantity``, ``rule``, ``step``, ``stack``, ``layer``, ``component``, ``head``,
    ``counted`` and ``value``. By ``quantity``: "allocation", of each rule, weights and biases of a
    place together; "loss" after each step, and before training at step 0.
    """
    frames = []
    for rule in changes.values:
        sums = changes.table(rule).groupby(["step", *NOWHERE], sort=False).value.sum()
        frames.append(sums.reset_index().assign(quantity="allocation", rule=rule))
    losses = [changes.losses[0, 0], *changes.losses[:, 1]]
    loss = pd.DataFrame({"step": np.arange(len(losses)), "value": losses})
    frames.append(loss.assign(quantity="loss", rule="", **NOWHERE))
    return pd.concat(frames, ignore_index=True)[["quantity", "rule", "step", *NOWHERE, "value"]]


def profiles_of(places: pd.DataFrame) -> pd.DataFrame:
    """Shares of the trunk's loss change by layer and component in the first updates followed.

    Of all trainings these are as many; cross-attention is left out. `places` is the table of that
    name of `read_objectives`. A row of sum 1 per training, whose index has its ``run`` and its
    ``seed``: a run is an objective, of translation the encoder, whose "decoder" is a run of its
    own; where the text is what varies, a run is its source.
    """
    of = places[(places.rule == "trapezoid") & (places["window"] == 0)]
    of = of[~of.component.str.startswith("cross ")]
    named = of.objective.where(of.part == "objectives", of.source)
    of = of.assign(run=named.where(of["stack"] != "decoder", "decoder"))
    runs = {run: shares(rows, *BLOCK, trunk=True) for run, rows in of.groupby(["run", "seed"])}
    return pd.DataFrame(runs).T.rename_axis(index=["run", "seed"])


def correlations(profiles: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of profiles that begin from different seeds.

    Runs of one seed begin with equal weights: what they share is no effect of their data.

    Parameters
    ----------
    profiles : DataFrame
        Of `profiles_of`.

    Returns
    -------
    DataFrame
        Both orders of every pair: ``run``, ``other``, ``front_seed``, ``back_seed`` and ``r``.
    """
    rows = [
        (run, other, i, j, float(np.corrcoef(x, y)[0, 1]))
        for ((run, i), x), ((other, j), y) in permutations(profiles.iterrows(), 2)
        if i != j
    ]
    return pd.DataFrame(rows, columns=["run", "other", "front_seed", "back_seed", "r"])
