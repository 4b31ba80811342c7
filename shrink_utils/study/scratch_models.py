"""Models that chapters train from nothing, as a profile describes them."""

from dataclasses import asdict

from shrink_utils.study.profiles import SEED_STEP, Profile
from shrink_utils.training import ScratchConfig


def scratch_config(
    profile: Profile, objective: str, *, seed: int = 0, **changes: object
) -> ScratchConfig:
    """The profile's pretraining under one objective.

    Parameters
    ----------
    profile : Profile
    objective : str
        ``"mlm"`` or ``"clm"``.
    seed : int
        Of the initial weights. The study's base seed shifts it, and the order of the data.
    **changes
        Fields of `ScratchConfig` that are to differ from the profile's.
    """
    shift = SEED_STEP * profile.base_seed
    values = asdict(profile.pretraining)
    del values["seeds"]
    values |= {"seed": shift + seed, "data_seed": shift, "threads": profile.threads}
    return ScratchConfig(objective=objective, **{"source": "all", **values, **changes})


def dynamics_config(
    profile: Profile, objective: str, *, seed: int = 0, **changes: object
) -> ScratchConfig:
    """The short training that is followed: the profile's trunk, and the sizes of its ``dynamics``.

    `seed` is one of ``profile.pretraining.seeds``; `changes` are fields of `ScratchConfig`.
    """
    names = ("steps", "batch_size", "learning_rate", "max_length", "vocabulary")
    values = {name: getattr(profile.dynamics, name) for name in names} | changes
    return scratch_config(profile, objective, seed=seed, **values)
