"""transformers' Trainer with a reward as a part of the loss, and a record of every step."""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from shrink_utils.geometry import anisotropy, between_share, within_classes
from shrink_utils.names import IGNORED, POOLINGS, known_name, not_installed
from shrink_utils.topology import BarcodeRegularizer, persistent_entropy
from shrink_utils.topology.arrays import _on_float64_device
from shrink_utils.topology.regularizer import RegularizerOutput
from shrink_utils.training.gather import _gathered, shared_draws

try:
    from accelerate import DistributedType
    from safetensors.torch import load_file, save_file
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_utils import EvalLoopOutput
    from transformers.utils import ModelOutput

    from shrink_utils.models import pool
except ModuleNotFoundError as error:
    raise not_installed("BarcodeTrainer", "study", error) from error

# Causal models whose attention does not say so, and XLNet, whose [CLS] stands last.
READ_LAST = ("bloom", "doge", "mpt", "openai-gpt", "xlnet")
STATES = ("hidden_states", "encoder_hidden_states", "decoder_hidden_states")
LOGGED = {"entropy": "entropy", "n_bars": "bars", "values": "penalty"}  # of a reward's output
REWARD_FILE = "reward.safetensors"  # in a checkpoint
N_SCORES = 3  # anisotropy scores kept of a step, as in STL's Table 3


class _Evaluation(NamedTuple):
    """What one pass over the n validation rows gives, without dropout."""

    embeddings: Tensor  # (n, d), pooled as the regularizer sees them
    outputs: Tensor  # (n, labels), the logits


class StepRecorder(TrainerCallback):
    """Collect one row per training step, and call `on_row` with each: progress bars, live plots.

    `BarcodeTrainer` calls `observe` with what only the forward pass knows; the Trainer's own log
    adds learning rate and gradient norm. ``evaluated`` holds the `_Evaluation` of every evaluation
    so far.

    ``task_gradient`` and ``reward_gradient`` are the norms of the two losses' gradients at the
    last layer's states, which are the embeddings' where these are [CLS] vectors; both are empty
    where several processes share a step, or a model's states have another name. ``n_selected``
    counts the bars in the reward, and ``missing_entropy`` is what these could still gain: ln of
    their number less their entropy, summed over classes (of ``prominent``'s bars for an arm that
    selects none). ``within_1`` and ``between`` are those of `_class_scores`; a regression has none.
    Reward and row together take .6 % of a step of MiniLM (7 of 1,150 ms for ``prominent``, 17 for
    ``isoscore``; medians, one core with AVX-512); half of it are the two gradients.

    Examples
    --------
    >>> recorder = StepRecorder()
    >>> x, labels = torch.randn(8, 4), torch.arange(8) % 2
    >>> added = BarcodeRegularizer("all")(x, labels)
    >>> recorder.observe(torch.tensor(0.7), x, labels, added, regularizer=added.loss)
    >>> recorder.rows  # until the Trainer's log joins them
    []
    """

    def __init__(self, on_row: Callable[[dict], None] | None = None) -> None:
        self.rows: list[dict] = []
        self.evaluated: list[_Evaluation] = []
        self._on_row = on_row
        self._observed: dict = {}  # of the step that is being made
        self._watch = BarcodeRegularizer()

    @torch.no_grad()
    def observe(
        self,
        task_loss: Tensor,
        embeddings: Tensor,
        labels: Tensor | None,
        added: Any,
        *,
        regularizer: Tensor,
        gradients: dict[str, float] | None = None,
    ) -> None:
        """Note the state of a batch.

        Parameters
        ----------
        task_loss, regularizer : Tensor, shape ()
            The two summands of the loss.
        embeddings : Tensor, shape (b, d)
            The vectors that the regularizer sees.
        labels : Tensor of shape (b,) or None
            The classes that the barcodes are taken within.
        added : RegularizerOutput or _PenaltyOutput
            What the reward gave. Where it has no bars, or those of other groups of rows, the
            classes' are computed here.
        gradients : dict of float, optional
            Norms of gradients, by the name of their column.
        """
        x = embeddings.detach().cpu()  # a GPU is waited for once
        chosen = added if isinstance(added, RegularizerOutput) else self._watch(x, labels)
        every = chosen if chosen.bars is not None else self._watch(x, labels)
        entropies = [float(persistent_entropy(lengths)) for lengths in every.bars]
        counted = chosen.n_features > 0
        missing = (chosen.n_features[counted].log() - chosen.entropy[counted]).sum()
        self._observed = {
            "rows": len(x),
            "task_loss": task_loss.item(),
            "regularizer": regularizer.item(),
            "entropy": float(chosen.entropy.sum()),
            "entropy_all": float(every.entropy.new_tensor(entropies).sum()),
            **_scores(x),
            **({} if labels is None else _class_scores(x, labels)),
            "n_selected": float(chosen.n_features.sum()),
            "missing_entropy": float(missing),
            **(gradients or {}),
            **_per_class("n_features", chosen.classes, chosen.n_features),
            **_per_class("n_bars", every.classes, every.n_bars),  # whatever the reward is of
        }

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Join the Trainer's numbers to the batch's; only training steps carry a gradient norm."""
        if logs is None or "grad_norm" not in logs:
            return
        noted = {name: float(logs[name]) for name in ("epoch", "learning_rate", "grad_norm")}
        row = {"step": state.global_step, **noted, **self._observed}
        self.rows.append(row)
        if self._on_row is not None:
            self._on_row(row)


def _scores(x: Tensor) -> dict[str, float]:
    """First anisotropy scores, ``raw_k`` and ``centred_k``; empty without spread (equal rows)."""
    found = {}
    for space in ("raw", "centred"):
        with suppress(ValueError):
            values = anisotropy(x, k=min(N_SCORES, *x.shape), center=space == "centred")
            found |= {f"{space}_{k}": float(value) for k, value in enumerate(values, 1)}
    return found


def _class_scores(x: Tensor, labels: Tensor) -> dict[str, float]:
    """What a cloud (n, d) is like inside its classes and between them; empty without spread.

    ``within_1`` is the first score of the pooled within-class covariance, ``between`` the share of
    the variance that lies between the class means. Rows labelled −100 are left out.
    """
    labels = labels.to(x.device)
    labelled = labels != IGNORED
    x, labels = x[labelled], labels[labelled]
    try:
        within = anisotropy(within_classes(x, labels), k=1)
        return {"within_1": float(within[0]), "between": between_share(x, labels)}
    except ValueError:
        return {}


def _norm_of_gradient(loss: Tensor, states: Tensor) -> float:
    """‖∂loss/∂states‖; 0 where the loss does not depend on them."""
    if not loss.requires_grad:
        return 0.0
    (found,) = torch.autograd.grad(loss, states, retain_graph=True, allow_unused=True)
    if found is None:
        return 0.0
    return math.sqrt(float(_on_float64_device(found).double().square().sum()))


def _per_class(name: str, classes: Tensor, counts: Tensor) -> dict[str, float]:
    return {f"{name}_{c}": float(n) for c, n in zip(classes.tolist(), counts.tolist(), strict=True)}


class BarcodeTrainer(Trainer):
    """A Trainer that adds a reward of the embeddings while it trains, and logs the loss's terms.

    Every setting of the Trainer keeps its meaning: with a reward of weight 0 all numbers are those
    of `transformers.Trainer`. An evaluation sees the task alone.

    Parameters
    ----------
    regularizer : BarcodeRegularizer, ClassPenalty or another callable
        ``regularizer(embeddings, classes).loss`` is added to the task loss; `embeddings` (b, d) and
        `classes` (b,) are those of the whole batch, of all processes. What it remembers is saved in
        checkpoints and loaded from them; a training that does not go on from one begins without
        it: buffers are as they were when the Trainer was made.
    pooling : str, optional
        Which vectors of the hidden states are regularized, as in `models.pool`. None: the first
        real token's (``"cls"``), and the last one's (``"last"``) in a causal model, whose first
        token has read nothing, and in XLNet, whose [CLS] stands last.
    recorder : StepRecorder, optional
        Keeps a row per step, in the place of the terms in the Trainer's log, and the embeddings
        and outputs of every evaluation.
    *args, **kwargs
        As of `transformers.Trainer`. Whole-number labels are classes, each with a barcode of its
        own, and rows labelled −100 are left out. A regression takes the batch as one cloud, also
        with whole numbers as targets: a model of one output, or ``problem_type="regression"``.

    Raises
    ------
    ValueError
        `regularizer` cannot be called; `pooling` is unknown, or ``"cls"`` for a causal model; the
        model is an encoder–decoder; tensor, context or pipeline parallelism is on, where processes
        share rows. While training: the model gives no hidden states, a batch has
        no ``labels``, or different inputs have equal embeddings at the first step. `embeddings_of`
        and `classes_of` can be overridden for other models and other inputs.

    Notes
    -----
    Through `Trainer.log`, as means over the steps since the last entry: ``task_loss``; ``reward``,
    which is added to it (for barcodes negative, in nats times the weight); ``entropy``, the sum
    over the classes of that of the selected bars; ``bars``, how many there are, or ``penalty``, the
    sum of the classes' values, where the reward has those. And ``pc1_share``, the variance
    explained by the first principal component of the last batch.

    Each part of an accumulated batch has a reward of its own, and a step has their mean beside the
    mean task loss. Where the stock Trainer adds the parts' task losses up, as for BERT in
    transformers 5.23, it is their sum; ``trainer.model_accepts_loss_kwargs = False`` has the mean
    of both.

    Examples
    --------
    >>> from transformers import BertConfig, BertForSequenceClassification, TrainingArguments
    >>> sizes = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32}
    >>> config = BertConfig(vocab_size=50, num_attention_heads=2, **sizes)
    >>> rows = [{"input_ids": torch.arange(i, i + 4), "labels": i % 2} for i in range(32)]
    >>> quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    >>> trainer = BarcodeTrainer(
    ...     BertForSequenceClassification(config),
    ...     TrainingArguments(max_steps=1, logging_steps=1, dataloader_pin_memory=False, **quiet),
    ...     train_dataset=rows,
    ...     regularizer=BarcodeRegularizer(weight=0.1),
    ... )
    >>> _ = trainer.train()  # doctest: +ELLIPSIS
    {'loss': ..., 'task_loss': ...}
    >>> trainer.state.log_history[0]["bars"]  # of 8 rows in two classes
    6.0
    """

    def __init__(
        self,
        *args: Any,
        regularizer: Callable,
        pooling: str | None = None,
        recorder: StepRecorder | None = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(regularizer, type) or not callable(regularizer):
            raise ValueError(
                f"regularizer: {regularizer!r}, expected BarcodeRegularizer(…) or another reward; "
                "transformers.Trainer trains on the task alone"
            )
        super().__init__(*args, **kwargs)
        self._refuse_shared_rows()
        self.regularizer, self.recorder = regularizer, recorder
        if isinstance(regularizer, nn.Module):
            learned = dict(regularizer.named_parameters())
            state = regularizer.state_dict().items()
            self._memory = copy.deepcopy({k: v for k, v in state if k not in learned})
        if recorder is not None:
            self.add_callback(recorder)
        if type(self).embeddings_of is BarcodeTrainer.embeddings_of:
            pooling = _pooling_for(self.accelerator.unwrap_model(self.model), pooling)
        self.pooling = pooling
        self._is_mean: bool | None = None
        self._forget()

    def _refuse_shared_rows(self) -> None:
        """A ``ValueError`` where processes have the same rows, or parts of them."""
        sizes = {kind: getattr(self, f"get_{kind}_size", int)() for kind in ("tp", "cp", "sp")}
        megatron = self.accelerator.distributed_type == DistributedType.MEGATRON_LM
        if megatron or max(sizes.values()) > 1:
            found = "Megatron-LM" if megatron else f"parallelism_config: {sizes}"
            raise ValueError(
                f"{found}: processes that share rows (tensor, context or pipeline parallelism) "
                "would count them twice; train with data parallelism (DDP, FSDP) alone, or in a "
                "loop of your own with gathered_batch(…, group=the data-parallel group)"
            )

    def embeddings_of(self, outputs: Any, inputs: Mapping[str, Any]) -> Tensor:
        """The vectors that are regularized, (b, d): those of `pooling` in the hidden states.

        `outputs` are the model's, with its hidden states if it can give them.
        """
        states = outputs.get("hidden_states") if isinstance(outputs, Mapping) else None
        if not states:
            given = ", ".join(outputs) if isinstance(outputs, Mapping) else type(outputs).__name__
            raise ValueError(
                f"model: {self._name()} gives no hidden_states (it gives: {given}); leave "
                "return_dict as it is, or override embeddings_of"
            )
        rows = pool(states, self._mask(inputs, states[-1]), pooling=self.pooling)
        if self.state.global_step == 0 and _equal(rows) and _differ(inputs, len(rows)):
            raise ValueError(
                f"pooling: {self.pooling!r} gives {len(rows)} different inputs of {self._name()} "
                "one and the same vector, which no reward can move; choose another of "
                f"{', '.join(POOLINGS)}"
            )
        return rows

    def classes_of(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """The class of each row, (b,); None takes the batch as one cloud, as for regression.

        A regression is what transformers takes for one: one output, or a ``problem_type``.
        """
        if (labels := inputs.get("labels")) is None:
            raise ValueError(
                f"inputs: no labels (there are {', '.join(inputs)}); override classes_of, which "
                "may return None: the batch is then one cloud"
            )
        config = getattr(self.accelerator.unwrap_model(self.model), "config", None)
        regression = getattr(config, "problem_type", None) == "regression"
        regression = regression or getattr(config, "num_labels", None) == 1
        return None if regression or torch.is_floating_point(labels) else labels

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As the Trainer's; an earlier training's terms and the reward's memory are forgotten."""
        self._forget()
        if isinstance(self.regularizer, nn.Module):  # a checkpoint's memory is loaded later
            self.regularizer.load_state_dict(self._memory, strict=False)
            for part in self.regularizer.modules():
                if hasattr(part, "reset_parameters") and not [*part.parameters()]:
                    part.reset_parameters()  # it may have seen another Trainer's batches
        return super().train(*args, **kwargs)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """The Trainer's loss; while training, plus the reward of the whole batch.

        With a recorder, the outputs of an evaluation hold the embeddings, too.
        """
        if not model.training and self.recorder is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        classes = self.classes_of(inputs) if model.training else None  # (b,)
        asked = {**inputs}  # the Trainer may take the labels out
        keep = self._gives_states(inputs)
        if not keep and self._takes("output_hidden_states"):
            asked["output_hidden_states"] = True
        with _outputs(model, keep) as seen:
            loss, outputs = super().compute_loss(model, asked, True, num_items_in_batch)
        embeddings = self.embeddings_of(seen[-1], inputs)  # (b, d)
        if model.training:
            embeddings, classes = _gathered(embeddings, classes)  # of all processes
            with shared_draws(embeddings.device):
                added = self.regularizer(embeddings, classes)
            if not hasattr(added, "loss"):
                kind = type(added).__name__
                raise ValueError(f"regularizer: it gave {kind}, expected what has a .loss")
            later, divisor = self._divisors(model, inputs, num_items_in_batch)
            if self.state.global_step == 0 and not added.loss.requires_grad and added.loss != 0:
                warnings.warn(
                    f"regularizer: its loss has no gradient in {self._name()} (is the encoder "
                    "frozen?), so it moves nothing",
                    stacklevel=2,
                )
            reward = added.loss / divisor
            if self.recorder is None:
                self._note((loss / later, reward / later), added, embeddings)
            else:
                gradients = self._gradients(seen[-1], loss, reward)
                mean = self.accelerator.gather(loss.detach()[None]).mean()  # of all processes
                noted = {"regularizer": reward, "gradients": gradients}
                self.recorder.observe(mean, embeddings, classes, added, **noted)
            loss = loss + reward.to(loss)
        else:
            outputs = {**outputs, "embeddings": embeddings}
        return (loss, outputs) if return_outputs else loss

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> EvalLoopOutput:
        """As the Trainer's; a recorder keeps the embeddings and outputs of labelled rows."""
        found = super().evaluation_loop(*args, **kwargs)
        kept = found.predictions is not None and found.label_ids is not None
        if self.recorder is not None and kept:  # without metrics, the Trainer keeps the loss alone
            outputs, *_, embeddings = found.predictions
            seen = _Evaluation(torch.from_numpy(embeddings), torch.from_numpy(outputs))
            self.recorder.evaluated.append(seen)
        return found

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """As the Trainer's; an entry of training steps holds the terms as well."""
        if {"loss", "learning_rate"} <= logs.keys() and self._sums:
            sums = self.accelerator.gather(torch.stack([*self._sums.values()])[None]).mean(dim=0)
            means = (sums / round(max(1.0, self._steps))).tolist()
            logs |= dict(zip(self._sums, means, strict=True))
            with suppress(ValueError):  # a batch without spread has no score
                logs["pc1_share"] = float(anisotropy(self._batch, k=1, center=True)[0])
            self._forget()
        super().log(logs, *args, **kwargs)

    @torch.no_grad()
    def _note(self, losses: tuple[Tensor, Tensor], added: Any, rows: Tensor) -> None:
        """Add a part's terms on their device: nothing waits for a GPU between two entries."""
        parts = self._n_parts()
        task = losses[0].mean()
        if self.args.logging_nan_inf_filter:  # of a part without labels; so the Trainer's own
            task = task.nan_to_num(0.0, 0.0, 0.0)
        terms = {"task_loss": task, "reward": losses[1]}
        for field, name in LOGGED.items():
            if isinstance(values := getattr(added, field, None), Tensor):
                terms[name] = values.sum() / parts
        for name, value in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach().float().to(rows.device)
        self._steps += 1 / parts
        self._batch = rows.detach()

    def _gradients(self, outputs: Any, loss: Tensor, reward: Tensor) -> dict[str, float]:
        """Norms at the last layer's states; none where a process has a part of the rows."""
        if self.args.world_size > 1 or "hidden_states" not in outputs:
            return {}
        losses = {"task_gradient": loss, "reward_gradient": reward}
        states = outputs["hidden_states"][-1]  # (b, t, d)
        return {name: _norm_of_gradient(value, states) for name, value in losses.items()}

    def _n_parts(self) -> int:
        """Into how many parts the batch of a step is cut."""
        return getattr(self, "current_gradient_accumulation_steps", 1)

    def _divisors(
        self, model: nn.Module, inputs: Mapping[str, Any], num_items_in_batch: Any
    ) -> tuple[int, int]:
        """What the Trainer will divide a part's loss by, and what its reward is divided by here.

        A task loss that is a part's share of the step stands beside such a share of the reward.
        """
        parts = self._n_parts()
        later = 1 if self._is_share(num_items_in_batch) else parts
        mean = later > 1 or parts == 1 or self._means(model, inputs, num_items_in_batch)
        return later, 1 if mean else parts

    def _forget(self) -> None:
        self._sums: dict[str, Tensor] = {}  # of each term, over the steps since the last entry
        self._steps = 0.0
        self._batch = torch.empty(0, 0)

    def _is_share(self, num_items_in_batch: Any) -> bool:
        """Whether the task loss is scaled for accumulation, as `Trainer.training_step` decides."""
        if self.loss_is_scaled_for_ga is not None:
            return self.loss_is_scaled_for_ga
        by_model = self.model_accepts_loss_kwargs and num_items_in_batch is not None
        return by_model or self.compute_loss_func is not None

    @torch.no_grad()
    def _means(self, model: nn.Module, inputs: Mapping[str, Any], num_items_in_batch: Any) -> bool:
        """Whether a model's loss is the mean of its part, although it is told the rows of the step.

        So is BERT's (transformers 5.23): the stock Trainer then adds the parts up. Two passes at
        the first step tell it, without dropout and without a draw.
        """
        if self.compute_loss_func is not None or self.label_smoother is not None:
            return False
        if self._is_mean is None:
            device = self.args.device
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                model.eval()
                one, two = (
                    super(BarcodeTrainer, self).compute_loss(
                        model, {**inputs}, num_items_in_batch=n * num_items_in_batch
                    )
                    for n in (1, 2)
                )
                model.train()
            self._is_mean = torch.equal(one, two)
        return self._is_mean

    def _mask(self, inputs: Mapping[str, Any], states: Tensor) -> Tensor:
        """1 at tokens and 0 at padding, (b, t); without a mask, a head that reads the last token
        knows padding by its id."""
        if (mask := inputs.get("attention_mask")) is not None:
            return mask
        ids, config = inputs.get("input_ids"), getattr(self.model, "config", None)
        padding = getattr(config, "pad_token_id", None)
        if self.pooling == "last" and ids is not None and padding is not None:
            return (ids != padding).long()
        return torch.ones(states.shape[:2], dtype=torch.long, device=states.device)

    def _gives_states(self, inputs: Mapping[str, Any]) -> bool:
        """Whether the model is told to give its states anyway."""
        config = getattr(self.model, "config", None)
        return "output_hidden_states" in inputs or getattr(config, "output_hidden_states", False)

    def _takes(self, option: str) -> bool:
        parameters = signature(self.accelerator.unwrap_model(self.model).forward).parameters
        any_name = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
        return any_name or option in parameters

    def _name(self) -> str:
        return type(self.accelerator.unwrap_model(self.model)).__name__

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state = self.regularizer.state_dict() if isinstance(self.regularizer, nn.Module) else {}
        if state and self.args.should_save:
            tensors = {name: value.detach().clone() for name, value in state.items()}
            save_file(tensors, Path(output_dir) / REWARD_FILE)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and (path := Path(checkpoint) / REWARD_FILE).is_file():
            self.regularizer.load_state_dict(load_file(path))


def _pooling_for(model: nn.Module, pooling: str | None) -> str:
    """The pooling that is asked for, or that is right for a model; a ``ValueError`` for a bad one.

    transformers' attention says whether it is causal (checked with 5.23 for all models that have a
    head for sequences and can be made tiny).
    """
    config, name = getattr(model, "config", None), type(model).__name__
    if pooling is not None:
        known_name("pooling", "pooling", pooling, POOLINGS)
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(
            f"model: {name} is an encoder–decoder, which has two sequences of hidden states; "
            "override embeddings_of to say which vectors are regularized"
        )
    causal = any(getattr(module, "is_causal", False) is True for module in model.modules())
    causal = causal or getattr(config, "is_decoder", False) is True
    kind = getattr(config, "model_type", None)
    if pooling == "cls" and (causal or kind in READ_LAST[:-1]):
        raise ValueError(
            f"pooling: 'cls' is the first token, which has read nothing but itself in {name}, a "
            "causal model; take 'last' or 'mean'"
        )
    return pooling or ("last" if causal or kind in READ_LAST else "cls")


@contextmanager
def _outputs(model: nn.Module, keep: bool) -> Iterator[list]:
    """A list that receives what the model gives; the Trainer receives it without the states.

    A loss function of the user's thus sees the outputs that it sees in the Trainer, and nothing
    outlives the step. With `keep` the states stay.
    """
    seen = []

    def on_forward(module: nn.Module, args: Any, outputs: Any) -> Any:
        seen.append(outputs)
        if keep or not isinstance(outputs, ModelOutput):
            return None
        # None is no way to take a field out: its key and value would stay in `items()`.
        return type(outputs)(**{k: v for k, v in outputs.items() if k not in STATES})

    handle = model.register_forward_hook(on_forward)
    try:
        yield seen
    finally:
        handle.remove()


def _equal(rows: Tensor) -> bool:
    return len(rows) > 1 and bool((rows == rows[:1]).all())


def _differ(inputs: Mapping[str, Any], b: int) -> bool:
    """Whether any input but the labels has different rows."""
    tables = [v for v in inputs.values() if isinstance(v, Tensor) and v.dim() > 1 and len(v) == b]
    return any(bool((table != table[:1]).any()) for table in tables)
