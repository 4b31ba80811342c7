"""transformers' Trainer with a regularizer as a part of the loss, and a record of every step."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import TrainerCallback
from transformers.trainer_utils import EvalLoopOutput

from shrink_utils.geometry import anisotropy, between_share, within_classes
from shrink_utils.models import pool
from shrink_utils.models.products import OneDNN
from shrink_utils.topology import BarcodeRegularizer, RegularizerOutput
from shrink_utils.training.arguments import QuietTrainer
from shrink_utils.training.gather import gathered_batch
from shrink_utils.training.penalties import ClassPenalty

N_SCORES = 3  # anisotropy scores kept, as in STL's Table 3


class Evaluation(NamedTuple):
    """What one pass over the n validation rows gives, without dropout."""

    embeddings: Tensor  # (n, d), pooled as the regularizer sees them
    outputs: Tensor  # (n, labels), the logits


class StepRecorder(TrainerCallback):
    """Collect one row per training step, and call `on_row` with each: progress bars, live plots.

    The trainer calls `observe` with what only the forward pass knows; the Trainer's own log adds
    learning rate and gradient norm. ``evaluated`` holds the `Evaluation` of every evaluation so
    far.

    ``task_gradient`` and ``reward_gradient`` are the norms of the two losses' gradients at the
    last layer's states, which are the embeddings' where these are [CLS] vectors; both are empty
    where several processes share a step. ``n_selected`` counts the bars in the reward, and
    ``missing_entropy`` is what these could still gain: ln of their number less their entropy,
    summed over classes (of ``prominent``'s bars for an arm that selects none). ``within_1`` and
    ``between`` are those of `class_scores`; a regression has none. All six together take 1 % of a
    step of MiniLM (17 of 1,731 ms, one core with AVX2).
    """

    def __init__(self, on_row: Callable[[dict], None] | None = None) -> None:
        self.rows: list[dict] = []
        self.evaluated: list[Evaluation] = []
        self._on_row = on_row
        self._observed: dict = {}  # of the step that is being made
        self._every_bar = BarcodeRegularizer("all")

    @torch.no_grad()
    def observe(
        self,
        task_loss: Tensor,
        embeddings: Tensor,
        labels: Tensor | None,
        bars: RegularizerOutput,
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
        bars : RegularizerOutput
            Of the arm's own selection (of ``prominent`` for an arm that selects no bars).
        gradients : dict of float, optional
            Norms of gradients, by the name of their column.
        """
        x = embeddings.detach()
        every, counted = self._every_bar(x, labels), bars.n_features > 0
        missing = (bars.n_features[counted].log() - bars.entropy[counted]).sum()
        self._observed = {
            "rows": len(x),
            "task_loss": task_loss.item(),
            "regularizer": regularizer.item(),
            "entropy": float(bars.entropy.sum()),
            "entropy_all": float(every.entropy.sum()),
            **scores(x),
            **({} if labels is None else class_scores(x, labels)),
            "n_selected": float(bars.n_features.sum()),
            "missing_entropy": float(missing),
            **(gradients or {}),
            **_per_class("n_features", bars.classes, bars.n_features),
            **_per_class("n_bars", every.classes, every.n_bars),  # whatever the arm selects from
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


def scores(x: Tensor) -> dict[str, float]:
    """First anisotropy scores, ``raw_k`` and ``centred_k``; empty without spread (equal rows)."""
    found = {}
    for space in ("raw", "centred"):
        with suppress(ValueError):
            values = anisotropy(x, k=min(N_SCORES, *x.shape), center=space == "centred")
            found |= {f"{space}_{k}": float(value) for k, value in enumerate(values, 1)}
    return found


def class_scores(x: Tensor, labels: Tensor) -> dict[str, float]:
    """What a cloud (n, d) is like inside its classes and between them; empty without spread.

    ``within_1`` is the first score of the pooled within-class covariance, ``between`` the share of
    the variance that lies between the class means.
    """
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
    return 0.0 if found is None else math.sqrt(float(found.double().square().sum()))


def _per_class(name: str, classes: Tensor, counts: Tensor) -> dict[str, float]:
    return {f"{name}_{c}": float(n) for c, n in zip(classes.tolist(), counts.tolist(), strict=True)}


# The newest evaluations of untrained models, by what they are of: arms of a seed begin alike.
_starts: dict[tuple, EvalLoopOutput] = {}
KEPT_STARTS = 4  # tasks whose runs take turns


class RegularizedTrainer(QuietTrainer):
    """Trainer whose loss is the task's plus the regularizer's (STL, eq. of the total loss).

    An evaluation passes over the rows anyway, so the recorder keeps its embeddings and outputs.

    Parameters
    ----------
    regularizer : BarcodeRegularizer, ClassPenalty or None
        None trains on the task alone.
    recorder : StepRecorder
        Told of every training batch.
    pooling : str
        Which vectors of the hidden states are regularized.
    per_class : bool
        One term per class; False (regression) takes the batch as one cloud.
    precision : {"float32", "bfloat16"}
        Of the encoder's passes while it trains. Evaluations are always in float32.
    start : tuple, optional
        Names the untrained model and its validation rows. In one process, trainers of equal names
        share the evaluation before the first step.
    **kwargs
        As of `transformers.Trainer`.
    """

    def __init__(
        self,
        *,
        regularizer: BarcodeRegularizer | ClassPenalty | None,
        recorder: StepRecorder,
        pooling: str,
        per_class: bool,
        precision: str = "float32",
        start: tuple | None = None,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs, callbacks=[recorder])
        self.model_accepts_loss_kwargs = False  # the Trainer need not count the rows of a step
        self.regularizer, self.recorder = regularizer, recorder
        self.pooling, self.per_class, self.precision = pooling, per_class, precision
        self._start = start
        self._watch = BarcodeRegularizer("prominent", weight=0.0)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Task loss, plus the regularizer's while training; evaluation sees the task alone.

        An evaluation's outputs are the logits and the embeddings.
        """
        rounded = model.training and self.precision == "bfloat16"
        with torch.autocast(self.args.device.type, torch.bfloat16, enabled=rounded):
            outputs = model(**inputs, output_hidden_states=True)
        loss, states = outputs.loss, outputs.hidden_states  # (), and (b, t, d) of each layer
        embeddings = pool(states, inputs["attention_mask"], pooling=self.pooling)  # (b, d)
        seen = {"loss": loss, "logits": outputs.logits, "embeddings": embeddings}
        if model.training:
            labels = inputs["labels"] if self.per_class else None
            task_loss, embeddings, labels = gathered_batch(loss, embeddings, labels)
            arm = self.regularizer
            bars = added = None if arm is None else arm(embeddings, labels)
            if not isinstance(added, RegularizerOutput):  # bars that nobody looks at are noted too
                bars = self._watch(embeddings.detach(), labels)
            regularizer = (bars if added is None else added).loss  # without a regularizer: 0
            gradients = None
            if self.args.world_size == 1:  # else a process has a part of the rows
                losses = {"task_gradient": task_loss, "reward_gradient": regularizer}
                gradients = {k: _norm_of_gradient(v, states[-1]) for k, v in losses.items()}
            noted = {"regularizer": regularizer, "gradients": gradients}
            self.recorder.observe(task_loss, embeddings, labels, bars, **noted)
            loss = task_loss + regularizer
            seen = {"loss": loss, "logits": outputs.logits}
        return (loss, seen) if return_outputs else loss

    def evaluation_loop(self, dataloader, *args, **kwargs):
        """As the Trainer's; the recorder keeps embeddings and outputs."""
        start = self._start if self.state.global_step == 0 else None
        if (output := _starts.get(start)) is None:
            with OneDNN():
                output = super().evaluation_loop(dataloader, *args, **kwargs)
            if start is not None:
                _starts[start] = output
                while len(_starts) > KEPT_STARTS:
                    del _starts[next(iter(_starts))]
        else:
            next(iter(dataloader))  # draws a number, as the evaluation did: dropout stays the same
        output = output._replace(metrics=dict(output.metrics))  # the Trainer adds its timings
        if output.predictions is not None:  # without metrics, the Trainer keeps the loss alone
            outputs, embeddings = map(torch.from_numpy, output.predictions)
            self.recorder.evaluated.append(Evaluation(embeddings, outputs))
        return output
