"""V's claims on made-up encoders of which the truth is known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.claims.two_encoders import encoder_pairs, two_encoders_claims
from shrink_utils.study.dynamics.two_encoders import KEYS, SIMILARITIES

AVG_SIM = {"mlm": (0.1, 0.2, 0.3, 0.4), "mt": (0.5, 0.5, 0.5, 0.9)}  # as V describe them
ALIKE = {"mlm": 0.8, "mt": 0.7, "between": 0.4}
GAIN = {"none": 0.0, "orthogonal": 0.05, "affine": 0.2}


def _table(avg_sim=AVG_SIM, alike=ALIKE, gain=GAIN, seeds=range(3), noise=0.004):
    rng, rows = np.random.default_rng(0), []
    names = [(objective, seed) for objective in AVG_SIM for seed in seeds]
    for name in names:
        for layer, value in enumerate(avg_sim[name[0]]):
            rows.append(("avg_sim", *name, "", -1, "", layer, value + noise * rng.normal()))
    for front, back in permutations(names, 2):
        if front[0] == back[0] or front[0] == "mlm":
            relation = front[0] if front[0] == back[0] else "between"
            closer = 0.3 * (front[1] == back[1])  # what begins alike is no pair of the claims
            for measure in SIMILARITIES:
                for name, added in gain.items():
                    for layer in range(4):
                        value = alike[relation] + closer + added + noise * rng.normal()
                        rows.append((measure, *front, *back, name, layer, value))
    return pd.DataFrame(rows, columns=KEYS)


def _claims(**changes):
    return two_encoders_claims(_table(**changes)).set_index("claim")


EXPECTED = {
    "embedding": 0.4,
    "mt-jump": 0.4,
    "jump": 0.4,
    "mlm-rises": 0.3,
    "mlm-gradual": 0.1 - 0.15,
    **{f"differ-{m}": 0.4 - 0.75 for m in ("rsa", "pwcca", "cka")},
    **{f"affine-{m}": 0.2 for m in ("rsa", "pwcca", "cka")},
    "orthogonal-rsa": 0.05,
}


def test_what_v_describe_is_replicated():
    found = _claims()
    assert set(found.index) == {f"v:encoders-{name}" for name in EXPECTED}
    for name, value in EXPECTED.items():
        row = found.loc[f"v:encoders-{name}"]
        assert row.estimate == pytest.approx(value, abs=0.02), name
        assert row.verdict == "replicated", name
    assert set(found.n) == {3} and set(found.unit) == {"seeds"}
    assert found.floor.between(0, 0.03, inclusive="neither").all()


def test_the_opposite_is_not_replicated():
    turned = {"mlm": AVG_SIM["mt"], "mt": AVG_SIM["mlm"]}
    found = _claims(avg_sim=turned, alike={"mlm": 0.4, "mt": 0.4, "between": 0.7})
    for name in ("embedding", "jump", "mlm-gradual", "differ-cka"):
        assert found.verdict[f"v:encoders-{name}"] == "not replicated"


def test_a_fall_at_the_first_layer_is_no_rise_at_the_last():
    falls = {"mlm": AVG_SIM["mlm"], "mt": [0.5, 0.1, 0.15, 0.16]}
    found = _claims(avg_sim=falls)
    assert found.estimate["v:encoders-mt-jump"] == pytest.approx(0.01 - 0.05, abs=0.02)
    assert found.verdict["v:encoders-mt-jump"] == "not replicated"


def test_without_a_difference_nothing_is_claimed():
    found = _claims(avg_sim={"mlm": AVG_SIM["mt"], "mt": AVG_SIM["mt"]}, noise=0.05)
    for name in ("embedding", "jump"):
        assert found.verdict[f"v:encoders-{name}"] == "inconclusive"


def test_encoders_of_one_start_are_a_relation_of_their_own():
    pairs = encoder_pairs(_table())
    counts = pairs.groupby("relation")[["front_seed", "back_seed"]].apply(
        lambda rows: len(rows.drop_duplicates())
    )
    assert counts.to_dict() == {"mlm": 6, "mt": 6, "between": 6, "same start": 3}
    start = pairs[pairs.relation == "same start"]
    assert (start.front != start.back).all() and (start.front_seed == start.back_seed).all()
