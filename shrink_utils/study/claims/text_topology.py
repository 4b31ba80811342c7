"""Topology on language: attention graphs, dimension, divergence, lives of neighbourhoods.

Chapter 12. The papers look at other encoders and at machine text; nothing here is their own test.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from shrink_utils.study.claims.claim import Claim, evaluated, per_seed

OURS = {"source": "ours", "kind": "our control"}


@evaluated
def language_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[Claim]:
    """From the measured tables of chapter 12 by their names."""
    claim = partial(Claim, unit="sentences", kind="analogue")
    attention = tables["language_attention"]
    # A text's class is found or not, by a probe that was fitted on other texts.
    for task, rows in attention[attention.measure == "hit"].groupby("task", sort=False):
        hits = {name: per_seed(of, "value", "item") for name, of in rows.groupby("features")}
        statement = "barcodes of attention find a text's class more often than"
        papers = {"source": "Kushnareva et al. 2021; Cherniavskii et al. 2022"}
        for name, other, spoken, own in (
            ("barcodes", "degree", "degrees and entropies", papers),
            ("null", "shuffled", "those of shuffled attention", OURS),
        ):
            name, more = f"lang:attention-{name}:{task}", hits["barcode"] - hits[other]
            yield claim(name, f"{statement} {spoken}", "greater", more, task=task, **own)
    yield from _dimensions(claim, tables["language_dimension"])
    divergence = tables["language_divergence"]
    moved = divergence[(divergence.pair == "finetuned") & (divergence.measure == "rtd")]
    moved = moved[moved.layer == moved.layer.max()]
    prominent, none = (per_seed(moved[moved.arm == arm], "value") for arm in ("prominent", "none"))
    statement = "fine-tuning moves the last layer less with prominent bars than without (RTD-Lite)"
    own = OURS | {"source": "ours, by RTD-Lite (after Barannikov et al. 2022)", "unit": "seeds"}
    yield claim("lang:rtd-smaller", statement, "less", prominent - none, **own)
    lives = tables["language_lifetimes"]
    lives = lives[lives.measure == "lifetime"].groupby("cloud")
    lives = {cloud: per_seed(rows, "value", "item") for cloud, rows in lives}
    nulls = {"shuffled": "sentences shuffled in every layer", "random": "random weights"}
    for cloud, spoken in nulls.items():
        statement = f"neighbours stay neighbours for more layers than with {spoken}"
        longer = lives["encoder"] - lives[cloud]
        yield claim(f"lang:neighbours-live-longer-{cloud}", statement, "greater", longer, **OURS)


def _dimensions(claim: partial, table: pd.DataFrame) -> Iterator[Claim]:
    """Dimensions can be infinite: −1/d keeps their order. Of the last layer, as in the paper."""
    table = table[(table.measure == "ph") & (table.pieces == table.pieces.max())]
    kinds = table[table.layer == table.layer.max()].assign(value=lambda rows: -1 / rows.value)
    kinds = {kind: per_seed(rows, "value", "item") for kind, rows in kinds.groupby("kind")}
    made = {
        "shuffled": "the same words in random order",
        "sampled": "words drawn by their frequency",
    }
    for kind, spoken in made.items():
        statement = f"the PH dimension of a text is higher than of {spoken} (as −1/d)"
        more, source = kinds["text"] - kinds[kind], "Tulchinskii et al. 2023, on machine text"
        yield claim(f"lang:dimension-{kind}", statement, "greater", more, source=source)


@evaluated
def machine_text_claims(table: pd.DataFrame) -> Iterator[Claim]:
    """The same on text that a raw decoder wrote, from the record of profile `models`.

    It alone installs one. The row was written down before the decoder wrote anything
    (docs/preregistration.md).
    """
    table = table.assign(value=-1 / table.ph)
    human, machine = (
        per_seed(table[table.kind == kind], "value", "text") for kind in ("human", "machine")
    )
    yield Claim(
        "lang:dimension-machine",
        "the PH dimension of human text is higher than of machine text of equal length (as −1/d)",
        "greater",
        human - machine,
        source="Tulchinskii et al. 2023",
        unit="sentences",
        departures="texts of 200 word-pieces, a smaller decoder and encoder",
    )
