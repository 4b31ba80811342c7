"""Loss change allocation of three objectives on one trunk, after Vázquez et al. 2022."""

from __future__ import annotations

import pandas as pd

from shrink_utils.models import OBJECTIVES
from shrink_utils.study.dynamics.followed import Stopwatch, dynamics_config, follow, record_table
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.training import ScratchConfig, pretrain

__all__ = ["OBJECTIVE_NAMES", "measure_dynamics"]

OBJECTIVE_NAMES = {"mlm": "masked LM", "clm": "causal LM", "mt": "translation"}
CHEAP = ("euler", "trapezoid")  # one gradient a step; Simpson's rule takes a second one


@measured("dynamics")
def measure_dynamics(profile: Profile) -> pd.DataFrame:
    """Follow every objective from every seed of ``profile.pretraining``.

    Parameters
    ----------
    profile : Profile

    Returns
    -------
    DataFrame
        Of `followed.record_table`, with ``objective`` and ``seed`` in front. Simpson's rule is
        recorded for the first seed. Further quantities, without a place:

        - "seconds": wall-clock of a training, by ``rule``: "simpson" (all rules recorded, first
          seed), "trapezoid" (without Simpson's, last seed), "plain" (nothing recorded, last seed);
        - "held out": the loss of all held-out sentences after the last two of these.
    """
    seeds = profile.pretraining.seeds
    total = len(OBJECTIVES) * len(seeds) * profile.dynamics.steps
    frames = []
    with progress_bar(total=total, unit="step", description="loss change allocation") as bar:
        for objective in OBJECTIVES:
            for seed in seeds:
                config = dynamics_config(profile, objective, seed=seed)
                rules = (*CHEAP, "simpson") if seed == seeds[0] else CHEAP
                followed = follow(
                    config,
                    sentences=profile.dynamics.sentences,
                    rules=rules,
                    batch_gradient=True,
                    on_step=bar.update,
                )
                keys = {"objective": objective, "seed": seed}
                frames.append(record_table(followed.changes).assign(**keys))
                rows = [("seconds", rules[-1], followed.seconds)]
                if seed == seeds[-1]:
                    rows += [("held out", "trapezoid", followed.held_out), *_plain(config)]
                frames.append(_numbers(rows).assign(**keys))
    table = pd.concat(frames, ignore_index=True)
    return table[["objective", "seed", *table.columns.drop(["objective", "seed"])]]


def _plain(config: ScratchConfig) -> list[tuple[str, str, float]]:
    """The same training with nothing recorded."""
    watch = Stopwatch()
    result = pretrain(config, callbacks=[watch])
    return [
        ("seconds", "plain", watch.seconds),
        ("held out", "plain", result.evaluations[-1]["loss"]),
    ]


def _numbers(rows: list[tuple[str, str, float]]) -> pd.DataFrame:
    nowhere = {"step": 0, "stack": "", "layer": -1, "component": "", "head": -1, "counted": False}
    return pd.DataFrame(rows, columns=["quantity", "rule", "value"]).assign(**nowhere)
