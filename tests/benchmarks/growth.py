"""How costs grow: the streaming metrics with rows, their words with text, a step with the model.

    python tests/benchmarks/growth.py [--rows N] [--widths 384 768] [--repeats N]

Seconds are CPU time of one thread, batch by batch the least of the repeats: whatever else the
machine does weighs little on them. docs/plan.md extrapolates from what this prints.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy and torch read them

import numpy as np  # noqa: E402
import torch  # noqa: E402
from numpy.typing import ArrayLike  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402
from transformers import BertConfig, BertForSequenceClassification  # noqa: E402

from shrink_utils.geometry.streaming import AvgSim, LayerCKA, SelfSim, Spectrum  # noqa: E402
from shrink_utils.models import split_words  # noqa: E402
from shrink_utils.text import load_sentences  # noqa: E402
from shrink_utils.topology import BarcodeRegularizer  # noqa: E402
from shrink_utils.training import StepRecorder  # noqa: E402

BATCH, LAYERS, WORDS, MIN_COUNT = 1024, 7, 20_000, 5
SHAPES = {"MiniLM-L6": (6, 384, 12), "BERT-base": (12, 768, 12)}  # depth, width, heads
ROWS, TOKENS = 8, 64  # of a training step; its cost is linear in the rows


# A metric, and what it is given of a batch (BATCH, d) and its words (BATCH,).
WAYS = {
    "AvgSim, RogueDimensions (one layer)": (AvgSim, lambda x, words: (x,)),
    f"SelfSim (one layer, {WORDS:,} words)": (
        lambda d: SelfSim(WORDS, d),
        lambda x, words: (x, words),
    ),
    "Spectrum, IsoScore, EffectiveRank (one layer)": (Spectrum, lambda x, words: (x,)),
    f"LayerCKA ({LAYERS} layers)": (
        lambda d: LayerCKA([d] * LAYERS, debiased=True),
        lambda x, words: ([x] * LAYERS,),
    ),
}


def metric_seconds(way: tuple, d: int, n_batches: int) -> tuple[list[float], int]:
    """CPU seconds of each batch of a pass, and the bytes of the state."""
    generator = np.random.default_rng(0)
    x = torch.from_numpy(generator.standard_normal((BATCH, d), dtype=np.float32))
    # Zipf's law: the word of rank r is 1/r as frequent as the first.
    shares = 1 / np.arange(1, WORDS + 1)
    make, given = way
    metric, seconds = make(d), []
    for _ in range(n_batches):
        words = torch.from_numpy(generator.choice(WORDS, BATCH, p=shares / shares.sum()))
        seconds.append(_spent(lambda words=words: metric.update(*given(x, words))))
    return seconds, sum(state.nbytes for state in metric.metric_state.values())


def slope(n: ArrayLike, cost: ArrayLike) -> float:
    """Exponent of the power law nearest to the points: 1 is linear."""
    return float(np.polyfit(np.log(n), np.log(cost), 1)[0])


def print_metrics(widths: list[int], most: int, repeats: int) -> None:
    """A few lines per metric and width."""
    rows = np.arange(BATCH, most + 1, BATCH)
    marks = [i for i in range(len(rows)) if (i + 1).bit_count() == 1]  # 1, 2, 4, … batches
    print(f"Streaming metrics, float32 rows in batches of {BATCH}")
    for name, way in WAYS.items():
        for d in widths:
            metric_seconds(way, d, 1)  # whatever is slow the first time
            runs = [metric_seconds(way, d, len(rows)) for _ in range(repeats)]
            spent = np.min([seconds for seconds, _ in runs], axis=0).cumsum()
            print(f"{name}, d = {d}")
            print("    " + "  ".join(f"{rows[i]}: {spent[i]:.4f} s" for i in marks))
            print(f"    slope {slope(rows[marks], spent[marks]):.2f}, ", end="")
            print(f"{spent[-1] / rows[-1] * 1e6:.1f} µs a row, {runs[0][1] / 1e6:.2f} MB")


def print_vocabulary(texts: list[str]) -> None:
    """Different words of more and more text, by Heaps' law a power of its length."""
    counts, sizes = Counter(), []  # in how many texts a word stands
    n_words, marks = 0, [len(texts) // 2**i for i in range(5)]
    order = np.random.default_rng(0).permutation(len(texts))  # the sources mixed
    for i, at in enumerate(order, 1):
        words = split_words(texts[at])
        n_words += len(words)
        counts.update(set(words))
        if i in marks:
            frequent = sum(count >= MIN_COUNT for count in counts.values())
            sizes.append((n_words, len(counts), frequent))
    print("\nThe offline sentences: words, different ones, those in 5 sentences or more")
    for size in sizes:
        print("    {:8,} {:7,} {:7,}".format(*size))
    length, different, frequent = zip(*sizes, strict=True)
    print(f"    exponents {slope(length, different):.2f} and {slope(length, frequent):.2f}")


def print_steps(repeats: int) -> None:
    """Operations and seconds of a training step's parts."""
    print(f"\nTraining step, {ROWS} rows of {TOKENS} tokens, float32")
    for name, (depth, width, heads) in SHAPES.items():
        torch.manual_seed(0)
        shape = {"num_hidden_layers": depth, "hidden_size": width, "num_attention_heads": heads}
        model = BertForSequenceClassification(BertConfig(intermediate_size=4 * width, **shape))
        ids = torch.randint(1000, 20_000, (ROWS, TOKENS))
        optimizer = torch.optim.AdamW(model.parameters())

        def passes(model=model, ids=ids) -> None:
            model(input_ids=ids, labels=torch.zeros(ROWS, dtype=torch.long)).loss.backward()

        with FlopCounterMode(display=False) as counter:
            passes()
        operations, seconds = counter.get_total_flops(), _least(passes, repeats)
        update = _least(optimizer.step, repeats)
        print(f"{name}: {operations / 1e9:.1f} GFLOP forward and backward, ", end="")
        rate = operations / seconds / 1e9
        print(f"{seconds:.3f} s ({rate:.0f} GFLOP/s); AdamW {update:.3f} s")
    print("What stays on the processor, a step of 64 rows in 2 classes, d = 768")
    x, labels = torch.randn(64, 768), torch.arange(64) % 2
    regularizer, recorder = BarcodeRegularizer(), StepRecorder()
    bars, loss = regularizer(x, labels), torch.zeros(())

    parts = {
        "regularizer": lambda: regularizer(x.clone().requires_grad_(), labels).loss.backward(),
        "recorder": lambda: recorder.observe(loss, x, labels, bars, regularizer=loss),
    }
    for name, part in parts.items():
        print(f"    {name} {_least(part, 10 * repeats) * 1e3:.1f} ms")


def _least(run: Callable[[], object], repeats: int) -> float:
    """CPU seconds, the least of the repeats after a first one."""
    run()
    return min(_spent(run) for _ in range(repeats))


def _spent(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def main(argv: list[str] | None = None) -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description="how costs grow")
    parser.add_argument("--rows", type=int, default=16 * BATCH, help=f"at least {2 * BATCH}")
    parser.add_argument("--widths", type=int, nargs="+", default=[384, 768])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=None, help="all of them by default")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    # glibc keeps freed memory once a block of this size has been freed, as a model does; before
    # that, pages that come and go would take most of the time at d = 768.
    torch.empty(30 << 20, dtype=torch.uint8)
    print_metrics(arguments.widths, arguments.rows, arguments.repeats)
    print_vocabulary(list(load_sentences("all", n=arguments.sentences)["text"]))
    print_steps(arguments.repeats)


if __name__ == "__main__":
    main()
