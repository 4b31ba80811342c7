"""The columns of every table that a study leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet as parquet

from shrink_utils.study.claims.claim import COLUMNS

__all__ = ["HISTORIES", "MEASURED", "TABLES", "foreign_schemas"]

TABLES = {
    "task_metric": "model task arm metric mean sd n",
    "anisotropy": "model task arm space k mean sd n",
    "claims": COLUMNS,
}
_ALLOCATED = "quantity rule step stack layer component head counted value"
MEASURED = {
    "after_finetuning": "model task arm seed vectors layer n measure treatment removed skipped "
    "value",
    "contextuality": "quantity layer item value null baseline",
    "corpus": "quantity layer item value",
    "dynamics": f"objective seed {_ALLOCATED}",
    "dynamics_arms": f"arm seed {_ALLOCATED}",
    "dynamics_sgd": _ALLOCATED,
    "dynamics_stability": "source size seed layer component parameters value",
    "family": "relation weights member other seed other_seed layer other_layer cka",
    "generalization": "quantity group number other other_number data heuristic label template "
    "layer value",
    "similarity": "pair task arm seed measure layer other value",
    "stitched": "relation front front_number back back_number kind front_layer back_layer loss "
    "penalty",
    "stsb_after_finetuning": "model task arm seed n treatment removed skipped spearman isotropy",
    "two_encoders": "quantity front front_seed back back_seed map layer value",
    "words_after_finetuning": "model task arm seed layer probe labels n value chance",
}
_STEP = "step epoch learning_rate grad_norm rows task_loss regularizer entropy entropy_all"
_STEP += " raw_1 raw_2 raw_3 centred_1 centred_2 centred_3"
HISTORIES = {"fine-tuning": _STEP, "pretraining": "step loss learning_rate"}
BY_CLASS = ("n_features_", "n_bars_")  # of a fine-tuning: one column a class


def foreign_schemas(folder: Path) -> Iterator[str]:
    """How the columns of a folder's tables differ from what this code writes; reads no row."""
    for path in sorted((folder / "tables").glob("*.csv")):
        columns = pd.read_csv(path, nrows=0).columns
        yield from _differences(f"tables/{path.name}", columns, TABLES.get(path.stem))
    for path in sorted((folder / "measured").glob("*.parquet")):
        name = path.stem.rpartition("-")[0]
        yield from _differences(f"measured/{path.name}", _columns(path), MEASURED.get(name))
    for path in sorted((folder / "runs").glob("*/history.parquet")):
        columns = [name for name in _columns(path) if not name.startswith(BY_CLASS)]
        kind = "pretraining" if "loss" in columns else "fine-tuning"
        where = f"runs/{path.parent.name}/{path.name}"
        yield from _differences(where, columns, HISTORIES[kind])


def _columns(path: Path) -> list[str]:
    return parquet.read_schema(path).names


def _differences(where: str, found: Iterable[str], schema: str | None) -> Iterator[str]:
    if schema is None:
        yield f"{where}: no table of this study"
        return
    found, expected = list(found), schema.split()
    yield from (f"{where}: foreign column {name}" for name in found if name not in expected)
    yield from (f"{where}: no column {name}" for name in expected if name not in found)
