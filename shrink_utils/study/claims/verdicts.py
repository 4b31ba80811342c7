"""All claims of the study in one table: what notebook 11 shows and `make reproduce` ends with."""

from collections.abc import Iterator, Mapping

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.ablation import frontier_table
from shrink_utils.study.claims.brown import brown_claims, generalization_claims, stitching_claims
from shrink_utils.study.claims.claim import combined_table, with_model_name
from shrink_utils.study.claims.clouds import clouds_claims
from shrink_utils.study.claims.rajaee import rajaee_claims
from shrink_utils.study.claims.rewards import topology_claims
from shrink_utils.study.claims.stl import stl_claims
from shrink_utils.study.claims.text_topology import language_claims
from shrink_utils.study.claims.vazquez import dynamics_claims, models_claims, vazquez_claims
from shrink_utils.study.profiles import Profile
from shrink_utils.study.tables import (
    Tables,
    graded_runs,
    missing_runs,
    named_by_epochs,
    read_objectives,
    read_tables,
    records_folder,
    rows_of,
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
    stl, clouds, topology = finetuning_claims(profile, runs)
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


def claims_on_objectives() -> list[pd.DataFrame]:
    """Those on models whose tables are committed: loss changes and stitching."""
    tables = read_objectives()
    return [dynamics_claims(tables), stitching_claims(tables["stitches"])]


def finetuning_claims(profile: Profile, tables: Tables) -> list[pd.DataFrame]:
    """The claims that need no encoder, only tables of fine-tuning runs: STL, clouds, topology.

    Of the grid, and of the long runs, whose task is named with its epochs; the last ones also of
    the weight sweep.
    """
    once = [*profile.runs(), *profile.long_runs()]
    clouds, runs = named_by_epochs(rows_of(tables["clouds"], once)), graded_runs(profile, tables)
    topology = topology_claims(frontier_table(runs), weight=profile.weight)
    return [stl_claims(runs.iloc[: len(clouds)]), clouds_claims(clouds), topology]


def recorded_claims(profile: Profile) -> pd.DataFrame:
    """The full-length table: every claim that a profile's runs on record can bear on.

    All are exploratory but the `FOLLOWED` of other profiles than ``cohort``. Of ``models`` also
    the committed ones of a whole study, whose measures are not on record.

    Raises
    ------
    ValueError
        A run of the profile is not on record: nobody looks before that.
    """
    if missing := missing_runs(profile):
        raise ValueError(
            f"{len(missing)} runs are not on record, such as {missing[0].label}; "
            f"`python -m shrink_utils --profile {profile.name} record --run` computes them"
        )
    claims = combined_table(finetuning_claims(profile, read_tables(records_folder(profile))))
    if profile.name == "models":
        kept = pd.read_csv(data_dir() / "reference" / profile.name / "claims.csv")
        return combined_table([claims, kept[~kept.claim.str.match(OF_RUNS)]])
    fixed = claims.claim.str.fullmatch(f"stl:({'|'.join(FOLLOWED)}):.+:prominent")
    fixed &= profile.name != "cohort"
    return claims.assign(kind=claims.kind.where(fixed, claims.kind + ", exploratory"))


def further_models_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Tables of chapters 08, 08b and 12 on every further model, if they are there."""
    further = {n.removeprefix(FURTHER): t for n, t in tables.items() if n.startswith(FURTHER)}
    models = further["similarity"].model.unique() if "similarity" in further else ()
    for model in models:
        of = {name: table[table.model == model] for name, table in further.items()}
        yield with_model_name(brown_claims(of["similarity"]), model)
        yield rajaee_claims(of["after_finetuning"], of["words_after_finetuning"])
        yield with_model_name(language_claims(of), model)
