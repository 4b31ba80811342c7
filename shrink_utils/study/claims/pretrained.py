"""Claims on pretrained encoders and on what fine-tuning makes of them."""

from collections.abc import Mapping

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.ablation import CELL, Place, place_on_sweep, sweep_of
from shrink_utils.study.claims.claim import Evidence, evaluate, judge, quantity
from shrink_utils.study.claims.hypotheses import PLAN

ARM = "prominent"
LANGUAGE = ("attention", "dimension", "divergence", "lifetimes")  # tables of chapter 12
FURTHER = "models_"  # begins the name of a table on further models
OTHERS = {  # what prominent bars are compared with
    "random": "as many random bars",
    "all": "all bars",
    "cosine": "the average cosine",
    "isoscore": "IsoScore★",
    "spectral": "spectral entropy",
    "loops": "prominent loops",
}


def stl_claims(summary: pd.DataFrame) -> pd.DataFrame:
    """*Shrink the longest*, on every model and task of the ablation; from `summarize`."""
    table3 = stl_table3(summary)
    sources = table3[[*CELL, "table3"]].drop_duplicates()
    runs = with_grades(summary).merge(sources, on=CELL, how="left")
    runs["has_all"] = runs.groupby(CELL).arm.transform(lambda arms: "all" in set(arms))
    return judge("stl", {"runs": runs, "table3": table3})


def with_grades(table: pd.DataFrame) -> pd.DataFrame:
    """With the column ``graded`` (`tables.graded`); without rows to grade, it is the metric."""
    return table if "graded" in table else table.assign(graded=table.value)


def stl_table3(runs: pd.DataFrame) -> pd.DataFrame:
    """STL's Table 3 by arm, for the models and tasks of some runs: columns ``centred_1``, ….

    Its own cell where it has the model and task, else a mean, which tells the size to expect and no
    more. The column ``table3`` says which.
    """
    cells = runs[CELL].drop_duplicates().itertuples(index=False)
    return pd.concat([_stl_cell(*cell) for cell in cells], ignore_index=True)


def _stl_cell(model: str, task: str) -> pd.DataFrame:
    table = pd.read_csv(data_dir() / "published" / "stl_table3.csv")
    same_model = table[table.model == model.rsplit("/", 1)[-1]]
    table = same_model if len(same_model) else table
    same_task = table[table.task == task]
    near = same_task if len(same_task) else table
    exact = len(same_model) and len(same_task)
    source = f"STL Table 3, mean of {len(near[CELL].drop_duplicates())}"
    scores = near.assign(name=near.space + "_" + near.k.astype(str))
    scores = scores.groupby(["arm", "name"]).score.mean().unstack()
    selected = [scores.loc[["selected"]].rename({"selected": arm}) for arm in (ARM, "published")]
    means = pd.concat([scores, *selected]).reset_index()
    return means.assign(model=model, task=task, table3="STL Table 3" if exact else source)


def vazquez_claims(
    contextuality: pd.DataFrame, corpus: pd.DataFrame, *, model: str = ""
) -> pd.DataFrame:
    """Vázquez et al. and Ethayarajh; from `measure_contextuality` and `measure_corpus`.

    A `model` that is not the profile's first is named behind its rows.
    """
    avg_sim = corpus[corpus.quantity == "avg_sim"].set_index("layer").value
    words = corpus[corpus.quantity == "self_sim"]
    corrected = words.assign(value=words.value - words.layer.map(avg_sim))
    tables = {"contextuality": contextuality, "self_sim": corrected, "bert": _bert()}
    last = int(contextuality.layer.max())
    claims = judge("vazquez", tables, last=last, below=last - 1)
    return _named(claims, model) if model else claims


def _named(claims: pd.DataFrame, model: str) -> pd.DataFrame:
    """With the model behind every claim and statement."""
    return claims.assign(
        claim=claims.claim + f":{model}", statement=claims.statement + f" ({model})"
    )


def models_claims(tables: pd.DataFrame) -> pd.DataFrame:
    """The same rows of every further model of the profile; from `measure_models`."""
    found = [evaluate([], {}.__getitem__)]
    for model, rows in tables.groupby("model", sort=False):
        parts = (rows[rows.measured_on == on] for on in ("sample", "corpus"))
        found.append(vazquez_claims(*parts, model=model))
    return pd.concat(found[1:] or found)


def _bert() -> pd.DataFrame:
    """Published numbers of bert-base-cased by layer, in the form of the measured table."""
    tables = []
    for name in ("avg_sim", "self_sim", "intra_sim"):
        table = pd.read_csv(data_dir() / "published" / f"{name.replace('_', '')}_layers.csv")
        table["value"] = table["adjusted_self_sim" if name == "self_sim" else name]
        tables.append(table[table.model == "bert-base-cased"].assign(quantity=name))
    found = pd.concat(tables).rename(columns={"model": "item"})
    avg_sim = found[found.quantity == "avg_sim"].set_index("layer").value
    return found.assign(baseline=found.layer.map(avg_sim))


@quantity
def largest_step_less_half_the_rise(rows: pd.DataFrame, difference: dict) -> Evidence:
    """Of AvgSim, from the embeddings to the layer `below` the last.

    Which step is the largest is read off the same sentences.
    """
    values = rows.pivot(index="item", columns="layer", values="value")
    below = difference["below"]
    steps = values.loc[:, :below].diff(axis=1)
    return Evidence(steps[steps.mean().idxmax()] - (values[below] - values[0]) / 2)


def brown_claims(similarity: pd.DataFrame) -> pd.DataFrame:
    """Where fine-tuning changes representations, of every arm; from `measure_similarity`.

    References
    ----------
    Brown et al. 2023, *Understanding the Inner Workings of Language Models Through Representation
    Dissimilarity*; Merchant et al. 2020, *What Happens To BERT Embeddings During Fine-tuning?*;
    Phang, Liu & Bowman 2021, *Fine-Tuned Transformers Show Clusters of Similar Representations
    Across Layers*.
    """
    return judge("brown", {"similarity": similarity})


@quantity
def near_less_far_layers(rows: pd.DataFrame, difference: dict) -> Evidence:
    """Similarity of neighbours less that of layers over half the depth apart, by seed."""
    apart = (rows.layer - rows.other).abs()
    near = rows[apart == 1].groupby("seed").value.mean()
    far = rows[apart > rows.layer.max() / 2].groupby("seed").value.mean()
    return Evidence(near - far)


def rajaee_claims(table: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """Rajaee & Pilehvar; from `measure_after_finetuning` and `measure_words_after_finetuning`."""
    drops = accuracy_drops(table)
    tables = {
        "shape": table[table.vectors == "cls"],
        "treated": accuracy_lost(table[table.vectors == "mean"]),
        "removals": drops[drops.treatment == "global"],
        "words": words[(words.layer == words.layer.max()) & (words.labels == "true")],
    }
    return judge("rajaee", tables)


def accuracy_lost(table: pd.DataFrame) -> pd.DataFrame:
    """What each treatment costs the probe against untreated vectors: the column ``lost``."""
    rows = table[(table.measure == "accuracy") & (table.skipped == 0)]
    keys = ["model", "task", "arm", "seed", "vectors"]
    untreated = rows[rows.treatment == "untreated"].set_index(keys).value
    treated = rows[rows.treatment.isin(["global", "clusters"])].set_index(keys)
    return treated.assign(lost=untreated.reindex(treated.index) - treated.value).reset_index()


def accuracy_drops(table: pd.DataFrame) -> pd.DataFrame:
    """What each removal costs the probe: accuracy with the mean subtracted − accuracy after it.

    From `measure_after_finetuning`. Columns model, task, arm, seed, vectors, treatment, removed,
    skipped, drop.
    """
    accuracy = table[(table.measure == "accuracy") & table.treatment.isin(["global", "clusters"])]
    keys = ["model", "task", "arm", "seed", "vectors", "treatment"]
    centred = accuracy[accuracy.removed == 0].set_index(keys).value
    removals = accuracy[accuracy.removed > 0].set_index(keys)
    drops = removals.assign(drop=centred.reindex(removals.index) - removals.value).reset_index()
    return drops[[*keys, "removed", "skipped", "drop"]]


def language_claims(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Topology on language; from the measured tables of chapter 12 by their names."""
    return judge("language", {name: tables[f"language_{name}"] for name in LANGUAGE})


def further_models_claims(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows of chapters 03, 08 and 12 on every further model; from `OF_FURTHER_MODELS`, if there."""
    found = [evaluate([], {}.__getitem__)]
    further = {name[len(FURTHER) :]: t for name, t in tables.items() if name.startswith(FURTHER)}
    for model in further["similarity"].model.unique() if "similarity" in further else ():
        of = {name: table[table.model == model] for name, table in further.items()}
        found += [
            _named(brown_claims(of["similarity"]), model),
            rajaee_claims(of["after_finetuning"], of["words_after_finetuning"]),
            _named(language_claims(of), model),
        ]
    return pd.concat(found[1:] or found)


def topology_claims(frontier: pd.DataFrame, *, weight: float = 1.0) -> pd.DataFrame:
    """Is topology what helps? Prominent bars against other arms; from `frontier_table`.

    Arms are compared at a weight, that of the profile's grid. Without a sweep there are no claims.

    Raises
    ------
    ValueError
        If an arm lacks a seed that the prominent bars have, or they one of an arm's.
    """
    frontier = with_grades(frontier)
    compared = [
        _prominent_beside(rows, other, weight)
        for _, rows in frontier.groupby(CELL, sort=False)
        for other in OTHERS
        if other in set(rows.arm) and len(_of_arm(rows, ARM, weight))
    ]
    if not compared:
        return evaluate([], {}.__getitem__)
    return judge("topology", {"prominent": pd.concat(compared)}, weight=weight)


def _prominent_beside(rows: pd.DataFrame, other: str, weight: float) -> pd.DataFrame:
    """Runs of the prominent bars at one weight, beside another arm at that weight and score."""
    ours, theirs = (_of_arm(rows, arm, weight) for arm in (ARM, other))
    _check_seeds(rows, other, set(ours.index) - set(rows[rows.arm == other].seed), of=ARM)
    _check_seeds(rows, ARM, set(theirs.index) - set(ours.index), of=other)
    sweep = sweep_of(rows, other)
    seeds = [sweep[sweep.seed == seed] for seed in ours.index]
    at = [place_on_sweep(s.centred_1, ours.centred_1[s.seed.iloc[0]]) for s in seeds]
    return ours.assign(
        other=other,
        spoken=OTHERS[other],
        other_centred_1=theirs.centred_1,
        other_graded=theirs.graded,
        matched_graded=[place.of(s.graded) for place, s in zip(at, seeds, strict=True)],
        at_weight=len(theirs) > 0,
        **_reached(at),
    ).reset_index()


def _reached(places: list[Place]) -> dict[str, bool | str]:
    """Whether enough seeds reach the score for a test, by the hypotheses' rule; and who does not.

    At its nearest point an arm is weaker or stronger than prominent bars, so the difference there
    nearly repeats that of the grid.
    """
    missed, seeds = sum(not place.passed for place in places), len(places)
    tested = missed / seeds <= PLAN["nearest_at_most"]
    note = f" (none does in {missed} of {seeds} seeds: the nearest is taken"
    note += ")" if tested else ", so this is not tested)"
    return {"tested": tested, "missed": note if missed else ""}


def _check_seeds(rows: pd.DataFrame, arm: str, missing: set[int], *, of: str) -> None:
    if missing:
        raise ValueError(
            f"frontier: {arm} lacks the seeds {sorted(missing)} of {of} on "
            f"{':'.join(rows[CELL].iloc[0])}; run it too"
        )


def _of_arm(rows: pd.DataFrame, arm: str, weight: float) -> pd.DataFrame:
    return rows[(rows.arm == arm) & (rows.weight == weight)].set_index("seed")
