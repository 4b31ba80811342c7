"""Topology on language: attention graphs, dimension, divergence, lives of neighbourhoods.

Chapter 12. The papers look at other encoders and at machine text; nothing here is their own test.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from shrink_utils.study.claims.claim import _as_table, _per_seed, claim


@_as_table
def _language_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[dict]:
    """From the measured tables of chapter 12 by their names."""
    attention = tables["language_attention"]
    # A text's class is found or not, by a probe that was fitted on other texts.
    for task, rows in attention[attention.measure == "hit"].groupby("task", sort=False):
        hits = {name: _per_seed(found, "value", "item") for name, found in rows.groupby("features")}
        for name, other in (("barcodes", "degree"), ("null", "shuffled")):
            yield claim(f"lang:attention-{name}", hits["barcode"] - hits[other], task=task)
    yield from _dimensions(tables["language_dimension"])
    divergence = tables["language_divergence"]
    moved = divergence[(divergence.pair == "finetuned") & (divergence.measure == "rtd")]
    moved = moved[moved.layer == moved.layer.max()]
    prominent, none = (_per_seed(moved[moved.arm == arm], "value") for arm in ("prominent", "none"))
    yield claim("lang:rtd-smaller", prominent - none)
    lives = tables["language_lifetimes"]
    lives = lives[lives.measure == "lifetime"].groupby("cloud")
    lives = {cloud: _per_seed(rows, "value", "item") for cloud, rows in lives}
    for cloud in ("shuffled", "random"):
        yield claim(f"lang:neighbours-live-longer-{cloud}", lives["encoder"] - lives[cloud])


def _dimensions(table: pd.DataFrame) -> Iterator[dict]:
    """Dimensions can be infinite: −1/d keeps their order. Of the last layer, as in the paper."""
    table = table[(table.measure == "ph") & (table.pieces == table.pieces.max())]
    kinds = table[table.layer == table.layer.max()].assign(value=lambda rows: -1 / rows.value)
    kinds = {kind: _per_seed(rows, "value", "item") for kind, rows in kinds.groupby("kind")}
    for kind in ("shuffled", "sampled"):
        yield claim(f"lang:dimension-{kind}", kinds["text"] - kinds[kind])


@_as_table
def machine_text_claims(table: pd.DataFrame) -> Iterator[dict]:
    """The same on text that a raw decoder wrote, from the record of profile `models`.

    It alone installs one. The row was written down before the decoder wrote anything
    (docs/preregistration.md).
    """
    table = table.assign(value=-1 / table.ph)
    human, machine = (
        _per_seed(table[table.kind == kind], "value", "text") for kind in ("human", "machine")
    )
    yield claim("lang:dimension-machine", human - machine)
