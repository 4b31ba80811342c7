"""What is read off finished models of profile objectives: spaces, maps, families, stitches."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, permutations

import numpy as np
import pandas as pd
import text
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from train import (
    JUDGED,
    MAX_LENGTH,
    Training,
    encoded,
    fixed_batches,
    new_model,
    spread,
    tokenizer_for,
)
from transformers.modeling_outputs import BaseModelOutput

from shrink_utils.geometry import (
    affine,
    anisotropy,
    avg_sim,
    calibrated_maximum,
    elongated_directions,
    intra_sim,
    minibatch_cka,
    mutual_knn,
    procrustes,
    self_sim,
)
from shrink_utils.models import (
    Encoder,
    MapTraining,
    evaluating,
    load_encoder,
    read_layers,
    stitch_grid,
    word_states,
)
from shrink_utils.study.after_finetuning import text_states, treated_accuracies
from shrink_utils.study.matched_words import Layers
from shrink_utils.text import load_task
from shrink_utils.training import RunConfig, finetune

READ = 600  # held-out verses whose words are read
FITTED = 1000  # training verses that a map is fitted on
TOKENS, CKA_ROWS = 2048, 256  # of a family: tokens, and rows of a batch
DEALT = 9  # shuffles of the null of RSA and PWCCA
STITCH_FITTED, STITCH_JUDGED = 256, 128
MAP_TRAINING = MapTraining(steps=200, warmup=20)
NEIGHBOURS, WORDS, TEXTS = 10, 2000, 300
FRESH = 1000  # shifts the seed of an untrained model, which shares its start with no other
RATIO = 5.0  # an elongated direction has an eigenvalue of so many means
Models = Mapping[str, torch.nn.Module]


def encoder_of(model: torch.nn.Module, tokenizer, name: str) -> Encoder:
    """The encoder of a model of any objective."""
    below = model.encoder if name == "mt" else model.bert
    return Encoder(name, below, tokenizer)


def spaces(models: Models, trainings: Mapping[str, Training], *, read: int = READ) -> dict:
    """Masked LM and translation, layer by layer: measures, nulls, likeness and alignment.

    `models` are named by objective; untrained ones, as they began, stand beside them.
    """
    tokenizer = tokenizer_for(trainings["mt"])
    verses = [first for first, _ in text.texts(trainings["mt"].source).held_out[:read]]
    rows, layers = [], {}
    for name in ("mlm", "mt"):
        for state, model in (("trained", models[name]), ("untrained", new_model(trainings[name]))):
            words = word_states(encoder_of(model, tokenizer, name), verses, max_length=MAX_LENGTH)
            layers[name, state] = Layers(words.vectors, words.sentence)
            for layer, x in enumerate(words.vectors):
                found = {"objective": name, "state": state, "layer": layer}
                rows += [found | of for of in _measures(x, words)]
    alike = []
    for state in ("trained", "untrained"):
        first, second = layers["mlm", state], layers["mt", state]
        for measure in ("rsa", "pwcca"):
            pairs = zip(first.rows(measure), second.rows(measure), strict=True)
            for layer, (x, y) in enumerate(pairs):
                of = calibrated_maximum(measure, [x], [y], permutations=DEALT)
                found = {"measure": measure, "state": state, "layer": layer}
                alike.append(found | {"value": of.value, "null": of.null})
    aligned = pd.DataFrame(alignments(models, trainings))
    return {"layers": pd.DataFrame(rows), "alike": pd.DataFrame(alike), "aligned": aligned}


def _measures(x: Tensor, words) -> list[dict]:
    """AvgSim, SelfSim, IntraSim with its null, and the first centred share, of one layer (n, d)."""
    average = avg_sim(x, groups=words.sentence).value
    own = self_sim(x, words.word, sentences=words.sentence)
    inside = intra_sim(x, words.sentence, n_permutations=5)
    return [
        {"measure": "avg_sim", "value": average, "null": 0.0},
        {"measure": "self_sim", "value": own.value, "null": own.null},
        {"measure": "intra_sim", "value": inside.value, "null": inside.null},
        {"measure": "centred_1", "value": float(anisotropy(x, k=1, center=True)[0]), "null": 0.0},
    ]


def alignments(models: Models, trainings: Mapping[str, Training]) -> list[dict]:
    """Loss and agreement of the translation decoder above other encoders' last layers.

    Maps are fitted on training verses, token by token. ``own`` is the decoder's own encoder,
    ``mean`` its mean state at every place. Agreement: the share of places where the most likely
    piece is the one above the own encoder.
    """
    of = trainings["mt"]
    mt = models["mt"]
    untrained = new_model(trainings["mlm"])  # as the masked LM began
    below = {"own": mt.encoder, "mlm": models["mlm"].bert, "untrained": untrained.bert}
    fitted = fixed_batches(of, spread(encoded(of, "train"), FITTED))
    judged = fixed_batches(of, encoded(of, "held_out", JUDGED))
    states = {name: _tokens(model, fitted) for name, model in below.items()}
    target = states["own"]
    maps = {("own", "none"): None, ("own", "mean"): "mean"}
    for name in ("mlm", "untrained"):
        maps[name, "none"] = None
        maps[name, "orthogonal"] = procrustes(states[name], target, scaling=True)
        maps[name, "affine"] = affine(states[name], target)
    found, words = [], {}
    for (name, kind), phi in maps.items():
        total, count, predicted = 0.0, 0, []
        for batch in judged:
            logits = _above(mt, below[name], phi, batch, target.mean(dim=0))
            wanted = batch["labels"]
            total += float(cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="sum"))
            count += int((wanted >= 0).sum())
            predicted.append(logits.argmax(dim=-1)[wanted >= 0])
        words[name, kind] = torch.cat(predicted)
        agreed = float((words[name, kind] == words["own", "none"]).double().mean())
        found.append({"encoder": name, "map": kind, "loss": total / count, "agreement": agreed})
    return found


@torch.no_grad()
def _tokens(model: torch.nn.Module, batches: Sequence[Mapping[str, Tensor]]) -> Tensor:
    """Last states of all tokens, (n, d)."""
    with evaluating(model):
        return torch.cat([_last(model, b)[b["attention_mask"].bool()] for b in batches])


def _last(model: torch.nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    return model(**inputs).last_hidden_state


@torch.no_grad()
def _above(mt, below, phi, batch: Mapping[str, Tensor], mean: Tensor) -> Tensor:
    """Logits (b, u, vocabulary) of the decoder above mapped states."""
    with evaluating(mt), evaluating(below):
        states = _last(below, batch)
        if phi == "mean":
            states = mean.to(states).expand_as(states)
        elif phi is not None:
            states = phi(states.flatten(0, 1)).reshape(*states.shape[:2], -1).to(states)
        given = BaseModelOutput(last_hidden_state=states)
        options = {"attention_mask": batch["attention_mask"], "labels": batch["labels"]}
        return mt(encoder_outputs=given, **options).logits


def family(models: Models, trainings: Mapping[str, Training]) -> dict[str, pd.DataFrame]:
    """Debiased CKA, by batches, of every layer of every member with every other, embeddings too."""
    of = next(iter(trainings.values()))
    held_out = fixed_batches(of, spread(encoded(of, "held_out"), 128))
    layers = {}
    for name, model in models.items():
        parts = []
        with torch.no_grad(), evaluating(model):
            for batch in held_out:
                inputs = {k: batch[k] for k in ("input_ids", "attention_mask")}
                states = model.bert(**inputs, output_hidden_states=True).hidden_states
                kept = (batch["input_ids"] > 4) & batch["attention_mask"].bool()
                parts.append(torch.stack([x[kept] for x in states]))
        found = torch.cat(parts, dim=1)
        order = torch.randperm(found.shape[1], generator=torch.Generator().manual_seed(0))
        for layer, x in enumerate(found[:, order[:TOKENS]].double()):
            layers[name, layer] = x.split(CKA_ROWS)
    rows = []
    for (a, i), (b, j) in combinations_with_replacement(layers, 2):
        value = minibatch_cka(zip(layers[a, i], layers[b, j], strict=True))
        rows.append({"a": a, "layer_a": i, "b": b, "layer_b": j, "cka": value})
    return {"family": pd.DataFrame(rows)}


def stitches(models: Models, trainings: Mapping[str, Training]) -> dict[str, pd.DataFrame]:
    """Penalties at equal layers; models are named ``gelu-500``, by activation and seed.

    Pairs: a model below itself, another seed, another activation of the same seed, and an
    untrained bottom.
    """
    of = next(iter(trainings.values()))
    fitted = fixed_batches(of, spread(encoded(of, "train"), STITCH_FITTED))
    judged = fixed_batches(of, encoded(of, "held_out", STITCH_JUDGED))
    shuffled = [fitted[i] for i in np.random.default_rng(0).permutation(len(fitted))]
    read = {n: (read_layers(m, shuffled), read_layers(m, judged)) for n, m in models.items()}
    pairs = [("itself", name, name) for name in models]
    for front, back in permutations(models, 2):
        (a, i), (b, j) = front.split("-"), back.split("-")
        if (a == b) != (i == j):
            pairs.append(("seed" if a == b else "activation", front, back))
    for name in models:
        fresh = new_model(replace(trainings[name], seed=trainings[name].seed + FRESH))
        read[f"untrained {name}"] = (read_layers(fresh, shuffled), read_layers(fresh, judged))
        pairs.append(("untrained", f"untrained {name}", name))
    rows, layers = [], [(m, m) for m in range(1, of.depth + 1)]
    for relation, front, back in pairs:
        kinds = ["identity", "affine"] + ["trained"] * (relation in ("itself", "activation"))
        for kind in kinds:
            on = (read[front][0], read[back][0])
            options = {"fitted_on": on, "layers": layers, "training": MAP_TRAINING}
            for cell in stitch_grid(read[front][1], read[back][1], kind, **options):
                keys = {"relation": relation, "front": front, "back": back, "kind": kind}
                keys |= {"layer": cell.front_layer, "own": read[back][1].loss}
                rows.append(keys | {"loss": cell.loss, "penalty": cell.penalty})
    return {"stitches": pd.DataFrame(rows)}


def after_finetuning(config: RunConfig) -> dict[str, pd.DataFrame]:
    """Word neighbourhoods, elongated directions and removals, before and after one fine-tuning."""
    rows = load_task(config.task, max_eval=TEXTS)["validation"]
    texts, labels = list(rows["text"]), np.array(rows["label"])
    start = load_encoder(config.model)
    result = finetune(config)
    end = Encoder(config.model, result.model.base_model, result.tokenizer)
    words, clouds = {}, {}
    for when, encoder in (("before", start), ("after", end)):
        found = word_states(encoder, texts, max_length=config.max_length)
        words[when] = Layers(found.vectors, found.sentence).thinned().words.double()
        clouds[when] = text_states(encoder, rows, max_length=config.max_length)
    table, shuffle = [], torch.randperm(words["after"].shape[1])
    for layer, (x, y) in enumerate(zip(words["before"], words["after"], strict=True)):
        table += [
            ("neighbours", "words", layer, "after", mutual_knn(x, y, k=NEIGHBOURS)),
            ("neighbours", "words", layer, "null", mutual_knn(x, y[shuffle], k=NEIGHBOURS)),
            *(("score", "words", layer, w, float(anisotropy(v, k=1, center=True)[0]))
              for w, v in (("before", x), ("after", y))),
        ]  # fmt: skip
    last = len(words["before"]) - 1
    for kind in ("words", "cls", "mean"):
        x, y = (
            words[w][-1] if kind == "words" else clouds[w][kind][-1].double()
            for w in ("before", "after")
        )
        shrunk = float(x.var(dim=0).mean() / y.var(dim=0).mean())  # of the mean eigenvalue
        table += [
            ("elongated", kind, last, "before", elongated_directions(x, ratio=RATIO)),
            ("elongated", kind, last, "after", elongated_directions(y, ratio=RATIO)),
            # By the mean eigenvalue before: what grew as a whole has more.
            ("elongated", kind, last, "after, mean before",
             elongated_directions(y, ratio=RATIO * shrunk)),
        ]  # fmt: skip
    columns = ["quantity", "vectors", "layer", "when", "value"]
    removals = []
    for when in ("before", "after"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few rows in a cluster
            found = treated_accuracies(clouds[when]["mean"][-1], labels, seed=config.seed)
        removals.append(found.assign(when=when))
    return {"finetuned": pd.DataFrame(table, columns=columns), "removals": pd.concat(removals)}
