"""Two groups of classifiers of sentence pairs, and the pairs that they are judged on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from shrink_utils.models import Trunk, load_classifier
from shrink_utils.study.profiles import SEED_STEP, Profile
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.text import heuristic_pairs, load_task, read_hans, training_pairs
from shrink_utils.text.heuristics import PAIR_FEATURES
from shrink_utils.training import EntailmentTraining, common_start, entailment_model

__all__ = ["GROUPS", "Member", "load_groups", "pairs_by_name"]

GROUPS = ("heuristic", "generalizing")
START_ROWS = 4  # times those of a model: the pairs of the common start have no label

Loader = Callable[[], PreTrainedModel]


class Member(NamedTuple):
    """One of the models: its group, and which one of it."""

    group: str
    number: int


def load_groups(profile: Profile) -> tuple[dict[Member, Loader], PreTrainedTokenizerBase]:
    """The models of both groups, to be loaded when they are needed, and their tokenizer.

    Returns
    -------
    dict, tokenizer
        Functions that give the models, those of the profile's lists or else trained here. Of the
        former a call reads the weights again, so that no more models are in memory than are held.
    """
    sizes = profile.heuristics
    if not sizes.heuristic:
        return _trained(profile)
    names = {"heuristic": sizes.heuristic, "generalizing": sizes.generalizing}
    loaders = {
        Member(group, number): partial(_load, name)
        for group in GROUPS
        for number, name in enumerate(names[group])
    }
    return loaders, load_classifier(sizes.heuristic[0], n_labels=3, seed=0)[1]


def pairs_by_name(profile: Profile) -> dict[str, Dataset]:
    """What the models are judged on: "dev", "overlap" and, for models trained here, "new words".

    "dev" is of the kind that the heuristic group was trained on (MNLI's validation pairs for models
    of a hub, neutral and contradiction taken together), "overlap" is `heuristic_pairs` (HANS for
    models of a hub).
    """
    n, seed = profile.heuristics.test_rows, profile.base_seed
    if profile.heuristics.heuristic:
        return {"dev": _mnli(n, seed), "overlap": read_hans(n=n, seed=seed)}
    return {
        "dev": training_pairs(n, counter_examples=0, split="test", seed=seed),
        "overlap": heuristic_pairs(n, seed=seed),
        "new words": heuristic_pairs(n, lexicon="new", seed=seed),
    }


def _trained(profile: Profile) -> tuple[dict[Member, Loader], PreTrainedTokenizerBase]:
    sizes, shift = profile.heuristics, SEED_STEP * profile.base_seed
    trunk = Trunk(
        width=profile.pretraining.width,
        depth=profile.pretraining.depth,
        heads=profile.pretraining.heads,
        dropout=0.0,  # models this small, trained this briefly, do not overfit
    )
    training = EntailmentTraining(
        rows=sizes.train_rows,
        steps=sizes.steps,
        learning_rate=sizes.learning_rate,
        threads=profile.threads,
    )
    first = EntailmentTraining(
        rows=START_ROWS * sizes.train_rows,
        steps=sizes.start_steps,
        learning_rate=2 * sizes.learning_rate,
        threads=profile.threads,
    )
    members = [Member(group, n) for n in range(sizes.models) for group in GROUPS]
    total = sizes.start_steps + len(members) * sizes.steps
    with progress_bar(total=total, unit="step", description="classifiers of pairs") as bar:
        start, tokenizer = common_start(trunk, first, seed=shift, on_step=bar.update)
        loaders = {}
        for place, member in enumerate(members):
            model = entailment_model(
                start,
                tokenizer,
                training,
                counter_examples=sizes.counter_examples if member.group == GROUPS[1] else 0.0,
                seed=shift + place,
                data_seed=shift,
                on_step=bar.update,
            )
            loaders[member] = partial(_given, model)
    return loaders, tokenizer


def _given(model: PreTrainedModel) -> PreTrainedModel:
    return model


def _load(name: str) -> PreTrainedModel:
    model, _ = load_classifier(name, n_labels=3, seed=0)
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def _mnli(n: int, seed: int) -> Dataset:
    rows = load_task("mnli", max_eval=n, seed=seed)["validation"]
    nothing = [""] * len(rows)
    columns = {
        "text": list(rows["text"]),
        "text_pair": list(rows["text_pair"]),
        "label": [int(label != 0) for label in rows["label"]],
        "heuristic": nothing,
        "template": nothing,
    }
    return Dataset.from_dict(columns, features=PAIR_FEATURES)
