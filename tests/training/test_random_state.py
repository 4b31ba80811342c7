"""A training leaves the global generators as they were."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from shrink_utils.training.arguments import random_state_kept


def _drawn() -> tuple[float, float, float]:
    return random.random(), np.random.random(), torch.rand(1).item()


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def test_all_three_go_on_where_they_were_even_after_an_error():
    _seed(1)
    expected = _drawn()
    _seed(1)
    with pytest.raises(KeyError), random_state_kept():
        _seed(2)
        _drawn()
        raise KeyError
    assert _drawn() == expected
