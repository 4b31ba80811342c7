"""What few bits cost a search, by a task that everybody can repeat: verses translated twice.

``python -m shrink_utils.study.verse_search`` computes the table behind the page *Search with few
bits* with MiniLM as it is, in some minutes, and says how far it is from the committed one.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from shrink_utils.geometry import all_but_the_top, random_rotation, search, whitening
from shrink_utils.models import hidden_states, load_encoder
from shrink_utils.sources import data_dir, fetch, results_dir
from shrink_utils.study.results import atomic_write
from shrink_utils.study.statistics import _mean_of
from shrink_utils.text import load_task
from shrink_utils.text.corpora import hash_order

N_VERSES, LENGTH = 4000, 48  # verses that are looked for; word-pieces that are read of a text
CODES = {
    "full": {},
    "eight_bit": {"bits": 8},
    "one_bit": {"bits": 1},
    "one_bit_rescored": {"bits": 1, "rescore": 40},
}


def _verses(name: str) -> dict[int, str]:
    """Verses by number, of the World English Bible ("web") or Young's Literal Translation ("ylt").

    They stand in a module, which is read as data and never imported.

    Raises
    ------
    ConnectionError
        The package index cannot be reached: see `sources.fetch`.
    """
    code = (fetch(f"verses_{name}") / "plain_text_readers_bible.py").read_text(encoding="utf-8")
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    bible = next(call for call in calls if getattr(call.func, "id", "") == "Bible")
    text, starts, ends = (ast.literal_eval(part) for part in bible.args[1:4])
    return {verse: " ".join(text[starts[verse] : ends[verse]].split()) for verse in starts}


def _verse_pairs() -> list[tuple[str, str]]:
    """Verses in both translations, in an order drawn once.

    Left out: verses of fewer than five words on a side, with the same text in both, or with a text
    that stands twice in one of them.
    """
    first, second = _verses("web"), _verses("ylt")
    often = [Counter(side.values()) for side in (first, second)]
    pairs = [(first[verse], second[verse]) for verse in sorted(first.keys() & second.keys())]
    kept = [
        (a, b)
        for a, b in pairs
        if min(len(a.split()), len(b.split())) >= 5
        and a != b
        and max(side[text] for side in often for text in (a, b)) == 1
    ]
    return [kept[i] for i in hash_order(len(kept), "last", "verses")]


def _measure_search() -> pd.DataFrame:
    """How often MiniLM's vectors find a verse's other translation among 4,000: recall at 1, or 10.

    One row per pooling, rows that the map is fitted on (other verses, or product reviews), map and
    code, with intervals of 95 % over verses.
    """
    pairs, encoder = _verse_pairs(), load_encoder("minilm")
    reviews = list(load_task("sentiment_products")["train"]["text"])
    texts = {
        "asked": [a for a, _ in pairs[:N_VERSES]],
        "right": [b for _, b in pairs[:N_VERSES]],
        "verses": [a for a, _ in pairs[N_VERSES : N_VERSES + len(reviews)]],
        "reviews": reviews,
    }
    rows = []
    asked_for = {  # codes, and how many neighbours may have it among them
        "mean": [(code, 1) for code in CODES],
        "cls": [("full", 1), ("full", 10), ("one_bit", 1), ("one_bit", 10)],
    }
    for pooling, codes in asked_for.items():
        options = {"layers": [-1], "max_length": LENGTH, "pooling": pooling}
        x = {name: hidden_states(encoder, of, **options)[0] for name, of in texts.items()}
        for fitted, name, treat in _fitted_maps(x):
            asked, right, fit = (treat(x[side]) for side in ("asked", "right", fitted))
            for code, k in codes:
                how = CODES[code] | ({"calibration": fit} if code == "eight_bit" else {})
                found = search(asked, right, k=k, **how).recall(np.arange(len(right)))
                row = _mean_of(found).interval()._asdict()
                named = f"{pooling} {fitted} {name} {code}" + (" among ten" if k > 1 else "")
                rows.append({"id": named} | row)
    return pd.DataFrame(rows)


def _fitted_maps(x: dict[str, Tensor]) -> Iterator[tuple[str, str, Callable]]:
    """What they are fitted on, their names, and the maps."""
    yield "verses", "plain", lambda rows: rows
    yield "verses", "rotated", random_rotation(x["verses"])
    yield "verses", "all_but_the_top", all_but_the_top(x["verses"], remove=3)
    for fitted in ("verses", "reviews"):
        yield fitted, "whitened", whitening(x[fitted])
        yield fitted, "uncut", _uncut_whitening(x[fitted].double().numpy())


def _uncut_whitening(x: NDArray) -> Callable[[Tensor], NDArray]:
    """As four lines of NumPy have it: directions that hold nothing but rounding weigh as others."""
    mean = x.mean(axis=0)
    _, sizes, directions = np.linalg.svd(x - mean, full_matrices=False)
    return lambda rows: (rows.double().numpy() - mean) @ (directions.T / sizes)


def _main() -> None:
    """Write the table into the results, and say how far it is from the committed one."""
    table, path = _measure_search(), results_dir() / "search" / "verses.csv"
    with atomic_write(path) as part:
        table.to_csv(part, index=False, float_format="%.6f")
    print(table.to_string(index=False, float_format="{:.3f}".format))
    committed = pd.read_csv(data_dir() / "reference" / "search" / "verses.csv")
    apart = (table.set_index("id").estimate - committed.set_index("id").estimate).abs().max()
    print(f"Written: {path}. Largest difference from the committed table: {apart:.4f}")


if __name__ == "__main__":
    _main()
