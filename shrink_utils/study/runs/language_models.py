"""The small causal language models that notebook 09 stitches together and compares by size."""

from __future__ import annotations

from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.scratch import scratch_config
from shrink_utils.training import ScratchConfig

__all__ = ["language_model"]


def language_model(profile: Profile, *, seed: int, **changes: object) -> ScratchConfig:
    """A causal language model of the profile, with vocabulary and steps of its ``[stitching]``.

    B stitch and compare causal models. They learn from every token, a masked model from some: where
    training is short they know more at the end of it, and a stitch has something to lose.

    Parameters
    ----------
    profile : Profile
    seed : int
        Of the initial weights.
    **changes
        Fields of `ScratchConfig`, such as the activation, or width and depth.
    """
    sizes = {"vocabulary": profile.stitching.vocabulary, "steps": profile.stitching.model_steps}
    given = {name: size for name, size in sizes.items() if size is not None}
    return scratch_config(profile, "clm", seed=seed, **{**given, **changes})
