"""Machine text against human text: the published use of the PH dimension, on the raw decoder.

The analysis was fixed before the decoder wrote a word: docs/preregistration.md, last section. The
decoder has terms of its own, so the numbers stand on record and no profile needs it to show them.
In a Python with `gguf`, this file writes the record again: ``machine_text.csv`` beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import torch

from shrink_utils.geometry import effective_rank, intrinsic_dimension
from shrink_utils.models import Encoder, load_encoder, token_states
from shrink_utils.study.results import atomic_write, provenance
from shrink_utils.text import load_sentences

READER, WRITER = "minilm", "gemma"
TEXTS, PIECES = 40, 200  # as in section 2 of the chapter
OPENING = 2  # sentences of an article that the decoder is given


def measure_machine_text(
    reader: Encoder, writer: Encoder, *, texts: int = TEXTS, pieces: int = PIECES, seed: int = 0
) -> pd.DataFrame:
    """Dimensions of articles and of what a decoder writes after the same opening sentences.

    Returns
    -------
    DataFrame
        One row per text and kind: "human" and "machine", of `pieces` word-pieces each, and the
        null, the "first half" and "second half" of the human text. Columns text, kind, pieces, ph,
        stderr (of ph), twonn, rank (the effective rank): all of the reader's last layer. A text
        whose continuation has fewer pieces is left out.
    """
    openings, rests = human_texts(reader, texts=texts, pieces=pieces, seed=seed)
    written_on = continuations(writer, openings, tokens=2 * pieces, seed=seed)
    kinds = {
        "human": (rests, 0, pieces),
        "machine": (written_on, 0, pieces),
        "first half": (rests, 0, pieces // 2),
        "second half": (rests, pieces // 2, pieces),
    }
    rows = [row for kind, which in kinds.items() for row in _dimensions(reader, kind, *which)]
    columns = ["text", "kind", "pieces", "ph", "stderr", "twonn", "rank"]
    table = pd.DataFrame(rows, columns=columns)
    return table[table.groupby("text").kind.transform("size") == len(kinds)]


def human_texts(
    reader: Encoder, *, texts: int = TEXTS, pieces: int = PIECES, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Opening sentences of editorials, and what follows them: `pieces` word-pieces or more."""
    table = load_sentences("editorials").to_pandas()
    articles = table.groupby("document", sort=False).text.agg(list)
    shuffled = articles.sample(frac=1, random_state=seed)
    pairs = [(" ".join(a[:OPENING]), " ".join(a[OPENING:])) for a in shuffled]
    ids = reader.tokenizer([rest for _, rest in pairs], add_special_tokens=False)["input_ids"]
    long = [pair for pair, of_rest in zip(pairs, ids, strict=True) if len(of_rest) >= pieces]
    return [opening for opening, _ in long[:texts]], [rest for _, rest in long[:texts]]


@torch.inference_mode()
def continuations(
    writer: Encoder, openings: Sequence[str], *, tokens: int, seed: int = 0
) -> list[str]:
    """What a decoder writes after each opening: ancestral sampling at temperature 1.

    Every text has a generator of its own. Special tokens are never drawn, so no text ends early.

    Raises
    ------
    ValueError
        The decoder's output matrix is not that of its embeddings.
    """
    model, tokenizer = writer.model, writer.tokenizer
    if not model.config.tie_word_embeddings:
        raise ValueError(f"writer: {writer.name} has an output matrix that is not loaded here")
    begun = [(tokenizer.bos_token or "") + opening for opening in openings]
    options = {"padding": True, "padding_side": "left", "add_special_tokens": False}
    batch = tokenizer(begun, return_tensors="pt", **options).to(model.device)
    new, mask, cache = batch["input_ids"], batch["attention_mask"], None
    draws = [torch.Generator().manual_seed(10_000 * seed + i) for i in range(len(openings))]
    drawn: list[torch.Tensor] = []
    while len(drawn) < tokens:
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -new.shape[1] :]
        state = {"attention_mask": mask, "position_ids": places, "past_key_values": cache}
        out = model(input_ids=new, use_cache=True, **state)
        logits = out.last_hidden_state[:, -1] @ model.get_input_embeddings().weight.T  # (b, words)
        logits[:, tokenizer.all_special_ids] = -torch.inf
        pairs = zip(logits.softmax(-1).cpu(), draws, strict=True)
        new = torch.stack([torch.multinomial(p, 1, generator=g) for p, g in pairs]).to(mask)
        mask, cache = torch.cat([mask, torch.ones_like(new)], dim=1), out.past_key_values
        drawn.append(new)
    return tokenizer.batch_decode(torch.cat(drawn, dim=1))


def _dimensions(
    reader: Encoder, kind: str, texts: Sequence[str], start: int, stop: int
) -> Iterator[tuple]:
    """Of the word-pieces from `start` to `stop` of every text that has them."""
    states = token_states(reader, texts, layers=[-1], max_length=stop + 2)
    for text in range(len(texts)):
        x = states.vectors[0, states.sentence == text][start:stop].double()
        if len(x) == stop - start:
            ph, error = intrinsic_dimension(x, method="ph", return_error=True)
            yield text, kind, len(x), ph, error, intrinsic_dimension(x), effective_rank(x)


if __name__ == "__main__":
    since = time.perf_counter()
    torch.set_num_threads(1)
    table = measure_machine_text(load_encoder(READER), load_encoder(WRITER))
    stamp = provenance()
    facts = {name: stamp[name] for name in ("device", "threads", "commit", "time")}
    facts |= {"reader": READER, "writer": WRITER, "seconds": round(time.perf_counter() - since)}
    with atomic_write(Path(__file__).with_suffix(".csv")) as part:
        table.assign(**facts).to_csv(part, index=False, float_format="%.6f")
