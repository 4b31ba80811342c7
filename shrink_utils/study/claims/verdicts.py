"""All claims of the study in one table: what notebook 11 shows and `make reproduce` ends with."""

from collections.abc import Iterator, Mapping

import pandas as pd

from shrink_utils.study.ablation import frontier_table
from shrink_utils.study.cached_table import load_cached
from shrink_utils.study.claims.brown import brown_claims, generalization_claims, stitching_claims
from shrink_utils.study.claims.claim import combined_table, with_model_name
from shrink_utils.study.claims.clouds import clouds_claims, measure_clouds
from shrink_utils.study.claims.rajaee import rajaee_claims
from shrink_utils.study.claims.rewards import topology_claims
from shrink_utils.study.claims.stl import add_best_epoch, stl_claims
from shrink_utils.study.claims.text_topology import language_claims
from shrink_utils.study.claims.vazquez import dynamics_claims, models_claims, vazquez_claims
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs import Run
from shrink_utils.study.scheduling import run_grid, run_sweep
from shrink_utils.study.tables import (
    add_correctness,
    correct_rows,
    evaluations,
    read_objectives,
    summarize,
)

FURTHER = "models_"  # begins the name of a table on further models
# Tables that chapters measure and keep, by their names; the second ones also of further models.
MEASURED = "contextuality corpus models_contextuality generalization".split()
OF_MODELS = """similarity after_finetuning words_after_finetuning language_attention
language_dimension language_divergence language_lifetimes""".split()


def tables_of(profile: Profile) -> list[str]:
    """Names of the measured tables that the claims of a profile rest on beside its runs."""
    further = [f"{FURTHER}{name}" for name in OF_MODELS] if len(profile.models) > 1 else []
    return [*MEASURED, *OF_MODELS, *further]


def all_claims(profile: Profile) -> pd.DataFrame:
    """Test every claim of every paper on the runs, and on what the chapters measured.

    Raises
    ------
    FileNotFoundError
        A chapter has not measured its table, as profile and code are now.
    """
    tables = {name: load_cached(name)(profile) for name in tables_of(profile)}
    return claims_from(run_grid(profile), run_sweep(profile), tables, weight=profile.weight)


def claims_of_models_from_nothing(profile: Profile) -> pd.DataFrame:
    """Those of chapters 09, 09b and 10, which need no encoder and no runs.

    Raises
    ------
    FileNotFoundError
        Chapter 09b has not measured its table, as profile and code are now.
    """
    generalization = generalization_claims(load_cached("generalization")(profile))
    return combined_table([*claims_on_objectives(), generalization])


def claims_on_objectives() -> list[pd.DataFrame]:
    """Those on models whose tables are committed: loss changes and stitching."""
    tables = read_objectives()
    return [dynamics_claims(tables), stitching_claims(tables["stitches"])]


def claims_from(
    grid: list[Run], swept: list[Run], tables: Mapping[str, pd.DataFrame], *, weight: float
) -> pd.DataFrame:
    """The claims that runs and the tables of `tables_of` support, wherever these come from.

    Parameters
    ----------
    grid, swept : list of Run
        The profile's grid and weight sweep.
    weight : float
        Of the grid's runs.
    """
    every = [*grid, *swept]
    runs = add_best_epoch(
        add_correctness(summarize(every), correct_rows(every)), evaluations(every)
    )
    stl, clouds, topology = finetuning_claims(
        runs.iloc[: len(grid)], runs, measure_clouds(grid), weight=weight
    )
    chapters = [
        stl,
        clouds,
        vazquez_claims(tables["contextuality"], tables["corpus"]),
        *models_claims(tables["models_contextuality"]),
        brown_claims(tables["similarity"]),
        *claims_on_objectives(),
        generalization_claims(tables["generalization"]),
        rajaee_claims(tables["after_finetuning"], tables["words_after_finetuning"]),
        language_claims(tables),
        *further_models_claims(tables),
        topology,
    ]
    return combined_table(chapters)


def finetuning_claims(
    grid: pd.DataFrame, every: pd.DataFrame, clouds: pd.DataFrame, *, weight: float
) -> list[pd.DataFrame]:
    """The claims that need no encoder, only tables of fine-tuning runs: STL, clouds, topology.

    Parameters
    ----------
    grid, every : DataFrame
        Of `summarize`, `add_correctness` and `add_best_epoch`: the grid's runs, and these with the
        weight sweep's.
    clouds : DataFrame
        Of `measure_clouds`, of the grid's runs.
    weight : float
        Of the grid's runs.
    """
    topology = topology_claims(frontier_table(every), weight=weight)
    return [stl_claims(grid), clouds_claims(clouds), topology]


def further_models_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Tables of chapters 08, 08b and 12 on every further model, if they are there."""
    further = {n.removeprefix(FURTHER): t for n, t in tables.items() if n.startswith(FURTHER)}
    models = further["similarity"].model.unique() if "similarity" in further else ()
    for model in models:
        of = {name: table[table.model == model] for name, table in further.items()}
        yield with_model_name(brown_claims(of["similarity"]), model)
        yield rajaee_claims(of["after_finetuning"], of["words_after_finetuning"])
        yield with_model_name(language_claims(of), model)
