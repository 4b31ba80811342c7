"""The study on somebody's own task: what it will take, its runs, and the answer, kept in a folder.

The chapter *Your own task* and ``python -m shrink_utils own`` call the same functions. Without a
file they take the study's product reviews and the runs of the profile.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil
import torch
from datasets import Dataset
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shrink_utils.geometry import anisotropy
from shrink_utils.models import Encoder, hidden_states, load_encoder
from shrink_utils.models.states import WORD
from shrink_utils.names import known_name
from shrink_utils.sources import data_dir, home, hub_revisions
from shrink_utils.study import own_answer as rule
from shrink_utils.study.code_version import PACKAGE, _hash, code_hash
from shrink_utils.study.figures import _png, _svg, use_house_style
from shrink_utils.study.finetuning import finetune
from shrink_utils.study.notebooks import _run_notebook
from shrink_utils.study.own_task import _facts_of, _halves_of, _read_own_task
from shrink_utils.study.profiles import ARMS, Profile, RunConfig, used_precision
from shrink_utils.study.results import Result, _check_writable, _n_workers, _result_key, provenance
from shrink_utils.study.runs import Run, _kept_model, _model_card, run_configs, run_id
from shrink_utils.study.statistics import _two_way_variance
from shrink_utils.text import load_task
from shrink_utils.text.corpora import text_key
from shrink_utils.text.tasks import OWN, _own_folder, task_spec

DEFAULT_ARMS = ("prominent", "all", "isoscore")
# Those of the study; of all others 1.
WEIGHTS = dict(prominent=1.0, all=4.0, isoscore=0.3, spectral=0.3, cosine=0.03, sigreg=0.03)
PRODUCTS = "sentiment_products"
RECORD = "reference/cohort/correct.parquet"  # how far runs scatter, before there are any
LONGEST = 128  # tokens, unless more are asked for
READ_WHOLE = 0.95  # of the texts
FOREIGN, PIECES = 0.25, 3  # a share of words, each of so many pieces
MEMORY = 3 * 2**30  # bytes that a process may take
TRIED, START = 3, 30  # steps that are timed, seconds until processes have begun


@dataclass(frozen=True)
class OwnStudy:
    """A study that is planned: its runs, what was found of the texts, and where its answer goes."""

    title: str
    configs: list[RunConfig]
    profile: Profile  # its folder has the runs
    folder: Path
    facts: dict[str, str]
    notes: tuple[str, ...] = ()
    kept: tuple[RunConfig, ...] = ()  # whose models stay

    @property
    def missing(self) -> list[RunConfig]:
        """Runs that are still to be made."""
        runs = self.profile.folder / "runs"
        return [config for config in self.configs if not (runs / run_id(config)).exists()]

    def minutes(self) -> float:
        """How long the missing runs will take, by some steps that are made and timed here."""
        if not (missing := self.missing):
            return 0.0
        config, stamps = missing[-1], [time.perf_counter()]
        few = {"train_rows": TRIED * config.batch_size}
        few["eval_rows"] = config.batch_size + 4 * task_spec(config.task).n_labels
        tried = replace(config, epochs=1, **few)
        finetune(tried, on_row=lambda _: stamps.append(time.perf_counter()))
        step = min(np.diff(stamps[1:]), default=stamps[1] - stamps[0])
        rows = load_task(config.task, max_train=config.train_rows, max_eval=config.eval_rows)
        steps = config.epochs * math.ceil(len(rows["train"]) / config.batch_size)
        # A pass without gradients takes about a third of a step.
        steps += (config.epochs + 1) * len(rows["validation"]) / config.batch_size / 3
        workers = min(len(missing), _n_workers(self.profile.workers))
        return (START + (steps * step + stamps[1] - stamps[0]) * len(missing) / workers) / 60


def plan_own(
    texts: str | Path = "",
    *,
    profile: Profile,
    model: str = "minilm",
    arms: Sequence[str] = DEFAULT_ARMS,
    weights: Sequence[str] = (),
    seeds: int = 5,
    epochs: int = 3,
    batch_size: int = 64,
    learning_rate: float = 8e-5,
    max_length: int | None = None,
    keep: str | None = None,
    **of_task: object,
) -> OwnStudy:
    """Read a labelled file and plan its study; nothing is trained, and bad input leaves nothing.

    Parameters
    ----------
    texts
        A file of labelled texts. Without one it is the study's product reviews, with the runs of
        `profile`, and no other option counts.
    profile
        Where the study's own runs are.
    model
        A name of `load_encoder`, a hub id, or a folder.
    arms, weights
        Regularization terms of `ARMS`, and weights other than the study's: ``"all=2,4"``, or
        ``"0.5,1"`` for every arm. Of several weights one half of the validation rows chooses, and
        the other half judges.
    seeds, epochs, batch_size, learning_rate, max_length
        Of the trainings; `max_length` None reads 95 % of the texts whole, 128 tokens at most.
    keep
        An arm, or ``"none"``, whose first model stays, to be used.
    **of_task
        ``label``, ``text``, ``pair``, ``group``, ``valid``, ``kind`` and ``limit`` of
        `_read_own_task`.

    Raises
    ------
    FileNotFoundError, ValueError, OSError
        Anything of it cannot be: one sentence says what, and what to do.
    """
    if not str(texts):
        return _plan_products(profile)
    pairs = [("none", 1.0), *_weighted(arms, weights)]
    if seeds < 2:
        raise ValueError(f"seeds: {seeds}, expected 2 or more: one training shows no difference")
    if keep is not None:
        known_name("keep", "condition that is trained", keep, dict(pairs))
    first = RunConfig(  # which refuses what cannot be, before anything is read
        **dict(model=model, task=PRODUCTS, arm="none", seed=0, train_rows=None, eval_rows=None),
        **dict(epochs=epochs, batch_size=batch_size, max_length=LONGEST, weight_decay=8e-6),
        learning_rate=learning_rate,
        precision=used_precision(os.environ.get("SHRINK_PRECISION") or "auto"),
    )
    task = _read_own_task(Path(texts), batch_size=batch_size, **of_task)
    try:
        encoder = load_encoder(model)
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(str(error).replace("name:", "model:", 1)) from error
    max_length, cut, notes = _token_lengths(encoder, pd.concat(task.sides.values()), max_length)
    cores = psutil.cpu_count(logical=False) or 1
    room = psutil.virtual_memory().available // MEMORY
    home = replace(profile, name="own", base_seed=0, workers=max(1, min(cores, room)))
    rows = len(task.sides["validation"])
    _check_room(home.folder, len(pairs) * seeds * rows * (epochs + 1))
    task.save()
    own = replace(first, task=task.name, max_length=max_length)
    every = product(range(seeds), pairs)
    configs = [replace(own, seed=seed, arm=arm, weight=weight) for seed, (arm, weight) in every]
    key = _result_key([config.as_dict() for config in configs], keep, code=_code())
    return OwnStudy(
        title=Path(texts).name,
        configs=configs,
        profile=home,
        folder=home.folder / f"{task.name[len(OWN) :].rpartition('-')[0]}-{key[:12]}",
        facts=task.facts | cut | _promise(configs, _units_of(task.sides["validation"].group)),
        notes=(*task.notes, *notes),
        kept=tuple(c for c in configs if c.arm == keep and c.seed == 0),
    )


def _units_of(groups: pd.Series) -> float:
    """How many validation rows judge as these do, if rows of one group always agree (Kish)."""
    sizes = groups.value_counts()
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def _code() -> str:
    return code_hash(study=True) + _hash(PACKAGE.glob("study/own*.py"))


def _plan_products(profile: Profile) -> OwnStudy:
    """The study's product reviews, with the conditions and the runs of a profile."""
    model = profile.models[0]
    configs = [c for c in profile.runs() if (c.task, c.model) == (PRODUCTS, model)]
    rows = load_task(PRODUCTS, max_train=configs[0].train_rows, max_eval=configs[0].eval_rows)
    sides = {side: split.to_pandas() for side, split in rows.items()}
    facts = _facts_of(sides, task_spec(PRODUCTS).label_names)
    facts |= _promise(configs, len(sides["validation"]))
    folder = profile.folder / "own" / "products"
    return OwnStudy("the study's product reviews", configs, profile, folder, facts)


def _weighted(arms: Sequence[str], weights: Sequence[str]) -> list[tuple[str, float]]:
    """Every arm with each of its weights."""
    of = {known_name("arms", "arm", arm, ARMS): [WEIGHTS.get(arm, 1.0)] for arm in arms}
    of.pop("none", None)
    if not of:
        raise ValueError(f"arms: {' '.join(arms)!r}, expected one beside plain fine-tuning")
    given: dict[str, list[float]] = {}  # by arm; "" is every other one
    for one in weights:
        arm, _, numbers = str(one).rpartition("=")
        if arm in given:
            raise ValueError(f"weights: {one!r} is a second of its kind; write such as all=1,2")
        if arm:
            known_name("weights", "arm of --arms", arm, of)
        try:
            given[arm] = sorted({float(number) for number in numbers.split(",")})
        except ValueError:
            given[arm] = [math.nan]
        if not all(0 < weight < math.inf for weight in given[arm]):
            raise ValueError(f"weights: {one!r}, expected such as all=2,4")
    return [(arm, w) for arm, usual in of.items() for w in given.get(arm, given.get("", usual))]


def _token_lengths(
    encoder: Encoder, rows: pd.DataFrame, asked: int | None
) -> tuple[int, dict[str, str], list[str]]:
    """Tokens that are read of a text, how many texts are cut, and a note on a foreign language."""
    tokenizer, texts = encoder.tokenizer, list(rows.text)
    pairs = list(rows.text_pair) if rows.text_pair.notna().any() else None
    ids = tokenizer(texts, pairs, verbose=False)["input_ids"]
    lengths = np.array([len(one) for one in ids])
    most = min(encoder.max_length, LONGEST)
    fitting = min(most, 8 * math.ceil(np.quantile(lengths, READ_WHOLE) / 8))
    length = fitting if asked is None else asked
    if not 5 <= length <= encoder.max_length:
        least = f"expected 5 to {encoder.max_length} tokens of {encoder.name}"
        raise ValueError(f"max_length: {length}, {least}")
    # A pair is cut at both its texts, so that its first tokens do not tell what is read.
    read = len({tuple(one if pairs else one[: length - 1]) for one in ids})
    if 2 * read < (different := rows.text.map(text_key).nunique()):
        raise ValueError(
            f"text: {encoder.name} tells {read} of {different} texts apart, of which it reads "
            f"{length} tokens; take a longer --max-length, or a model of their language"
        )
    words = [word for text in texts[:1000] for word in WORD.findall(text) if word.isalpha()]
    pieces = tokenizer(words or ["a"], add_special_tokens=False, verbose=False)["input_ids"]
    unknown = tokenizer.unk_token_id
    foreign = np.mean([len(ids) >= PIECES or unknown in ids for ids in pieces])
    note = (
        f"text: the tokenizer of {encoder.name} cuts {100 * foreign:.0f} % of the words into "
        f"{PIECES} pieces or more, or does not know them (5 % in English); where it is not made "
        "for their language, take another model (--model)"
    )
    cut = {f"texts cut at {length} tokens": f"{(lengths > length).sum():,}"}
    return length, cut, [note] * bool(foreign > FOREIGN)


def _promise(configs: Sequence[RunConfig], n_rows: float) -> dict[str, str]:
    """What a study does and what it can find: facts that need no run."""
    conditions = {(c.arm, c.weight) for c in configs if c.arm != "none"}
    seeds, first = len({c.seed for c in configs}), configs[0]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "the processor"
    n_arms = len({arm for arm, _ in conditions})
    facts = {"runs": f"{len(configs)}: {seeds} seeds, each of plain and {n_arms} more"}
    facts["trained on"] = f"{device}, in {first.precision}"
    if not task_spec(first.task).is_regression:
        sizes = _expected_differences(n_rows, seeds, conditions)
        least, most = (100 * find(sizes.values()) for find in (min, max))
        told = " to ".join(dict.fromkeys([f"{least:.1f}", f"{most:.1f}"])) + " points"
        if most >= 100:
            told = "none, by so few seeds and rows"
        facts["smallest difference of accuracy to be found"] = told
    return facts


def _expected_differences(
    n_rows: float, n_seeds: int, conditions: Collection[tuple[str, float]]
) -> dict[tuple[str, float], float]:
    """The difference of accuracy that will be found about four times in five, by condition.

    Taken for it: a condition and plain fine-tuning scatter as its arm, at the nearest weight on
    record, did over twenty seeds and 599 rows of products (`RECORD`; all bars, where the arm is not
    on record), with the variance σ²ₛ/S + σ²ᵣ/R + σ²/(S R) of S seeds and R rows. Then it is
    `own_answer._smallest_difference`.
    """
    record = pd.read_parquet(data_dir() / RECORD).query("task == @PRODUCTS and epochs == 3")
    right = record.pivot(index=["arm", "weight", "seed"], columns="row", values="correct")
    sizes, n_compared = {}, len({arm for arm, _ in conditions})
    for arm, weight in conditions:
        of_arm = right.loc[arm if arm in right.index.levels[0] else "all"]
        near = min(of_arm.index.unique("weight"), key=lambda w: abs(math.log(w / weight)))
        pairs = of_arm.loc[near] - right.loc["none", 1.0]
        found, (seeds, rows) = _two_way_variance(pairs.to_numpy()), pairs.shape
        cells = found.seeds + found.rows - found.both
        variance = max(0.0, found.seeds - cells) * seeds / n_seeds
        variance += max(0.0, found.rows - cells) * rows / n_rows
        variance += cells * seeds * rows / (n_seeds * n_rows)
        size = rule._smallest_difference(math.sqrt(variance), n_seeds, n_compared)
        sizes[arm, weight] = size
    return sizes


def _check_room(folder: Path, n_vectors: int) -> None:
    """Raise an ``OSError`` for results that cannot be written, or that would fill the disk."""
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    _check_writable(there, "SHRINK_RESULTS_DIR")
    free, needed = shutil.disk_usage(there).free, n_vectors * 4 * 1024 + 2**29
    if free < needed:
        raise OSError(
            f"SHRINK_RESULTS_DIR: {there} has {free / 2**30:.1f} GiB left, and the study takes "
            f"{needed / 2**30:.1f}; name another, or lower --limit, --seeds or --epochs"
        )


# --- the answer ------------------------------------------------------------------------------


def run_own(study: OwnStudy) -> list[Run]:
    """The runs of a study: those that are there are loaded, the others made."""
    return run_configs(study.configs, study.profile, kept=study.kept or None)


def answer_own(study: OwnStudy, runs: Sequence[Run]) -> rule.OwnAnswer:
    """Compare every condition with plain fine-tuning, paired by seed and by validation row."""
    first = study.configs[0]
    rows = load_task(first.task, max_eval=first.eval_rows)["validation"]
    labels, groups = np.array(rows["label"]), _groups_of(first.task, rows)
    second, spec = _halves_of(labels, groups), task_spec(first.task)
    courses: dict[tuple[str, float], list[list[rule._Seen]]] = {}
    for run in runs:
        courses.setdefault((run.config.arm, run.config.weight), []).append(_epochs_seen(run))
    plain = [config for config in study.configs if config.arm == "none"]
    frozen = [_frozen(config, study.profile.folder / "frozen") for config in plain]
    found = rule._conditions(courses, frozen, labels, second, spec.metrics[0])
    what = "a regression" if spec.is_regression else f"{spec.n_labels} classes"
    n_rows = study.facts["rows"].partition(", a sample")[0]
    n = f"{n_rows} rows, {len(rows):,} of them to validate"
    head = f"On {study.title} ({n}, {what}, {len(plain)} seeds):"
    before = courses["none", plain[0].weight][0][0].vectors.double()
    share = float(anisotropy(before, k=1, center=True)[0])
    return rule.OwnAnswer(head, spec.metrics[0], share, found, groups)


def _groups_of(task: str, rows: Dataset) -> np.ndarray:
    """Units of the validation rows: the groups of one's own task, else equal texts."""
    if task.startswith(OWN):
        return pd.read_parquet(_own_folder(task) / "validation.parquet").group.to_numpy()
    return pd.factorize(np.array([text_key(text) for text in rows["text"]]))[0]


def _epochs_seen(run: Run) -> list[rule._Seen]:
    """What a run saw of the validation rows before training and after every epoch."""
    kept = run.embeddings
    vectors = torch.cat([kept["before"][None], kept["between"], kept["after"][None]])
    return [rule._Seen(*one) for one in zip(kept["outputs"], vectors, strict=True)]


def _frozen(config: RunConfig, folder: Path) -> rule._Seen:
    """The encoder as it is, with a linear head on its mean vectors; kept once it is fitted."""
    about = {name: getattr(config, name) for name in "model task max_length".split()}
    about["rows"] = [config.train_rows, config.eval_rows]
    about["seed"] = config.seed if config.train_rows else 0  # all rows are the same for all seeds
    result = Result(folder / _result_key(about, hub_revisions().get(config.model), code=_code()))

    def read(path: Path) -> rule._Seen:
        Result(path).verify()
        return rule._Seen(**load_file(path / "frozen.safetensors"))

    return result.load_or_compute(read, partial(_fit_frozen, config, result, about))


def _fit_frozen(config: RunConfig, result: Result, about: dict) -> None:
    since, encoder = time.perf_counter(), load_encoder(config.model, device="auto")
    spec, vectors = task_spec(config.task), {}
    most = {"max_train": config.train_rows, "max_eval": config.eval_rows}
    rows = load_task(config.task, **most, seed=config.seed)
    for side, split in rows.items():
        options = {"text_pairs": list(split["text_pair"])} if spec.is_pair else {}
        options |= {"layers": [-1], "pooling": "mean", "max_length": config.max_length}
        vectors[side] = hidden_states(encoder, list(split["text"]), **options)[0]
    x, asked = (vectors[side].double().numpy() for side in ("train", "validation"))
    labels, scaled = np.array(rows["train"]["label"]), StandardScaler()
    if spec.is_regression:
        head = make_pipeline(scaled, RidgeCV(np.logspace(0, 5, 11))).fit(x, labels)
        outputs = head.predict(asked)[:, None]
    else:
        head = make_pipeline(scaled, LogisticRegression(max_iter=2000))
        grid = {"logisticregression__C": np.logspace(-4, 0, 5)}
        chosen = GridSearchCV(head, grid, cv=3, scoring="neg_log_loss").fit(x, labels)
        outputs = chosen.predict_log_proba(asked)
    with result.save(about, since=since) as part:
        kept = rule._Seen(torch.tensor(outputs), vectors["validation"].contiguous())
        save_file(kept._asdict(), part / "frozen.safetensors")


# --- the command -----------------------------------------------------------------------------


def _own_command(profile: Profile, texts: Path, valid: Path | None = None, **given: object) -> None:
    """Tell the plan, make the runs, tell the answer, and write it with its chapter."""
    plt.switch_backend("agg")
    given |= {"valid": valid.absolute()} if valid else {}
    study = plan_own(texts.absolute(), profile=profile, **given)
    width = max(map(len, study.facts))
    print("\n".join(f"{name:{width}}  {fact}" for name, fact in study.facts.items()))
    print("".join(f"{note}\n" for note in study.notes), end="", flush=True)
    if missing := len(study.missing):
        minutes = f"about {study.minutes():.0f} min, by {TRIED} steps that were timed"
        print(f"{missing} of {len(study.configs)} runs are to be made: {minutes}", flush=True)
    runs = run_own(study)
    answer = answer_own(study, runs)
    print(f"\n{answer.head} {' '.join(answer.sentences)}\n")
    _write_own(study, answer, runs)
    chapter = study.folder / "14_your_own_task.ipynb"
    if not chapter.is_file():
        values = {"texts": texts.absolute(), **given}
        values = {k: str(v) if isinstance(v, Path) else v for k, v in values.items()}
        _run_notebook(home() / "notebooks" / chapter.name, chapter, parameters=values)
    print(f"Written: {study.folder}")


# --- what is written -------------------------------------------------------------------------


def _write_own(study: OwnStudy, answer: rule.OwnAnswer, runs: Sequence[Run]) -> None:
    """Write the answer, its table, its figure and a kept model: a folder that is whole or absent.

    No text of the user's is quoted.
    """
    if (result := Result(study.folder)).folder.exists():
        return
    config = {"title": study.title, "facts": study.facts}
    config["runs"] = [one.as_dict() for one in study.configs]
    use_house_style()
    figure = answer.figure()
    with result.save(config, since=time.perf_counter()) as part:
        (part / "answer.md").write_text(_page(study, answer), encoding="utf-8")
        answer.table.to_csv(part / "answer.csv")
        (part / "answer.png").write_bytes(_png(figure))
        figure.set_layout_engine("none")
        (part / "answer.svg").write_bytes(_svg(figure))
        plt.close(figure)
        for run in (run for run in runs if run.config in study.kept):
            folder = part / f"model-{run.config.arm}-{run.config.weight:g}"
            shutil.copytree(_kept_model(run), folder)
            if names := task_spec(run.config.task).label_names:
                about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
                about["id2label"] = dict(enumerate(names))
                about["label2id"] = {name: i for i, name in enumerate(names)}
                (folder / "config.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
            task, commit = answer.head.removeprefix("On ").rstrip(":"), run.provenance["commit"]
            card = _model_card(run.config, run.evaluations, commit, task=task)
            (folder / "README.md").write_text(card, encoding="utf-8")


def _rows_of_page(*rows: Sequence[object]) -> str:
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _page(study: OwnStudy, answer: rule.OwnAnswer) -> str:
    table = answer.shown().reset_index()
    facts = [(name, fact) for name, fact in study.facts.items() if name != "classes"]
    kept = "".join(
        f"\n\n`AutoModel.from_pretrained` loads the model kept in `model-{c.arm}-{c.weight:g}`."
        for c in study.kept
    )
    return f"""# {study.title}

**{answer.head}** {" ".join(answer.sentences)}

![Differences from plain fine-tuning, and the metric against the PC1 share](answer.png)

Means over seeds, with the verdict beside plain fine-tuning; answer.csv has the intervals.

{_rows_of_page(table.columns, ["---"] * len(table.columns), *table.to_numpy())}

{_rows_of_page(["", ""], ["---", "---"], *facts)}{kept}

Commit {provenance()["commit"]}; docs/book/use/own.md states the rule.
"""
