"""What the pass over the corpus costs beside the encoder's forward passes: time and memory.

    python tests/benchmarks/streaming.py [--sentences N]

The corpus is cut into parts. Each is read twice in turn, by forward passes alone and by the pass
that accumulates, which goes first changing from part to part: whatever else the machine does
weighs on both. Accumulating runs in a thread beside the forward passes: the ratio of the
processor's seconds tells what it costs where no core is free for that thread.
"""

import argparse
import resource
import sys
import time

import numpy as np
import torch

from shrink_utils.models import Encoder, load_encoder, state_batches, word_batches
from shrink_utils.study.contextuality.corpus import (
    CorpusMetrics,
    accumulate,
    frequent_words,
    stream_corpus,
)
from shrink_utils.text import load_sentences

MOST_TIME, MOST_MEGABYTES = 1.15, 50
PART = 2000  # sentences


def _now() -> np.ndarray:
    """Seconds of the clock, and of the processor over all threads."""
    return np.array([time.perf_counter(), time.process_time()])


class Turns:
    """Both passes over parts of the corpus, and the seconds that each has taken so far."""

    def __init__(self, encoder: Encoder, texts: list[str]) -> None:
        self.encoder, model = encoder, encoder.model
        width = model.config.hidden_size
        self.metrics = CorpusMetrics(len(encoder.layers), width, frequent_words(texts))
        self.forward_seconds, self.pass_seconds, self._model_seconds = np.zeros((3, 2))
        model.register_forward_pre_hook(lambda *_: self._add(-self._now()))
        model.register_forward_hook(lambda *_: self._add(self._now()))

    def _now(self) -> np.ndarray:
        """Seconds of the clock, and of the processor over all threads."""
        if self.encoder.model.device.type == "cuda":
            torch.cuda.synchronize(self.encoder.model.device)
        return np.array([time.perf_counter(), time.process_time()])

    def _add(self, seconds: np.ndarray) -> None:
        self._model_seconds += seconds

    def forward(self, part: list[str]) -> None:
        """The model's calls alone, without the tokenizer."""
        self._model_seconds = np.zeros(2)
        for _ in state_batches(self.encoder, part):
            pass
        self.forward_seconds += self._model_seconds

    def whole_pass(self, part: list[str]) -> None:
        """Tokenizer, model, word vectors and every accumulator."""
        started = self._now()
        for _ in accumulate(self.metrics, word_batches(self.encoder, part)):
            pass
        self.pass_seconds += self._now() - started

    def flush(self) -> None:
        """What still waits belongs to the pass."""
        started = self._now()
        self.metrics.flush()
        self.pass_seconds += self._now() - started


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)  # bytes there, kilobytes elsewhere


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description="time and memory of the pass over the corpus")
    parser.add_argument("--sentences", type=int, default=None, help="all of them by default")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--threads", type=int, default=1, help="quick has 1")
    arguments = parser.parse_args(argv)

    torch.set_num_threads(arguments.threads)
    texts = list(load_sentences("all", n=arguments.sentences)["text"])
    encoder = load_encoder(arguments.model)
    stream_corpus(encoder, texts[:64], min_count=2)  # whatever is slow the first time
    before = _peak_megabytes()

    turns = Turns(encoder, texts)
    n_parts = -(-len(texts) // PART)
    for i in range(n_parts):
        both = (turns.forward, turns.whole_pass)
        for take in both if i % 2 else both[::-1]:
            take(texts[i::n_parts])
    n_bytes = turns.metrics.n_bytes()  # with what still waits
    turns.flush()

    print(f"{len(texts)} sentences, {len(encoder.layers)} layers, {arguments.threads} thread(s)")
    print("                         clock  processor")
    for name, (clock, processor) in (
        ("forward passes alone", turns.forward_seconds),
        ("with all accumulators", turns.pass_seconds),
        ("ratio", turns.pass_seconds / turns.forward_seconds),
    ):
        print(f"{name:22}{clock:8.3f}   {processor:8.3f}")
    print(f"ratio of the clock    at most {MOST_TIME}")
    print(f"accumulators          {n_bytes['the rest'] / 1e6:8.1f} MB at most {MOST_MEGABYTES}")
    print(f"SelfSim's sums        {n_bytes['words'] / 1e6:8.1f} MB ", end="")
    print(f"of {len(turns.metrics.vocabulary)} words")
    print(f"peak of the process   {_peak_megabytes():8.1f} MB {before:.1f} before the pass")


if __name__ == "__main__":
    main()
