"""What loading an encoder and loading a classifier share: where weights are, quietly, seeded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from shrink_utils.text import fetch, hub_revision

TINY = "tiny-random"


def tiny_config(**head: object) -> BertConfig:
    """Two layers, 32 wide, with MiniLM's vocabulary."""
    return BertConfig(
        vocab_size=30522,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        **head,
    )


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer of `name`, able to pad, on the right: the first vector is the first token's."""
    tokenizer = AutoTokenizer.from_pretrained(**location("minilm" if name == TINY else name))
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:  # GPT-2 and its like were trained without one
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def pretrained(auto_class: type, name: str, **head: object) -> PreTrainedModel:
    """`auto_class` with the weights of `name`.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, or the hub cannot be reached.
    """
    try:
        return auto_class.from_pretrained(
            **location(name), use_safetensors=True, dtype=torch.float32, **head
        )
    except OSError as error:
        others = [known for known in ("minilm", TINY) if known != name]
        hint = get_close_matches(name, others, n=1)
        raise FileNotFoundError(
            f"name: no encoder {name!r}"
            + (f", did you mean {hint[0]!r}?" if hint else "")
            + f" (expected 'minilm' or {TINY!r}, which need no hub, a local folder with"
            " model.safetensors, or the id of a model on a hub that can be reached):"
            f" {str(error).splitlines()[0]}"
        ) from error


def location(name: str) -> dict[str, str | Path]:
    """What ``from_pretrained`` is to read: a folder, or a hub's id at the commit pinned for it."""
    path = fetch("minilm") if name == "minilm" else name
    return {"pretrained_model_name_or_path": path, "revision": hub_revision(name) or "main"}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the CPU's generator, which initializes new weights, and give its state back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def quiet() -> Iterator[None]:
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
