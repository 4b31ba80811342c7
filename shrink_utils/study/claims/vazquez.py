"""The claims of Vázquez et al. (V) and of Ethayarajh, whose measures they take, on contextuality.

They are about one pretrained encoder. The units are sentences or words, so an interval speaks of
more sentences or words like these, read by the same encoder, and of no other encoder.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import Claim, Direction, Unit, evaluate

__all__ = ["vazquez_claims"]

BERT = "bert-base-cased"  # whose numbers are published
SMALL = 0.05  # Ethayarajh: a static vector explains less than this

Tested = tuple[Claim, pd.Series]  # a claim and its differences, one a sentence or word


def vazquez_claims(contextuality: pd.DataFrame, corpus: pd.DataFrame) -> pd.DataFrame:
    """Test every claim on the layers of one encoder.

    Parameters
    ----------
    contextuality : DataFrame
        Of `contextuality.measure_contextuality`.
    corpus : DataFrame
        Of `corpus.measure_corpus`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`.
    """
    layers = _Layers(contextuality, corpus)
    tested = [*_avg_sim(layers), *_self_sim(layers), *_intra_sim(layers), *_mev(layers)]
    return evaluate(dict(tested), dict(tested).__getitem__)


class _Layers:
    """Both tables as item × layer, and the published numbers by layer."""

    def __init__(self, contextuality: pd.DataFrame, corpus: pd.DataFrame) -> None:
        self.contextuality, self.corpus = contextuality, corpus
        self.last = int(contextuality.layer.max())

    def wide(self, quantity: str, column: str = "value") -> pd.DataFrame:
        """A column of one quantity, a row an item and a column a layer."""
        rows = self.contextuality[self.contextuality.quantity == quantity]
        return rows.pivot(index="item", columns="layer", values=column)

    def corrected_self_sim(self) -> pd.DataFrame:
        """SelfSim of each word minus AvgSim, a row a word and a column a layer."""
        by_word = self.corpus[self.corpus.quantity == "self_sim"]
        avg_sim = self.corpus[self.corpus.quantity == "avg_sim"].set_index("layer").value
        return by_word.pivot(index="item", columns="layer", values="value") - avg_sim


def _published(name: str, column: str) -> pd.Series:
    """BERT's numbers by layer."""
    table = pd.read_csv(data_dir() / "published" / f"{name}.csv")
    return table[table.model == BERT].set_index("layer")[column]


def _avg_sim(layers: _Layers) -> Iterator[Tested]:
    """V: BERT's AvgSim rises gradually, where an MT encoder's starts high and ends in a jump.

    BERT's own last layer falls (.675 to .477), so the rise is tested with and without it. Which
    layer makes the largest step is read off the same sentences.
    """
    values, bert = layers.wide("avg_sim"), _published("avgsim_layers", "avg_sim")
    source = f"V, on BERT; Ethayarajh 2019 §4.1 ({BERT})"
    below = layers.last - 1
    for name, to, bert_to in (("last layer", layers.last, 12), ("last layer but one", below, 11)):
        statement = f"AvgSim of words rises from the embeddings to the {name}"
        published = bert[bert_to] - bert[0]
        claim = _claim(f"avgsim-rises-{to}", source, statement, "greater", "sentences", published)
        yield claim, values[to] - values[0]
    statement = "no layer but the last makes half of that rise (it is gradual)"
    published = bert.loc[:11].diff().max() - (bert[11] - bert[0]) / 2
    claim = _claim("avgsim-gradual", source, statement, "less", "sentences", published)
    steps = values.loc[:, :below].diff(axis=1)
    yield claim, steps[steps.mean().idxmax()] - (values[below] - values[0]) / 2


def _self_sim(layers: _Layers) -> Iterator[Tested]:
    """The error of AvgSim, which is far smaller than the words' spread, is not in the interval."""
    values, bert = layers.corrected_self_sim(), _published("selfsim_layers", "adjusted_self_sim")
    source = f"V; Ethayarajh 2019 §4.2 ({BERT})"
    statement = "SelfSim − AvgSim of words falls from the embeddings to the last layer"
    claim = _claim("selfsim-falls", source, statement, "less", "words", bert[12] - bert[0])
    yield claim, values[layers.last] - values[0]


def _intra_sim(layers: _Layers) -> Iterator[Tested]:
    """In BERT: above the similarity of random words in all layers, and less so in upper ones."""
    values = layers.wide("intra_sim")
    bert = _published("intrasim_layers", "intra_sim") - _published("avgsim_layers", "avg_sim")
    source = f"V; Ethayarajh 2019 §4.2 ({BERT})"
    above = values - layers.wide("intra_sim", "baseline")
    yield from _above(layers, "AvgSim", source, above, bert)
    above = values - layers.wide("intra_sim", "null")
    yield from _above(layers, "its length-matched null", "our control of V", above, None)


def _above(
    layers: _Layers, name: str, source: str, above: pd.DataFrame, bert: pd.Series | None
) -> Iterator[Tested]:
    """IntraSim exceeds what `name` says, in the first and last layer, and less so in the last."""
    short = name.split()[-1].lower()
    for layer, bert_layer in ((0, 0), (layers.last, 12)):
        statement = f"IntraSim exceeds {name} at {_called(layer)}"
        published = None if bert is None else bert[bert_layer]
        named = f"intrasim-above-{short}-{layer}"
        claim = _claim(named, source, statement, "greater", "sentences", published)
        yield claim, above[layer]
    statement = f"IntraSim − {name} falls from the embeddings to the last layer"
    published = None if bert is None else bert[12] - bert[0]
    claim = _claim(f"intrasim-falls-{short}", source, statement, "less", "sentences", published)
    yield claim, above[layers.last] - above[0]


def _mev(layers: _Layers) -> Iterator[Tested]:
    """A static vector explains less than 5 % of a word's variance: as defined, and as computed."""
    source = "Ethayarajh 2019 abstract, §4.3"
    for quantity, reference, reading in (
        ("mev", "null", "as defined, beyond as many random rows"),
        ("mev_released", "baseline", "as the released code computes it, beyond random words"),
    ):
        above = layers.wide(quantity) - layers.wide(quantity, reference)
        for layer in (1, layers.last):
            statement = f"a static vector explains < {SMALL} of a word at layer {layer}, {reading}"
            name = f"{quantity.replace('_', '-')}-small-{layer}"
            yield _claim(name, source, statement, "less", "words", None), above[layer] - SMALL


def _called(layer: int) -> str:
    return "the embeddings" if layer == 0 else f"layer {layer}"


def _claim(
    name: str,
    source: str,
    statement: str,
    direction: Direction,
    unit: Unit,
    published: float | None,
) -> Claim:
    return Claim(
        id=f"v:{name}",
        source=source,
        statement=statement,
        direction=direction,
        published=None if published is None else round(float(published), 6),
        unit=unit,
    )
