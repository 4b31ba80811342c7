"""Made-up measured tables in which the truth of every claim is known, with a little noise."""

from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import torch

from shrink_utils.study.claims.brown import GROUPS
from shrink_utils.study.claims.stl import _frontier_table
from shrink_utils.study.claims.vazquez import COUNTED
from shrink_utils.study.run_tables import _cloud_row
from shrink_utils.text.pairs import TEMPLATES
from shrink_utils.text.tasks import task_spec

SEEDS = (0, 1, 2)
LEVEL = {"none": 0.6, "prominent": 0.4, "published": 0.45, "all": 0.3, "random": 0.5}
NAN = (np.nan,) * 4


def noisy(rows, columns, *, noise=0.004, of=("value",), seed=0):
    """A table of rows, with noise in some columns."""
    table = pd.DataFrame(rows, columns=columns.split() if isinstance(columns, str) else columns)
    for name in of:
        table[name] += noise * np.random.default_rng(seed).standard_normal(len(table))
    return table


def summary(model="minilm", task="movies", arms=tuple(LEVEL), noise=0.004):
    """Of `tables._graded_runs`: the lower the first score, the higher the second one, but the lower
    the second raw one; the metric is .8."""
    fixed = (0.01, 0.5, 0.05)
    rows = [
        (model, task, arm, 1.0, seed, a, 0.2 - a / 4, *fixed, a, 0.6, 0.5, 0.8, a / 4, 0.02)
        for arm, a in LEVEL.items()
        if arm in arms
        for seed in SEEDS
    ]
    numbers = (
        "centred_1 centred_2 centred_3 raw_1 centred_before centred_after raw_before raw_after"
    )
    columns = f"model task arm weight seed {numbers} value raw_2 raw_3"
    noise_in = [*numbers.split(), "value", "raw_2", "raw_3"]
    return graded_as_a_whole(noisy(rows, columns, noise=noise, of=noise_in))


def evaluations(runs, *, late=0.0):
    """Of ten epochs: the least loss is the second's, and from the seventh on it moves by `late`."""
    rows = []
    for run, epoch in product(runs.itertuples(), range(11)):
        keys = {name: getattr(run, name) for name in ("model", "task", "arm", "weight", "seed")}
        loss = 0.5 + late * (-1) ** run.seed * max(0, epoch - 7) / 3
        loss = {0: 0.0, 1: 0.6 + 0.05 * (run.arm == "prominent"), 2: 0.3}.get(epoch, loss)
        level = {"none": 0.5, "prominent": 0.3}.get(run.arm, 0.4) if epoch == 2 else 9.0
        luck = 1e-3 * run.seed
        scores = {"centred_1": level + luck, "raw_1": level + luck, "value": 0.8 + luck}
        rows.append({**keys, "epoch": epoch, "loss": loss + 1e-4 * run.seed * epoch, **scores})
    return pd.DataFrame(rows[::-1])


def graded_as_a_whole(runs):
    """As of `_add_correctness` where rows are not graded: the metric's own value."""
    return runs.assign(metric="accuracy", graded=runs.value)


def with_rows(runs, rows=400):
    """Correctness whose mean is each run's value, with rows that are hard for every run."""
    hard = np.random.default_rng(0).permutation(rows)
    grades = [(hard < round(value * rows)).astype(float) for value in runs.value]
    return runs.assign(graded=pd.Series(grades, runs.index, dtype=object))


def frontier(slopes, *, scores=None, wobble=0.0):
    """Metric .8 − slope · (score of none − score) of every arm, at three weights."""
    rows = []
    for seed, shift in zip(SEEDS, (-0.004, 0.001, 0.003), strict=True):  # the same in every arm
        for arm, slope in {"none": 0.0, **slopes}.items():
            at = (scores or {}).get(arm, (0.5, 0.4, 0.3))
            by_weight = {1.0: 0.6} if arm == "none" else dict(zip((0.5, 1, 2), at, strict=True))
            for weight, score in by_weight.items():
                luck = shift + wobble * shift * (1 + weight) * (1 if arm == "prominent" else -1)
                run = ("minilm", "movies", arm, weight, seed, score + luck, 0.5, "accuracy")
                rows.append((*run, 0.8 - slope * (0.6 - score) + shift))
    columns = "model task arm weight seed centred_1 raw_1 metric value".split()
    return _frontier_table(graded_as_a_whole(pd.DataFrame(rows, columns=columns)))


# Prominent bars cost less at equal anisotropy than random ones, and more than cosine.
THREE = {"prominent": 0.2, "random": 0.5, "cosine": 0.0}
WEAK = {"cosine": (0.58, 0.55, 0.5)}  # never reaches the score of prominent bars


def cloud(arm, seed, *, apart=8.0, scale=1.0, task="sentiment_movies", n=60, d=12):
    """The row of a run with two classes, `apart` along the third axis; before, a round cloud."""
    rng = np.random.default_rng([seed, len(arm)])
    before, after = (torch.from_numpy(rng.normal(size=(n, d))) for _ in range(2))
    labels = torch.arange(n) % 2 if task != "stsb" else torch.from_numpy(rng.random(n))
    after[:, 2] += apart * labels
    vectors = {"before": before, "after": scale * after, "labels": labels}
    keys = {"model": "minilm", "task": task, "arm": arm, "weight": 1.0, "seed": seed}
    return keys | _cloud_row(task_spec(keys["task"]), vectors)


def clouds():
    """Of runs whose classes lie closer together, and whose cloud is smaller, with all bars."""
    shapes = {"none": (12.0, 1.0), "prominent": (6.0, 1.0), "all": (3.0, 0.5)}
    rows = [cloud(a, s, apart=x, scale=y) for a, (x, y) in shapes.items() for s in SEEDS]
    return pd.DataFrame(rows)


AVG_SIM = (0.1, 0.25, 0.4, 0.3)
LEVELS = {  # by layer: value, null, baseline
    "avg_sim": (AVG_SIM, NAN, NAN),
    "intra_sim": ((0.5, 0.55, 0.6, 0.4), (0.5,) * 4, AVG_SIM),
    "mev": ((0.9, 0.8, 0.6, 0.3), (0.27,) * 4, NAN),
    "mev_released": ((0.0, 0.01, 0.02, 0.3), NAN, (0.02,) * 4),
}


def contextuality(n=40):
    """Of 02; an item's own noise is in all its layers."""
    luck = 0.01 * np.random.default_rng(1).standard_normal(n)
    rows = [
        (name, layer, str(i), values[layer] + luck[i], null[layer] + luck[i], baseline[layer])
        for name, (values, null, baseline) in LEVELS.items()
        for i, layer in product(range(n), range(4))
    ]
    return noisy(rows, "quantity layer item value null baseline", noise=0.001)


def corpus(fall=0.1):
    """Of 02: SelfSim falls by so much per layer."""
    words = [
        ("self_sim", layer, f"w{i}", 0.9 - fall * layer) for i in range(50) for layer in range(4)
    ]
    avg_sim = [("avg_sim", layer, "", value) for layer, value in enumerate(AVG_SIM)]
    return noisy(words + avg_sim, "quantity layer item value", noise=0.001)


HURT = {  # block-steps of 20, as V found it: keys and queries hurt in language models
    "mlm": {"key": 12, "query": 12},
    "clm": {"key": 12, "query": 12, "value": 6},
    "mt": {"value": 14, "out": 14, "W2": 14},
}


STACKS = (("mlm", ""), ("clm", ""), ("mt", "encoder"), ("mt", "decoder"))


def training(objective, seed, hurt):
    """Places of an objective: two layers, of which each component hurts so many steps less seed."""
    rows, steps = [("trapezoid", 0, "embedding", -1.0, 0, 0)], 20
    for rule, layer, name in product(("euler", "trapezoid"), (1, 2), COUNTED):
        hurts = max(0, hurt.get(name, 0) - seed)
        value = (0.001 * (1 + seed) * hurts - 0.01 * (steps - hurts)) / 2
        counted = hurts if rule == "euler" else steps  # signs are the paper's rule's alone
        rows.append((rule, layer, name, value * (1.25 if rule == "euler" else 1), steps, counted))
    table = pd.DataFrame(rows, columns="rule layer component value steps hurts".split())
    keys = {"part": "objectives", "objective": objective, "source": "nan", "seed": seed}
    return table.assign(**keys, stack="", window=0)


def objectives():
    """Tables of models trained from nothing: V's objectives, and profiles that no text changes."""
    texts = [
        ("stability", "trapezoid", source, seed, layer, name, -1.0 - i)
        for source, seed in product(("testament", "half", "gramps", "german", "finnish"), SEEDS)
        for layer, (i, name) in product((1, 2), enumerate(COUNTED))
    ]
    texts = noisy(texts, "part rule source seed layer component value", noise=0.01)
    texts = texts.assign(objective="nan", stack="", window=0)
    later = texts.assign(window=1, value=texts.value.sample(frac=1, random_state=0).to_numpy())
    places = pd.concat(
        [training(o, seed, HURT[o]).assign(stack=stack) for o, stack in STACKS for seed in SEEDS]
    )
    closure = pd.DataFrame(
        [
            ("objectives", o, seed, rule, window, parts, -0.5)
            for o, seed, window in product(HURT, SEEDS, (0, 1))
            # The second window falls short of what the first one has too much, but for the seed.
            for rule, parts in (
                ("euler", -0.625),
                ("trapezoid", -0.5 + 0.1 * (2 * window - 1) - 0.001 * seed),
            )
        ],
        columns="part objective seed rule window parts change".split(),
    )
    return {"places": pd.concat([places, texts, later], ignore_index=True), "closure": closure}


def similarity(top=0.1, part=0.1, depth=4):
    """Similarity falls by `top` a layer; that of the arms by `part`; neighbours are alike."""
    of = {
        ("within", "none"): lambda i, j: 1 - abs(i - j) / 5,
        # Unequal layers say nothing about change: a number that must not be read.
        ("finetuned", "none"): lambda i, j: 1 - top * i if i == j else 40.0 * i,
        ("finetuned", "all"): lambda i, j: 1 - top * i if i == j else 40.0 * i,
        ("arms", "all"): lambda i, j: 1 - part * i,
        ("itself", ""): lambda i, j: 0.5,
    }
    near = [("neighbours", "movies", "none", seed, "calibrated", 1, 0, 0.3) for seed in SEEDS]
    rows = [
        (pair, "movies", arm, seed, measure, i, j, value(i, j))
        for (pair, arm), value in of.items()
        for measure, seed in product(("cka_debiased", "rsa"), SEEDS)
        for i, j in product(range(depth + 1), range(depth + 1))
    ]
    return noisy(rows + near, "pair task arm seed measure layer other value")


OWN = {0: 0.01, 1: -0.02, 2: 0.03}  # what a front of this number adds: the noise


def stitches(*, asymmetry=0.2, untrained=2.0, identity=2.0, trained=-0.5, depth=4):
    """Least squares cost 1 between seeds; SoLU models are worse."""
    pairs = [
        ("seed", (a, i), (a, j), 1.0) for i, j in permutations(OWN, 2) for a in ("gelu", "solu")
    ]
    for n in OWN:
        pairs.append(("activation", ("solu", n), ("gelu", n), 1.5 + asymmetry + OWN[n]))
        pairs.append(("activation", ("gelu", n), ("solu", n), 1.5))
        pairs += [("itself", (a, n), (a, n), 0.0) for a in ("gelu", "solu")]
        pairs += [
            ("untrained", (f"untrained {a}", n), (a, n), 1 + untrained) for a in ("gelu", "solu")
        ]
    dearer, rows = {"affine": 0.0, "identity": identity, "trained": trained}, []
    for (relation, front, back, base), kind in product(pairs, dearer):
        if kind == "trained" and relation not in ("itself", "activation"):
            continue
        for layer in range(1, depth + 1):
            own = {"gelu": 4.0, "solu": 4.1}[back[0]]
            names = [f"{a}-{n}" for a, n in (front, back)]
            rows.append(
                (relation, *names, kind, depth, layer, own, base + dearer[kind] + OWN[front[1]])
            )
    columns = "relation front back kind depth layer own penalty"
    table = noisy(rows, columns, of=["penalty"], noise=0.001)
    return table.assign(loss=table.penalty + table.own)


GAPS = {0: 0.0, 1: 0.05, 2: 0.2, 3: 0.4, 4: 0.5}  # within less between, by layer
SWAPS = {0: -0.6, 1: -0.5, 2: 0.0, 3: 0.2, 4: 0.4}  # generalizing below less generalizing above


def generalization(noise=0.005):
    """Of chapter 09b: two groups of four that part late."""
    rng, rows, numbers = np.random.default_rng(0), [], range(4)
    members = [(group, number) for number in numbers for group in GROUPS]
    luck = {member: noise * rng.standard_normal() for member in members}
    for group, number in members:
        about, own = {"quantity": "accuracy", "group": group, "number": number}, luck[group, number]
        rows.append({**about, "data": "dev", "value": 0.95 - 0.01 * (group != "heuristic") + own})
        for data, t in product(("overlap", "new words"), TEMPLATES):
            right = 0.9 if t.entailed else {"heuristic": 0.1, "generalizing": 0.6}[group]
            label = "entailment" if t.entailed else "not_entailment"
            keys = {"heuristic": t.heuristic, "label": label, "template": t.name, "data": data}
            rows.append({**about, **keys, "value": right + own})
    for quantity, pairs in {
        "cka": combinations,
        "penalty": permutations,
        "stitched": permutations,
    }.items():
        for (front, back), data, layer in product(pairs(members, 2), ("dev", "overlap"), GAPS):
            two = front[0] != back[0]
            sign = 1 if front[0] == "generalizing" else -1
            value = (
                {
                    "cka": 0.9 - two * GAPS[layer],
                    "penalty": 0.1 + two * GAPS[layer],
                    "stitched": 0.5 + two * SWAPS[layer] * sign / 2,
                }[quantity]
                + luck[front]
                + luck[back]
            )
            names = ("group", "number", "other", "other_number")
            keys = dict(zip(names, (*front, *back), strict=True))
            about = {"quantity": quantity, "data": data, "layer": layer}
            rows.append({**about, **keys, "value": value + noise * rng.standard_normal()})
    words = ("quantity", "group", "other", "data", "heuristic", "label", "template")
    empty = dict.fromkeys(words, "")
    empty |= dict.fromkeys(["number", "other_number", "layer"], -1)
    return pd.DataFrame([{**empty, **row} for row in rows])


ARMS = [(arm, seed) for arm in ("pretrained", "none", "all") for seed in SEEDS]
SPLIT = {0: 0.05, 1: -0.02, 2: 0.01}  # of a probe's halves, before and after alike


def after_finetuning():
    """Isotropy: log I(W) rises everywhere, IsoScore falls in one layer of three. A probe loses .01
    by the longest directions before fine-tuning and .2 after it; the next ones cost nothing."""
    rows = [("isotropic", 0, "cls", 2, "IsoScore", "", 0, 0, 1.0)]
    for arm, seed in ARMS:
        after = arm != "pretrained"
        for layer in (1, 2, 3):
            falls = 0.3 - 0.2 * after * (layer == 2)
            values = {"log I(W)": after - 12, "log I(W), unit norm": -2.0, "IsoScore": falls}
            rows += [(arm, seed, "cls", layer, name, "", 0, 0, x) for name, x in values.items()]
        for vectors, base in product(("cls", "mean"), [0.8 if after else 0.6]):
            cell = (arm, seed, vectors, 2, "accuracy")
            rows.append((*cell, "untreated", 0, 0, base + 0.01))
            for treatment, far in (("global", 0.0), ("clusters", 0.1)):  # claims: the whole cloud
                longest = SPLIT[seed] + (0.2 if after else 0.01 + far)
                lost = {(0, 0): 0, (3, 0): longest, (3, 3): 0, (10, 0): 0.5}
                rows += [(*cell, treatment, *of, base - x) for of, x in lost.items()]
    columns = "arm seed vectors layer measure treatment removed skipped value"
    table = noisy(rows, columns, noise=0.002)
    return table.assign(model="minilm", task="movies")


def words_after_finetuning():
    """Both probes lose .2 in the last layer; others, and shuffled labels, hold odd numbers."""
    rows = [
        (arm, seed, layer, probe, labels, 0.3 + SPLIT[seed] + 0.2 * (arm == "pretrained"))
        if labels == "true" and layer == 2
        else (arm, seed, layer, probe, labels, 7.0)
        for (arm, seed), layer in product(ARMS, (1, 2))
        for probe, labels in product(("frequency", "type"), ("true", "shuffled"))
    ]
    table = noisy(rows, "arm seed layer probe labels value", noise=0.002)
    return table.assign(model="minilm", task="movies")


def language():
    """Of chapter 12, in which barcodes find 3 of 4 classes and all else 2."""
    hits = {"barcode": [1, 1, 1, 0], "degree": [1, 1, 0, 0], "shuffled": [0, 1, 0, 1]}
    attention = [("coherence", "hit", f, i, x) for f, of in hits.items() for i, x in enumerate(of)]
    dimension = [
        (kind, item, 200, layer, "ph", d + 0.1 * item + 9 * (layer < 6))
        for kind, d in (("text", 9.0), ("shuffled", 10.0), ("sampled", 8.0))
        for item, layer in product(range(4), (5, 6))
    ] + [("text", 0, 100, 6, "ph", np.inf)]
    divergence = [
        ("finetuned", arm, seed, layer, "rtd", value + 0.1 * seed)
        for arm, value in (("none", 5.0), ("prominent", 4.0))
        for seed, layer in product(SEEDS, (5, 6))
    ]
    lives = {"encoder": 3.0, "shuffled": 2.0, "random": 4.0}
    lifetimes = [(c, "lifetime", i, x + 0.1 * i) for c, x in lives.items() for i in range(4)]
    return {
        "language_attention": pd.DataFrame(
            attention, columns="task measure features item value".split()
        ),
        "language_dimension": noisy(dimension, "kind item pieces layer measure value", noise=0.01),
        "language_divergence": noisy(divergence, "pair arm seed layer measure value", noise=0.01),
        "language_lifetimes": noisy(lifetimes, "cloud measure item value", noise=0.01),
    }


def machine_text():
    """Machine text has the lower dimension."""
    rows = [(kind, i, d + i) for kind, d in (("human", 10.0), ("machine", 8.0)) for i in range(5)]
    return noisy(rows, "kind text ph", of=["ph"], noise=0.01)
