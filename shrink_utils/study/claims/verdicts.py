"""All claims in one table, which notebook 11 shows; and those of chapter 12, of several papers."""

from collections.abc import Iterator, Mapping

import pandas as pd

from shrink_utils.sources import data_dir
from shrink_utils.study.claims.brown import _brown_claims, generalization_claims, stitching_claims
from shrink_utils.study.claims.claim import (
    _as_table,
    _combined_table,
    _less,
    _per_seed,
    _with_model_name,
    claim,
)
from shrink_utils.study.claims.stl import (
    _clouds_claims,
    _frontier_table,
    _rajaee_claims,
    _stl_claims,
    _topology_claims,
)
from shrink_utils.study.claims.vazquez import _models_claims, _vazquez_claims, dynamics_claims
from shrink_utils.study.profiles import Profile
from shrink_utils.study.tables import (
    Tables,
    _graded_runs,
    _read_tables,
    _records_folder,
    _rows_of,
    named_by_epochs,
    read_objectives,
)

# Rows that ask other models and tasks what the cohort's first six hypotheses ask.
FOLLOWED = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
OF_RUNS = "stl:|mga:|topology:|rp:elongated"  # claims that need tables of runs alone
FURTHER = "models_"  # begins the name of a table on further models


def all_claims(profile: Profile, runs: Tables, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Test every claim of every paper.

    Parameters
    ----------
    profile : Profile
    runs : mapping
        The tables of its runs.
    tables : mapping
        What its chapters measured, by name.
    """
    stl, clouds, topology = _finetuning_claims(profile, runs)
    objectives = read_objectives()  # models whose tables are committed
    chapters = [
        stl,
        clouds,
        _vazquez_claims(tables["contextuality"], tables["corpus"]),
        *_models_claims(tables["models_contextuality"]),
        _brown_claims(tables["similarity"]),
        dynamics_claims(objectives),
        stitching_claims(objectives["stitches"]),
        generalization_claims(tables["generalization"]),
        _rajaee_claims(tables["after_finetuning"], tables["words_after_finetuning"]),
        _language_claims(tables),
        *_further_models_claims(tables),
        topology,
    ]
    return _combined_table(chapters)


def _finetuning_claims(profile: Profile, tables: Tables) -> list[pd.DataFrame]:
    """The claims that need no encoder, only tables of fine-tuning runs: STL, clouds, topology.

    Of the grid, and of the long runs, whose task is named with its epochs; the last ones also of
    the weight sweep.
    """
    once = [*profile.runs(), *profile.long_runs()]
    clouds, runs = named_by_epochs(_rows_of(tables["clouds"], once)), _graded_runs(profile, tables)
    topology = _topology_claims(_frontier_table(runs), weight=profile.weight)
    return [_stl_claims(runs.iloc[: len(clouds)]), _clouds_claims(clouds), topology]


def _recorded_claims(profile: Profile) -> pd.DataFrame:
    """The full-length table: every claim that a profile's runs on record can bear on.

    All are exploratory but the `FOLLOWED` of other profiles than ``cohort``. Of ``models`` also
    the committed ones of a whole study, whose measures are not on record.
    """
    claims = _combined_table(_finetuning_claims(profile, _read_tables(_records_folder(profile))))
    if profile.name == "models":
        kept = pd.read_csv(data_dir() / "reference" / profile.name / "claims.csv")
        return _combined_table([claims, kept[~kept.claim.str.match(OF_RUNS)]])
    fixed = claims.claim.str.fullmatch(f"stl:({'|'.join(FOLLOWED)}):.+:prominent")
    fixed &= profile.name != "cohort"
    return claims.assign(kind=claims.kind.where(fixed, claims.kind + ", exploratory"))


def _further_models_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Tables of chapters 08, 08b and 12 on every further model, if they are there."""
    further = {n.removeprefix(FURTHER): t for n, t in tables.items() if n.startswith(FURTHER)}
    models = further["similarity"].model.unique() if "similarity" in further else ()
    for model in models:
        of = {name: table[table.model == model] for name, table in further.items()}
        yield _with_model_name(_brown_claims(of["similarity"]), model)
        yield _rajaee_claims(of["after_finetuning"], of["words_after_finetuning"])
        yield _with_model_name(_language_claims(of), model)


# --- topology on language --------------------------------------------------------------------

# Chapter 12. The papers look at other encoders and at machine text; nothing here is their own test.


@_as_table
def _language_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[dict]:
    """From the measured tables of chapter 12 by their names."""
    attention = tables["language_attention"]
    # A text's class is found or not, by a probe that was fitted on other texts.
    for task, rows in attention[attention.measure == "hit"].groupby("task", sort=False):
        hits = {name: _per_seed(found, "value", "item") for name, found in rows.groupby("features")}
        for name, other in (("barcodes", "degree"), ("null", "shuffled")):
            yield claim(f"lang:attention-{name}", hits["barcode"] - hits[other], task=task)
    # Dimensions can be infinite: −1/d keeps their order. Of the last layer, as in the paper.
    ph = tables["language_dimension"].query("measure == 'ph'")
    ph = ph[ph.pieces == ph.pieces.max()]
    ph = ph[ph.layer == ph.layer.max()]
    kinds = ph.assign(value=-1 / ph.value).groupby("kind")
    kinds = {kind: _per_seed(rows, "value", "item") for kind, rows in kinds}
    for kind in ("shuffled", "sampled"):
        yield claim(f"lang:dimension-{kind}", kinds["text"] - kinds[kind])
    divergence = tables["language_divergence"]
    moved = divergence[(divergence.pair == "finetuned") & (divergence.measure == "rtd")]
    moved = moved[moved.layer == moved.layer.max()]
    prominent, none = (moved[moved.arm == arm] for arm in ("prominent", "none"))
    yield claim("lang:rtd-smaller", _less(prominent, none, "value"))
    lives = tables["language_lifetimes"]
    lives = lives[lives.measure == "lifetime"].groupby("cloud")
    lives = {cloud: _per_seed(rows, "value", "item") for cloud, rows in lives}
    for cloud in ("shuffled", "random"):
        yield claim(f"lang:neighbours-live-longer-{cloud}", lives["encoder"] - lives[cloud])


@_as_table
def machine_text_claims(table: pd.DataFrame) -> Iterator[dict]:
    """The same on text that a raw decoder wrote, from the record of profile `models`.

    It alone installs one. The row was written down before the decoder wrote anything
    (docs/preregistration.md).
    """
    table = table.assign(value=-1 / table.ph)
    human, machine = (table[table.kind == kind] for kind in ("human", "machine"))
    yield claim("lang:dimension-machine", _less(human, machine, "value", "text"))
