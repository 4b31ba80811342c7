"""Verdicts on training dynamics, on planted records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.claims.dynamics import dynamics_claims
from shrink_utils.study.dynamics.hurting_steps import COUNTED
from shrink_utils.study.dynamics.stability import profile_correlations, profiles_of

STEPS = 20


def _record(objective: str, seed: int, hurt: dict[str, int], embedding: float) -> pd.DataFrame:
    """A run of which each component hurts at so many last steps but `seed`, of either gradient."""
    rows = []
    for rule in ("trapezoid", "batch"):
        for step in range(1, STEPS + 1):
            for component in COUNTED:
                hurts = STEPS - hurt.get(component, 0) < step <= STEPS - seed
                value = 0.001 * (1 + seed) if hurts else -0.01
                rows.append((rule, step, 1, component, value))
            rows.append((rule, step, 0, "embedding", -embedding))
    record = pd.DataFrame(rows, columns=["rule", "step", "layer", "component", "value"])
    record = record.assign(quantity="allocation", stack="", head=-1, counted=True)
    change = record[record.rule == "trapezoid"].value.sum() * (1 + 0.002 * seed)
    loss = pd.DataFrame({"step": [0, STEPS], "value": [5.0, 5.0 + change]}).assign(
        quantity="loss", rule="", stack="", layer=-1, component="", head=-1, counted=False
    )
    return pd.concat([record, loss]).assign(objective=objective, seed=seed)


def _dynamics():
    """As V found it: keys and queries hurt in language models, and longest in masked LM."""
    hurt = {
        "mlm": {"key": 12, "query": 12},
        "clm": {"key": 12, "query": 12, "value": 6},
        "mt": {"value": 14, "out": 14, "W2": 14},
    }
    return pd.concat(
        _record(objective, seed, hurt[objective], 0.5 if objective == "mlm" else 0.05)
        for objective in hurt
        for seed in (0, 1, 2)
    )


def _stability(spread: float = 0.01):
    rng = np.random.default_rng(0)
    base = {(layer, c): 1 + i for i, c in enumerate(COUNTED) for layer in (1, 2)}
    rows = [
        (source, size, seed, layer, c, 100, -value - spread * rng.normal())
        for source in ("movies", "editorials")
        for size in (10, 20)
        for seed in (0, 1, 2)
        for (layer, c), value in base.items()
    ]
    columns = ["source", "size", "seed", "layer", "component", "parameters", "value"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture
def table():
    return dynamics_claims(_dynamics(), _stability()).set_index("claim")


def test_ids_are_unique_and_every_row_has_its_noise_floor(table):
    assert table.index.is_unique and table.index.str.startswith("v:lca-").all()
    assert table.floor.notna().all() and (table.n == 3).all() and set(table.unit) == {"seeds"}


def test_keys_and_queries_are_tested_against_their_even_third(table):
    row = table.loc["v:lca-attention-mlm-fixed"]
    assert row.estimate == pytest.approx(1 - 1 / 3) and row.verdict == "replicated"
    assert row.published == pytest.approx(3620 / 3650 - 1 / 3, abs=1e-6)
    assert table.loc["v:lca-attention-mt-batch"].estimate == pytest.approx(-1 / 3)
    assert table.loc["v:lca-attention-mt-batch"].verdict == "replicated"
    # (12 + 12) of 30 steps, 22 of 27 and 20 of 24 for the later seeds
    shares = [(24 - 2 * s) / (30 - 3 * s) for s in (0, 1, 2)]
    clm = table.loc["v:lca-attention-clm-fixed"]
    assert clm.estimate == pytest.approx(np.mean(shares) - 1 / 3)
    gaps = [
        abs(a - b)
        for a, b in ((shares[0], shares[1]), (shares[0], shares[2]), (shares[1], shares[2]))
    ]
    assert clm.floor == pytest.approx(np.mean(gaps))


def test_the_last_step_is_compared_seed_by_seed(table):
    row = table.loc["v:lca-lasting-clm-fixed"]
    assert row.estimate == 0 and row.verdict == "inconclusive"
    assert row.published == pytest.approx((59727 - 1072) / 125000)


def test_shares_of_embeddings_are_tested_against_one_half(table):
    assert table.loc["v:lca-embeddings-mlm"].verdict == "replicated"
    assert table.filter(like="v:lca-embeddings-", axis=0).published.isna().all()  # in no paper
    row = table.loc["v:lca-embeddings-clm"]
    expected = []
    for seed in (0, 1, 2):
        hurting = 30 - 3 * seed  # of 120 block-steps
        others = 0.01 * (120 - hurting) - 0.001 * (1 + seed) * hurting
        expected.append(1.0 / (1.0 + others))  # embeddings: 20 steps of 0.05
    assert row.estimate == pytest.approx(np.mean(expected) - 0.5)
    assert row.verdict == "replicated"


def test_the_closure_is_tested_against_one_percent(table):
    errors = [abs(1 / (1 + 0.002 * seed) - 1) for seed in (0, 1, 2)]
    row = table.loc["v:lca-closure-mt"]
    assert row.estimate == pytest.approx(np.mean(errors) - 0.01)
    assert row.verdict == "replicated"


def test_profiles_that_do_not_depend_on_the_text_are_stable(table):
    for differs in ("size", "source"):
        row = table.loc[f"v:lca-stable-{differs}"]
        assert row.verdict == "replicated" and abs(row.estimate) < 0.01


def test_profiles_that_depend_on_the_domain_are_not():
    changed = _stability()
    there = changed.source == "movies"
    changed.loc[there, "value"] = changed.loc[there, "value"].to_numpy()[::-1]
    table = dynamics_claims(_dynamics(), changed).set_index("claim")
    assert table.loc["v:lca-stable-source"].verdict == "not replicated"
    assert table.loc["v:lca-stable-size"].verdict == "replicated"


def test_correlations_are_of_pairs_that_differ_in_one_thing():
    found = profile_correlations(_stability())
    assert found.differs.value_counts().to_dict() == {"seed": 12, "size": 6, "source": 6}
    assert (found[found.differs == "seed"].seed == -1).all()
    profiles = profiles_of(_stability())
    assert profiles.shape == (12, 12)
    np.testing.assert_allclose(profiles.sum(axis=1), 1)
    x = profiles.loc[("movies", 10, 1)]
    y = profiles.loc[("editorials", 10, 1)]
    pair = found[(found.differs == "source") & (found.seed == 1)].r
    assert np.isclose(pair, np.corrcoef(x, y)[0, 1]).any()
