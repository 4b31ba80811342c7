"""The stock Trainer's own numbers, to the bit, from the class that adds a reward of weight 0.

`TRAINER` is the class under test: point it at another one that has to keep the same promises.
"""

import copy
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from accelerate.parallelism_config import ParallelismConfig
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
)
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import ModelOutput

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import BarcodeTrainer
from shrink_utils.training.penalties import (
    PENALTIES,
    AverageCosine,
    IsoScoreStar,
)
from tests.training.conftest import OPTIONS, bert, make_rows

TRAINER = BarcodeTrainer
pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument")

OURS = {"task_loss", "reward", "entropy", "bars", "penalty", "pc1_share"}
TIMES = ("runtime", "per_second", "time")


def _summed(outputs, labels, num_items_in_batch=None):
    """A loss function as users write it, which reads the logits by their place."""
    (logits,) = outputs.to_tuple()
    total = 3 * cross_entropy(logits, labels, reduction="sum")
    return total if num_items_in_batch is None else total / num_items_in_batch


def _entries(trainer):
    """The whole log without times and without what only ours has."""
    return [
        {k: v for k, v in entry.items() if k not in OURS and not k.endswith(TIMES)}
        for entry in trainer.state.log_history
    ]


def _assert_equal(stock, ours, entries=None):
    """The last entry has the mean loss of the steps that were made here."""
    assert _entries(ours)[:entries] == _entries(stock)[:entries]
    assert len(_entries(stock)) > 1
    weights, others = stock.model.state_dict(), ours.model.state_dict()
    assert weights.keys() == others.keys()
    for name, value in weights.items():
        assert torch.equal(value, others[name]), name


def _both_trained(make_trainer, models=(None, None), kind=TRAINER, **options):
    """The stock trainer and ours; the first thing that a trainer does is to seed torch."""
    made = []
    for each, model in zip((Trainer, kind), models, strict=True):
        made.append(make_trainer(each, model=model, **options))
        made[-1].train()
    return made


def _metrics(prediction):
    right = prediction.predictions.argmax(axis=1) == prediction.label_ids
    return {"right": float(right.mean()), "inputs": float(prediction.inputs.sum())}


PARTED = {"gradient_accumulation_steps": 2}
SETTINGS = {
    "accumulation of uneven parts": PARTED | {"logging_steps": 1},
    "label smoothing": PARTED | {"label_smoothing_factor": 0.5},
    "a loss function": PARTED | {"compute_loss_func": _summed},
    "the best model": {
        "load_best_model_at_end": True,
        "metric_for_best_model": "right",
        "compute_metrics": _metrics,
        "include_for_metrics": ["inputs"],
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "eval_steps": 1,
        "save_steps": 1,
        "learning_rate": 0.3,
    },
    "bfloat16": {"bf16": True},
    "schedule, clipping, order": {
        "warmup_steps": 1,
        "lr_scheduler_type": "cosine",
        "max_grad_norm": 0.1,
        "weight_decay": 0.1,
        "train_sampling_strategy": "sequential",
    },
    "NEFTune and checkpointing": {"neftune_noise_alpha": 5, "activation_checkpointing": True},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_with_weight_0_every_number_is_the_stock_trainers(make_trainer, setting):
    stock, ours = _both_trained(make_trainer, **SETTINGS[setting])
    _assert_equal(stock, ours)
    expected, found = stock.predict(make_rows(7, seed=1)), ours.predict(make_rows(7, seed=1))
    assert (expected.predictions == found.predictions).all()
    assert ours.state.best_global_step == stock.state.best_global_step


def test_the_settings_are_not_those_that_change_nothing(make_trainer):
    """Else a trainer that drops them all would pass."""
    losses = {make_trainer(**SETTINGS[name]).train().training_loss for name in [*SETTINGS][:3]}
    assert len(losses) == 3


def test_a_model_that_is_told_to_give_its_states_gives_them_as_in_the_stock_trainer(make_trainer):
    told = [
        make_trainer(kind, model=bert(output_hidden_states=True)) for kind in (Trainer, TRAINER)
    ]
    stock, ours = (trainer.predict(make_rows(3)).predictions for trainer in told)
    assert len(stock) == len(ours) == 2 and len(ours[1]) == 3


@pytest.mark.parametrize("name", PENALTIES)
def test_every_reward_trains_logs_its_terms_and_goes_on_from_a_checkpoint(make_trainer, name):
    def make(folder):
        own = {"regularizer": PENALTIES[name](**OPTIONS.get(name, {}), weight=0.1)}
        options = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4, "logging_steps": 1}
        return make_trainer(TRAINER, own=own, folder=folder, rows=make_rows(32), **options)

    whole = make("whole")
    whole.train()
    entries = [entry for entry in whole.state.log_history if "reward" in entry]
    assert [entry["step"] for entry in entries] == [1, 2, 3, 4]
    for entry in entries:
        assert entry["loss"] == pytest.approx(entry["task_loss"] + entry["reward"], abs=1e-5)
        term, sign = ("penalty", 1) if "penalty" in entry else ("entropy", -1)
        assert entry["reward"] == pytest.approx(sign * 0.1 * entry[term], abs=1e-5)
    assert any(entry["reward"] for entry in entries)  # one prominent bar has entropy 0
    resumed = make("resumed")
    resumed.train(resume_from_checkpoint=whole.args.output_dir + "/checkpoint-2")
    _assert_equal(whole, resumed, entries=-1)
    assert resumed.state.log_history[-2]["reward"] == whole.state.log_history[-2]["reward"]


class Counting(BertForSequenceClassification):
    """A loss over the rows of the whole step, as transformers' newer heads have it."""

    def forward(self, input_ids, labels=None, num_items_in_batch=None, **kwargs):
        outputs = super().forward(input_ids, **kwargs)
        loss = cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch
        return SequenceClassifierOutput(**{**outputs, "loss": loss})


# A model, options, and whether the Trainer leaves the division by the parts to others.
PARTS = {
    "the function divides": (BertForSequenceClassification, {"compute_loss_func": _summed}, True),
    "the model divides": (Counting, {}, True),
    "nobody divides": (BertForSequenceClassification, {}, True),
    "the Trainer divides": (BertForSequenceClassification, {}, False),
}


class Gradients(TrainerCallback):
    """What the optimizer is about to see."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.seen = {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("case", PARTS)
def test_the_rewards_of_parts_stand_beside_their_task_losses(make_trainer, case):
    """Gradients and terms by hand, whoever divides the task loss by the parts of a step."""
    kind, options, told = PARTS[case]
    reward, gradients = BarcodeRegularizer("all", weight=0.7), Gradients()
    model = bert(kind, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    by_hand, rows = copy.deepcopy(model).train(), make_rows(16)
    own = {"regularizer": reward, "callbacks": [gradients]}
    parts = {"gradient_accumulation_steps": 2, "max_steps": 1, "max_grad_norm": 0.0}
    parts |= {"train_sampling_strategy": "sequential", "logging_steps": 1}
    trainer = make_trainer(TRAINER, model=model, rows=rows, own=own, **parts, **options)
    trainer.model_accepts_loss_kwargs = told
    trainer.train()
    terms = {"task_loss": 0.0, "reward": 0.0}
    for part in (rows[:8], rows[8:]):
        ids = torch.stack([row["input_ids"] for row in part])
        labels = torch.tensor([row["labels"] for row in part])
        outputs = BertForSequenceClassification.forward(by_hand, ids, output_hidden_states=True)
        counted = labels != -100
        cls = outputs.hidden_states[-1][counted, 0]
        task = cross_entropy(outputs.logits[counted], labels[counted])
        added = reward(cls, labels[counted]).loss
        if case in ("the function divides", "the model divides"):
            task = task * counted.sum() / 13  # labelled rows of the step
            task = 3 * task if options else task
        elif case == "the Trainer divides":
            task = task / 2
        added = added if case == "nobody divides" else added / 2
        (task + added).backward()
        terms["task_loss"] += task.item()
        terms["reward"] += added.item()
    for name, value in terms.items():
        assert trainer.state.log_history[0][name] == pytest.approx(value, rel=1e-5), name
    for name, parameter in by_hand.named_parameters():
        torch.testing.assert_close(gradients.seen[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_terms_of_an_earlier_training_are_not_logged_again(make_trainer):
    trainer = make_trainer(TRAINER, own={"regularizer": AverageCosine()}, max_steps=3)
    trainer.train()  # the third step is in no entry
    trainer.train()
    entry = trainer.state.log_history[0]
    assert entry["loss"] == pytest.approx(entry["task_loss"] + entry["reward"], abs=1e-5)


HEADS = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SMALL = {"hidden_size": 16, "vocab_size": 60, "pad_token_id": 0}
# Models by what their first token has read, with the place of the vector that has read all.
MODELS = {
    "bert": (HEADS, "cls"),
    "llama": (HEADS, "last"),
    "gpt2": ({"n_layer": 1, "n_head": 2}, "last"),
    "bloom": ({"n_layer": 1, "n_head": 2}, "last"),
    "xlnet": ({"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 32, "pad_token_id": 5}, "last"),
    "t5": ({"d_ff": 32, "d_kv": 8, "num_layers": 1, "num_heads": 2}, None),
}


def _model(kind):
    config = AutoConfig.for_model(kind, **SMALL | MODELS[kind][0], decoder_start_token_id=0)
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_config(config)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "t5"])
def test_the_default_vector_is_a_real_tokens_that_has_read_the_whole_text(make_trainer, name, side):
    model, pooling = _model(name), MODELS[name][1]
    trainer = make_trainer(TRAINER, model=model)
    assert trainer.pooling == pooling
    ids = torch.randint(5, 40, (3, 7))
    mask = torch.ones(3, 7, dtype=torch.long)
    padded = slice(0, 2) if side == "left" else slice(5, 7)
    ids[0, padded] = mask[0, padded] = 0
    real = mask[0].nonzero().flatten()
    other, padding = ids.clone(), ids.clone()
    other[0, real[0] if pooling == "last" else real[-1]] = 41
    padding[0, padded] = 0 if name in ("gpt2", "llama", "bloom") else 40

    def vectors(ids):
        inputs = {"input_ids": ids, "attention_mask": mask}
        with torch.no_grad():
            outputs = model.eval()(**inputs, output_hidden_states=True)
        return trainer.embeddings_of(outputs, inputs)

    found = vectors(ids)
    assert (vectors(other)[0] - found[0]).abs().max() > 1e-4  # reads from end to end
    torch.testing.assert_close(vectors(padding)[0], found[0])  # and is not padding


def test_without_a_mask_the_last_token_is_the_one_that_the_head_reads(make_trainer):
    trainer = make_trainer(TRAINER, model=_model("gpt2"))
    ids = torch.tensor([[7, 8, 9, 0, 0], [7, 8, 9, 10, 11]])
    states = torch.randn(2, 5, 16)
    outputs = {"hidden_states": (states,)}
    rows = trainer.embeddings_of(outputs, {"input_ids": ids})
    assert torch.equal(rows, torch.stack([states[0, 2], states[1, 4]]))


class Own(nn.Module):
    """A model of one's own: a mean of word vectors; it says nothing of hidden states."""

    def __init__(self, gives=("loss", "logits")):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.head, self.gives = nn.Embedding(60, 16), nn.Linear(16, 2), gives

    def forward(self, input_ids, labels=None):
        rows = self.words(input_ids).mean(dim=1)
        logits = self.head(rows)
        found = {"loss": None if labels is None else cross_entropy(logits, labels)}
        found |= {"logits": logits, "rows": rows}
        return {name: found[name] for name in self.gives}


class OfOwn(TRAINER):
    def embeddings_of(self, outputs, inputs):
        return outputs["rows"]


def test_a_model_of_ones_own_trains_with_its_own_vectors(make_trainer):
    models = [Own(("loss", "logits", "rows")) for _ in range(2)]
    made = _both_trained(make_trainer, models, OfOwn)
    _assert_equal(*made)
    assert made[1].state.log_history[0]["bars"] > 0


def _answers():
    rows = make_rows(start_positions=lambda i: 1, end_positions=lambda i: 2)
    rows = [{k: v for k, v in row.items() if k != "labels"} for row in rows]
    return {"model": bert(BertForQuestionAnswering), "rows": rows}


# What cannot be regularized, the argument that the refusal names, and what was found.
REFUSED = [
    (lambda: {"model": _model("t5")}, "T5ForSequenceClassification"),
    (lambda: {"model": bert(return_dict=False)}, "model: Bert.* hidden_states .*tuple"),
    (lambda: {"model": Own()}, "model: Own .* hidden_states .*loss, logits"),
    (_answers, "inputs: .*labels .* start_positions, end_positions.*classes_of"),
    (lambda: {"own": {"regularizer": None}}, "regularizer: None"),
    (lambda: {"own": {"regularizer": lambda rows, classes: rows.sum()}}, "regularizer: .*Tensor"),
    (lambda: {"own": {"regularizer": AverageCosine}}, "regularizer: <class"),
    (lambda: {"own": {"pooling": "clf"}}, "pooling: .*'clf'"),
    (lambda: {"model": _model("llama"), "own": {"pooling": "cls"}}, "pooling: 'cls' .*Llama"),
]


@pytest.mark.parametrize(("options", "named"), REFUSED)
def test_what_cannot_be_regularized_is_refused_in_one_line(make_trainer, options, named):
    with pytest.raises(ValueError, match=named) as error:
        make_trainer(TRAINER, **options()).train()
    assert "\n" not in str(error.value)


def test_equal_vectors_of_different_texts_are_refused_but_copies_of_a_text_are_not(make_trainer):
    trainer = make_trainer(TRAINER)
    states, ids = torch.ones(4, 6, 16), torch.arange(24).view(4, 6)
    outputs = {"hidden_states": (states,)}
    with pytest.raises(ValueError, match="pooling: 'cls' gives 4 different inputs of BertFor"):
        trainer.embeddings_of(outputs, {"input_ids": ids, "labels": torch.arange(4)})
    assert len(trainer.embeddings_of(outputs, {"input_ids": ids[:1].expand(4, 6)})) == 4
    trainer.state.global_step = 1  # a model that collapses later is not stopped
    assert len(trainer.embeddings_of(outputs, {"input_ids": ids})) == 4


def test_nothing_of_a_step_outlives_it_and_a_loss_function_sees_no_states(make_trainer):
    seen = []

    def keep(outputs, labels, num_items_in_batch=None):
        seen.append((type(outputs), list(outputs)))
        return _summed(outputs, labels, num_items_in_batch)

    trainer = make_trainer(TRAINER, compute_loss_func=keep, max_steps=1)
    trainer.train()
    assert seen == [(seen[0][0], ["logits"])] and issubclass(seen[0][0], ModelOutput)
    assert not trainer.model._forward_hooks


class OfOwnMemory(nn.Module):
    """A reward of the user's, the distance from the mean of all batches."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(16))

    def forward(self, embeddings, classes):
        self.mean += 0.1 * (embeddings.detach().mean(dim=0) - self.mean)
        return SimpleNamespace(loss=(embeddings - self.mean).square().mean())


def test_no_training_begins_with_what_another_one_remembered(make_trainer, tmp_path):
    """Three alike, from a model made anew; a cut one goes on with what it had."""
    used = IsoScoreStar(weight=0.5)  # by another Trainer
    used(torch.randn(9, 16))
    first = {}
    for reward in (IsoScoreStar(weight=0.5), used, OfOwnMemory()):
        own = {"regularizer": reward, "model_init": lambda: bert()}
        options = {"logging_steps": 1, "save_strategy": "steps", "save_steps": 2}
        folder = str(getattr(reward, "degrees", "own"))
        trainer = make_trainer(TRAINER, own=own, folder=folder, **options)
        logs = []
        for resume in (None, False, None):
            trainer.train(resume_from_checkpoint=resume)
            logs.append(_entries(trainer)[:-1])
        assert logs[0] == logs[1] == logs[2] == first.setdefault(type(reward), logs[0])
        rewards = [entry["reward"] for entry in trainer.state.log_history[:-1]]
        trainer.train(resume_from_checkpoint=trainer.args.output_dir + "/checkpoint-2")
        assert trainer.state.log_history[-2]["reward"] == rewards[2] != rewards[0]


# What leaves a reward without a gradient, and the word that says why.
STILL = {
    "a row per batch": (lambda: {"per_device_train_batch_size": 1}, "first batch"),
    "a class per row": (lambda: {"rows": make_rows(24, labels=lambda i: i)}, "first batch"),
    "a frozen encoder": (lambda: {"model": bert(num_labels=24)}, "frozen"),
}


@pytest.mark.parametrize("case", STILL)
def test_a_reward_that_cannot_move_is_told_of_once(make_trainer, case):
    still, word = STILL[case]
    options = {
        "model": bert(num_labels=24),
        "rows": make_rows(24, labels=lambda i: i % 2),
    } | still()
    if case == "a frozen encoder":
        options["model"].bert.requires_grad_(False)
    with pytest.warns(UserWarning, match=word) as said:
        make_trainer(TRAINER, own={"regularizer": AverageCosine(weight=0.1)}, **options).train()
    assert len([w for w in said if w.category is UserWarning and word in str(w.message)]) == 1


# Of a model, and the targets of row i: whole numbers as ratings from 1 to 5, or several per row.
REGRESSIONS = [
    ({"num_labels": 1}, lambda i: 1 + i % 5),
    ({"problem_type": "regression"}, lambda i: torch.tensor([i % 5, i % 3])),
    ({"problem_type": "regression"}, lambda i: torch.tensor([i / 7, i / 3])),
]


@pytest.mark.parametrize(("options", "target"), REGRESSIONS)
def test_targets_of_a_regression_are_one_cloud(make_trainer, options, target):
    models = [bert(**options) for _ in range(2)]
    made = _both_trained(make_trainer, models, rows=make_rows(labels=target))
    _assert_equal(*made)
    assert made[1].state.log_history[0]["bars"] == 7  # of 8 rows


@pytest.mark.parametrize("kind", ["tp", "cp", "sp", "model"])
def test_processes_that_share_rows_are_refused(make_trainer, kind, monkeypatch):
    """A configuration as accelerate holds it, or a model that was loaded in parts."""
    model, sizes = bert(), {f"{name}_size": 1 + (name == kind) for name in ("tp", "cp", "sp")}
    if kind == "model":
        model._tp_size = 2

    def without_other_processes(trainer):
        trainer.accelerator = Accelerator()
        trainer.is_deepspeed_enabled = trainer.is_fsdp_enabled = False
        found = property(lambda accelerator: ParallelismConfig(**sizes))
        monkeypatch.setattr(Accelerator, "parallelism_config", found)

    monkeypatch.setattr(Trainer, "create_accelerator_and_postprocess", without_other_processes)
    with pytest.raises(ValueError, match=f"'{'tp' if kind == 'model' else kind}': 2.*group"):
        make_trainer(TRAINER, model=model)
