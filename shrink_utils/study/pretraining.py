"""Small transformers from nothing: one trunk below a head per objective, or per class of pairs.

They are drawn and trained in float64. Training amplifies rounding: in float32 another processor
trains another model, in float64 the same one to some twelve digits, and models this small take
hardly longer.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial

import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    BertModel,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    EncoderDecoderModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
)

from shrink_utils.models.encoders import evaluating, quiet, seeded
from shrink_utils.names import known_name, require
from shrink_utils.study.finetuning import (
    EveryStep,
    _isolated_training,
    _quiet_arguments,
    _QuietTrainer,
    _tokenized,
    fixed_batches,
)
from shrink_utils.study.profiles import SEED_STEP, Profile
from shrink_utils.text import heuristic_pairs, training_pairs
from shrink_utils.text.corpora import SPECIAL_TOKENS, split_sentences, train_tokenizer
from shrink_utils.text.pairs import ENTAILMENT
from shrink_utils.training.dynamics import FixedSetLoss

OBJECTIVES = ("mlm", "clm", "mt")  # masked LM, causal LM, translation
BETAS = (0.9, 0.98)  # Adam's, as Vázquez et al. train
JUDGES = 512  # held-out sentences that the loss before and after is taken on, at most
VOCABULARY = 400  # more than the templates' words
PAIR_LENGTH = 32  # tokens; the longest pair of the templates has 22
OVERLAPPING = 0.5  # of the common start's pairs that are not entailed share words all the same


@dataclass(frozen=True, kw_only=True)
class Trunk:
    """What the models of every objective have in common: BERT's layers.

    Raises ValueError for sizes below 1, heads that do not divide the width and a dropout outside
    [0, 1).
    """

    width: int  # the feed-forward part is four times as wide
    depth: int
    heads: int
    dropout: float = 0.1  # of embeddings, attention weights and both outputs of a layer

    def __post_init__(self) -> None:
        require(self, "width depth heads", lambda v: v >= 1, "at least 1")
        if self.width % self.heads:
            raise ValueError(f"width: {self.width} does not divide into {self.heads} heads")
        require(self, "dropout", lambda v: 0 <= v < 1, "at least 0 and below 1")


def scratch_model(
    trunk: Trunk, objective: str, *, vocab_size: int, max_length: int, seed: int
) -> PreTrainedModel:
    """A model with fresh weights, in evaluation mode, on the CPU, in float64.

    Parameters
    ----------
    trunk
    objective
        ``"mlm"``: a ``BertForMaskedLM``. ``"clm"``: a ``BertLMHeadModel``, whose attention is
        causal. ``"mt"``: an ``EncoderDecoderModel``, whose encoder is the trunk and whose decoder
        is a ``BertLMHeadModel`` of the same sizes with cross-attention. Only ``"clm"`` is trained
        here.
    vocab_size, max_length
        Word-pieces of a `train_tokenizer`, and tokens of the longest input.
    seed
        Of the weights. The trunk's are the same for every objective. The global random state is
        left as it was.

    Raises
    ------
    ValueError
        Unknown ``objective``.

    Notes
    -----
    Weights are drawn with BERT's standard deviation of 0.02 times √(768 / width), which is BERT's
    at its own width. With 0.02 at a width of 64 attention begins almost even, and some translation
    models then leave the sentence unread.
    """
    known_name("objective", "objective", objective, OBJECTIVES)
    sizes = {
        "vocab_size": vocab_size,
        "hidden_size": trunk.width,
        "num_hidden_layers": trunk.depth,
        "num_attention_heads": trunk.heads,
        "intermediate_size": 4 * trunk.width,
        "hidden_act": "gelu",
        "initializer_range": 0.02 * math.sqrt(768 / trunk.width),  # BERT's, at BERT's own width
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": trunk.dropout,
        "max_position_embeddings": max_length,
        "type_vocab_size": 1,
        "pad_token_id": SPECIAL_TOKENS.index("[PAD]"),
        "bos_token_id": SPECIAL_TOKENS.index("[CLS]"),
        "eos_token_id": SPECIAL_TOKENS.index("[SEP]"),
        "use_cache": False,
    }
    with _drawing(seed):
        model = _with_head(objective, sizes)
    with _drawing(seed):  # again from the start: the same trunk below every head
        fresh = BertModel(BertConfig(**sizes), add_pooling_layer=False)
    shared = model.encoder if objective == "mt" else model.bert
    shared.load_state_dict(fresh.state_dict())
    return model.eval()


def _new_pair_classifier(
    trunk: Trunk, *, vocab_size: int, max_length: int, seed: int
) -> PreTrainedModel:
    """A ``BertForSequenceClassification`` that says whether a text entails another.

    Parameters are those of `scratch_model`; so are mode, device and the global random state.
    Output 0 is entailment.

    Notes
    -----
    Weights are drawn with standard deviation 1/√width. BERT's .02 is .55/√width at its width of
    768; a trunk of 64 that begins at .02 has next to no attention pattern to begin with and, in
    some hundred steps, does not learn to find a word of one text in the other.
    """
    sizes = {"vocab_size": vocab_size, "max_length": max_length}
    config = scratch_model(trunk, "mlm", **sizes, seed=seed).config
    config.initializer_range = trunk.width**-0.5
    config.id2label = dict(enumerate(ENTAILMENT))
    config.label2id = {name: i for i, name in enumerate(ENTAILMENT)}
    with _drawing(seed):
        return BertForSequenceClassification(config).eval()


def _with_new_head(model: PreTrainedModel, *, seed: int) -> PreTrainedModel:
    """A copy of a `_new_pair_classifier` whose pooler and output layer are drawn anew."""
    with _drawing(seed):
        copy = BertForSequenceClassification(model.config)
    copy.bert.embeddings.load_state_dict(model.bert.embeddings.state_dict())
    copy.bert.encoder.load_state_dict(model.bert.encoder.state_dict())
    return copy.eval()


@contextmanager
def _drawing(seed: int) -> Iterator[None]:
    """New weights are drawn in float64, from the seed; the global state is left as it was."""
    found = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with quiet(), seeded(seed):
            yield
    finally:
        torch.set_default_dtype(found)


def _next_token_loss(logits: Tensor, labels: Tensor, **options: object) -> Tensor:
    """Mean over the labels (b, u), in nats; the library's own loss rounds to float32."""
    return cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def _with_head(objective: str, sizes: dict) -> PreTrainedModel:
    config = BertConfig(**sizes)
    if objective == "mlm":
        return BertForMaskedLM(config)
    if objective == "clm":
        model = BertLMHeadModel(BertConfig(**sizes, is_decoder=True))
        model.loss_function = _next_token_loss
        return model
    decoder = BertLMHeadModel(BertConfig(**sizes, is_decoder=True, add_cross_attention=True))
    return EncoderDecoderModel(encoder=BertModel(config, add_pooling_layer=False), decoder=decoder)


# --- causal language models ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ScratchConfig:
    """One pretraining of a causal LM, described completely: equal ones give equal models.

    Raises ValueError for what no training can have.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> config.trunk.dropout
    0.1
    """

    width: int  # this and the next three: the `Trunk`
    depth: int
    heads: int
    dropout: float = 0.1
    source: str  # of sentences, as in `split_sentences`
    sentences: int | None = None  # at most so many to train on; None takes all
    vocabulary: int  # word-pieces at most
    max_length: int  # tokens kept of a sentence
    steps: int
    batch_size: int  # sentences per step
    learning_rate: float  # Adam's highest
    warmup: float  # the fraction of the steps after which it is reached
    seed: int  # of initial weights and dropout
    data_seed: int = 0  # of the order of the sentences
    threads: int = 1  # of torch; they change the last digits of sums

    def __post_init__(self) -> None:
        _ = self.trunk  # refuses what cannot be built
        require(self, "steps batch_size threads", lambda v: v >= 1, "at least 1")
        require(self, "seed data_seed", lambda v: v >= 0, "0 or more")
        require(self, "sentences", lambda v: v is None or v >= 1, "at least 1, or None")
        require(self, "vocabulary", lambda v: v > 5, "above the 5 special tokens")
        require(self, "max_length", lambda v: v >= 3, "at least 3")
        require(self, "learning_rate", lambda v: 0 < v < 1, "between 0 and 1")
        require(self, "warmup", lambda v: 0 <= v < 1, "at least 0 and below 1")

    @property
    def trunk(self) -> Trunk:
        """The sizes that models of every objective share."""
        return Trunk(**{field.name: getattr(self, field.name) for field in fields(Trunk)})


def scratch_tokenizer(config: ScratchConfig) -> PreTrainedTokenizerBase:
    """The tokenizer of every model with this source, number of sentences and vocabulary.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> len(scratch_tokenizer(config)) <= 200
    True
    """
    return _tokenizer(config.source, config.sentences, config.vocabulary, config.max_length)


@lru_cache(maxsize=8)
def _tokenizer(
    source: str, sentences: int | None, vocabulary: int, max_length: int
) -> PreTrainedTokenizerBase:
    texts = split_sentences(source, n=sentences)["train"]["text"][:]  # a list, not row by row
    tokenizer = train_tokenizer(texts, vocab_size=vocabulary)
    tokenizer.model_max_length = max_length
    return tokenizer


def examples(
    config: ScratchConfig,
    tokenizer: PreTrainedTokenizerBase,
    split: str = "train",
    *,
    n: int | None = None,
) -> Dataset:
    """Tokens of the first `n` sentences of a split, or of all, with the `tokenizer` of `config`.

    Returns
    -------
    Dataset
        Columns ``input_ids`` and ``labels``, the same lists of unequal lengths: the model shifts
        the labels itself.

    Raises
    ------
    ValueError
        The split has fewer than `n` sentences.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> examples(config, scratch_tokenizer(config), n=3).column_names
    ['input_ids', 'labels']
    """
    rows = split_sentences(config.source, n=config.sentences)[split]
    n = len(rows) if n is None else n
    if not 1 <= n <= len(rows):
        raise ValueError(f"n: {n}, expected 1 to {len(rows)} {split} sentences")
    return Dataset.from_dict(_encoded(rows[:n], config, tokenizer))


def _encoded(
    columns: Mapping[str, list[str]], config: ScratchConfig, tokenizer: PreTrainedTokenizerBase
) -> dict[str, list[list[int]]]:
    """Tokens of some rows, which are their own labels."""
    tokens = tokenizer(columns["text"], truncation=True, max_length=config.max_length)["input_ids"]
    return {"input_ids": tokens, "labels": tokens}


def held_out_batches(
    config: ScratchConfig, tokenizer: PreTrainedTokenizerBase, *, n: int | None = None
) -> list[dict[str, Tensor]]:
    """The first `n` held-out sentences, or all, as padded batches: what losses are judged on.

    Models of one source are given the same sentences.

    Returns
    -------
    list of dict
        ``input_ids``, ``attention_mask`` (b, t) and ``labels`` (b, u); b is at most twice
        `batch_size`.

    Raises
    ------
    ValueError
        Fewer than `n` sentences are held out.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> len(held_out_batches(config, scratch_tokenizer(config), n=20))
    2
    """
    rows = examples(config, tokenizer, "held_out", n=n)
    size = 2 * config.batch_size  # the passes over small models cost their number, not their rows
    return fixed_batches(rows, DataCollatorForSeq2Seq(tokenizer), batch_size=size)


@dataclass(frozen=True)
class _ScratchResult:
    """What a pretraining leaves behind.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> [row["step"] for row in pretrain(config).evaluations]
    [0, 1]
    """

    config: ScratchConfig
    model: PreTrainedModel  # in evaluation mode, on the CPU
    tokenizer: PreTrainedTokenizerBase
    evaluations: list[dict]  # step and loss (of at most 512 held-out sentences), before and after


def pretrain(config: ScratchConfig, *, callbacks: Sequence[TrainerCallback] = ()) -> _ScratchResult:
    """Train a model as `config` says.

    Parameters
    ----------
    config : ScratchConfig
        Models whose `seed` alone differs read the same batches in order.
    callbacks : sequence of TrainerCallback
        Told of every step; they may look at the model and must not change it.

    Notes
    -----
    Adam without weight decay, betas (.9, .98), linear warm-up and then the inverse square root of
    the step, gradients clipped at norm 1.

    References
    ----------
    Vázquez et al. 2022, *A Closer Look at Parameter Contributions When Training Neural Language
    and Translation Models* (COLING): one trunk under three objectives.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> pretrain(config).model.training
    False
    """
    tokenizer = scratch_tokenizer(config)
    rows = split_sentences(config.source, n=config.sentences)
    batches = held_out_batches(config, tokenizer, n=min(JUDGES, len(rows["held_out"])))
    # Each batch is encoded when its turn comes: a short training sees a tenth of the sentences.
    encode = partial(_encoded, config=config, tokenizer=tokenizer)
    with _isolated_training(config.threads) as folder:
        model = new_model(config, tokenizer)
        arguments = _quiet_arguments(
            folder,
            max_steps=config.steps,
            per_device_train_batch_size=config.batch_size,
            learning_rate=config.learning_rate,
            adam_beta1=BETAS[0],
            adam_beta2=BETAS[1],
            weight_decay=0.0,
            warmup_steps=config.warmup,  # a value below 1 is a fraction of the steps
            lr_scheduler_type="inverse_sqrt",
            seed=config.seed,
            data_seed=config.data_seed,
            remove_unused_columns=False,  # the texts are encoded later
        )
        trainer = _QuietTrainer(
            model=model,
            args=arguments,
            train_dataset=rows["train"].with_transform(encode),
            data_collator=DataCollatorForSeq2Seq(tokenizer),
            callbacks=list(callbacks),
        )
        before = _held_out_loss(model, batches)
        trainer.train()
        after = _held_out_loss(model, batches)
    evaluations = [{"step": 0, "loss": before}, {"step": config.steps, "loss": after}]
    return _ScratchResult(config, model.eval().cpu(), tokenizer, evaluations)


def new_model(config: ScratchConfig, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model that `pretrain` begins with: the weights of `config.seed`, untrained.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> new_model(config, scratch_tokenizer(config)).config.hidden_size
    8
    """
    return scratch_model(
        config.trunk,
        "clm",
        vocab_size=len(tokenizer),
        max_length=config.max_length,
        seed=config.seed,
    )


@torch.inference_mode()
def _held_out_loss(model: PreTrainedModel, batches: Iterable[dict[str, Tensor]]) -> float:
    """Mean loss of a model over all predicted tokens of the batches, in nats per token.

    Dropout is off; a mean of one of `held_out_batches` counts by the tokens that it predicts. Every
    module is left in the mode it was in.

    Examples
    --------
    >>> config = ScratchConfig(
    ...     width=8, depth=1, heads=1, source="products", sentences=40, steps=1,
    ...     vocabulary=200, max_length=8, batch_size=8, learning_rate=1e-2, warmup=0.5, seed=0,
    ... )
    >>> tokenizer = scratch_tokenizer(config)
    >>> _held_out_loss(new_model(config, tokenizer), held_out_batches(config, tokenizer, n=8)) > 1
    True
    """
    with evaluating(model):
        return sum(part.item() for part in FixedSetLoss(batches)(model))


@dataclass(frozen=True, kw_only=True)
class EntailmentTraining:
    """How long and how fast a model is trained; raises ValueError for what no training can have.

    Examples
    --------
    >>> EntailmentTraining(rows=64, steps=1, learning_rate=1e-3).threads
    1
    """

    rows: int  # pairs to learn from
    steps: int  # of the optimizer, with 64 pairs each
    learning_rate: float  # the highest, after a tenth of the steps; it then falls to 0 linearly
    threads: int = 1  # of torch

    def __post_init__(self) -> None:
        require(self, "rows steps threads", lambda v: v >= 1, "at least 1")
        require(self, "learning_rate", lambda v: 0 < v < 1, "between 0 and 1")


def common_start(
    trunk: Trunk,
    training: EntailmentTraining,
    *,
    seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """What all models begin with, in the place of a pretrained BERT: it compares two texts' words.

    It learns whether two sentences belong together, BERT's second objective: pairs that share words
    against pairs that share none. No label of entailment is used. Of the former two in three are
    entailed, and what is asked, whether words are shared, is the same for both.

    `seed` is of weights and texts; `on_step` is called after every step. Output 0 of the model: the
    texts belong together.

    Examples
    --------
    >>> from shrink_utils.study.pretraining import Trunk
    >>> training = EntailmentTraining(rows=64, steps=1, learning_rate=1e-3)
    >>> model, tokenizer = common_start(Trunk(width=8, depth=1, heads=1), training)
    >>> model.num_labels
    2
    """
    rows = training_pairs(training.rows, counter_examples=OVERLAPPING, seed=seed)
    apart = [int(heuristic == "none") for heuristic in rows["heuristic"]]
    rows = rows.remove_columns("label").add_column("label", apart)
    texts: list[str] = []
    for lexicon in ("known", "new"):
        pairs = heuristic_pairs(1000, lexicon=lexicon, split="train")
        texts += [*pairs["text"], *pairs["text_pair"]]
    tokenizer = train_tokenizer(texts, vocab_size=VOCABULARY)
    sizes = {"vocab_size": len(tokenizer), "max_length": PAIR_LENGTH}
    model = _new_pair_classifier(trunk, **sizes, seed=seed)
    return _train(model, tokenizer, rows, training, seed, on_step), tokenizer


def entailment_model(
    start: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    training: EntailmentTraining,
    *,
    counter_examples: float,
    seed: int,
    data_seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> PreTrainedModel:
    """Train the start, under a new head, to tell entailment; returned in evaluation mode.

    Parameters
    ----------
    start, tokenizer
        Of `common_start`; left as they are.
    counter_examples : float
        As of `training_pairs`: 0 plants the heuristic.
    seed : int
        Of the head and the order of the pairs: what models of one group differ in.
    data_seed : int
        Of the pairs.
    on_step : callable, optional
        Called after every step.

    Examples
    --------
    >>> from shrink_utils.study.pretraining import Trunk
    >>> training = EntailmentTraining(rows=64, steps=1, learning_rate=1e-3)
    >>> model, tokenizer = common_start(Trunk(width=8, depth=1, heads=1), training)
    >>> entailment_model(model, tokenizer, training, counter_examples=0.5, seed=1).training
    False
    """
    rows = training_pairs(training.rows, counter_examples=counter_examples, seed=data_seed)
    return _train(_with_new_head(start, seed=seed), tokenizer, rows, training, seed, on_step)


def pair_batches(rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Tensor]]:
    """Pairs as padded batches with labels, in order: what `read_layers` takes.

    Examples
    --------
    >>> from shrink_utils.study.pretraining import Trunk
    >>> training = EntailmentTraining(rows=64, steps=1, learning_rate=1e-3)
    >>> model, tokenizer = common_start(Trunk(width=8, depth=1, heads=1), training)
    >>> len(pair_batches(training_pairs(300, counter_examples=0.5, seed=0), tokenizer))
    2
    """
    pad = DataCollatorWithPadding(tokenizer)
    return fixed_batches(_tokenized(rows, tokenizer), pad, batch_size=256)


def _train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Dataset,
    training: EntailmentTraining,
    seed: int,
    on_step: Callable[[], None] | None,
) -> PreTrainedModel:
    with _isolated_training(training.threads) as folder:
        arguments = _quiet_arguments(
            folder,
            max_steps=training.steps,
            per_device_train_batch_size=64,
            learning_rate=training.learning_rate,
            warmup_steps=0.1,  # a value below 1 is a fraction of the steps
            seed=seed,
            data_seed=seed,
        )
        _QuietTrainer(
            model=model,
            args=arguments,
            train_dataset=_tokenized(rows, tokenizer),
            data_collator=DataCollatorWithPadding(tokenizer),
            callbacks=[EveryStep(on_step)] if on_step else [],
        ).train()
    return model.eval()


def scratch_config(profile: Profile, *, seed: int = 0, **changes: object) -> ScratchConfig:
    """The profile's pretraining.

    Parameters
    ----------
    profile : Profile
    seed : int
        Of the initial weights. The study's base seed shifts it, and the order of the data.
    **changes
        Fields of `ScratchConfig` that are to differ from the profile's.
    """
    shift = SEED_STEP * profile.base_seed
    values = asdict(profile.pretraining)
    del values["seeds"]
    values |= {"seed": shift + seed, "data_seed": shift, "threads": profile.threads}
    return ScratchConfig(**{"source": "all", **values, **changes})


def dynamics_config(profile: Profile, *, seed: int = 0, **changes: object) -> ScratchConfig:
    """The short training that is followed: the profile's trunk, and the sizes of its ``dynamics``.

    `seed` is one of ``profile.pretraining.seeds``; `changes` are fields of `ScratchConfig`.
    """
    names = ("steps", "batch_size", "learning_rate", "max_length", "vocabulary")
    values = {name: getattr(profile.dynamics, name) for name in names} | changes
    return scratch_config(profile, seed=seed, **values)
