"""How three encoders fill their spaces, layer by layer: the record that chapter 02 draws.

`python data/reference/models/layers.py MODEL` puts a model's rows into ``layers.csv`` beside it, in
place of older ones. The sentences are those of the profile `models`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pandas as pd

from shrink_utils.study import load_profile, provenance
from shrink_utils.study.diagnose import diagnose
from shrink_utils.study.results import atomic_write
from shrink_utils.text import load_sentences

if __name__ == "__main__":
    model, path = sys.argv[1], Path(__file__).with_suffix(".csv")
    profile, since = load_profile("models"), time.perf_counter()
    n = profile.diagnostic_sentences
    texts = load_sentences("all", n=n, seed=profile.base_seed)["text"]
    stamp = provenance()
    facts = {name: stamp[name] for name in ("time", "commit", "device", "threads")}
    table = diagnose(model, texts).reset_index().assign(sentences=n, **facts)
    table["seconds"] = round(time.perf_counter() - since)
    table.insert(0, "model", model)
    old = pd.read_csv(path)
    with atomic_write(path) as part:
        new = pd.concat([old[old.model != model], table])
        new.to_csv(part, index=False, float_format="%.6f")
