"""The rules, where the integral is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.training.dynamics import RULES, loss_change

X, Y = (0.3, -1.0, 2.0, 0.7), (1.1, 0.4, -0.5, 0.7)


def _theta(changes, rule):
    """Contribution of the parameter that matters; it stands before the ignored one."""
    assert changes.blocks.parameter.tolist() == ["theta", "ignored"]
    assert changes.values[rule][0, 1] == 0
    return float(changes.values[rule][0, 0])


def _exact(model):
    x, y = torch.tensor([X, Y], dtype=torch.float64)
    return float((model.c * (y**model.power - x**model.power)).sum())


def _changes(model, **options):
    return loss_change(model, model.loss, model.weights(*X), model.weights(*Y), **options)


def test_the_trapezoid_is_exact_for_a_quadratic_loss_and_euler_is_not(power):
    model = power(2)
    changes = _changes(model, rules=("euler", "trapezoid"))
    assert changes.change == pytest.approx(_exact(model), rel=1e-12)
    assert _theta(changes, "trapezoid") == pytest.approx(_exact(model), rel=1e-12)
    # Euler misses the second-order term Σ c Δ².
    second = sum(c * (y - x) ** 2 for c, x, y in zip(model.c.tolist(), X, Y, strict=True))
    assert _theta(changes, "euler") == pytest.approx(_exact(model) - second, rel=1e-12)
    assert changes.closure("trapezoid") < 1e-12
    assert changes.closure("euler") == pytest.approx(abs(second / _exact(model)), rel=1e-9)


def test_simpson_is_exact_for_a_cubic_loss_and_the_trapezoid_misses_half_the_third_order(power):
    model = power(3)
    changes = _changes(model, rules=("trapezoid", "simpson"))
    assert _theta(changes, "simpson") == pytest.approx(_exact(model), rel=1e-12)
    # ∫ 3cθ²Δ by two nodes: the error of the trapezoid is (1/12) f'' = c Δ³ / 2.
    third = sum(c * (y - x) ** 3 / 2 for c, x, y in zip(model.c.tolist(), X, Y, strict=True))
    assert _theta(changes, "trapezoid") == pytest.approx(_exact(model) + third, rel=1e-12)


def test_simpson_is_exact_to_the_quartic_and_not_beyond(power):
    error = {
        p: abs(_theta(_changes(power(p), rules=("simpson",)), "simpson") - _exact(power(p)))
        for p in (4, 6)
    }
    # (1/2880) f'''' of 4cθ³Δ is 0; of 6cθ⁵Δ it is not.
    assert error[4] < 1e-12 < 1e-3 < error[6]


def test_adaptive_splitting_halves_until_the_tolerance_holds(power):
    model = power(9)
    pieces = []
    for tolerance in (1.0, 1e-2, 1e-4):
        changes = _changes(model, rules=("adaptive",), tolerance=tolerance, max_pieces=500)
        assert abs(_theta(changes, "adaptive") - _exact(model)) <= tolerance
        pieces.append(int(changes.pieces[0]))
    assert 1 < pieces[0] < pieces[1] < pieces[2]


def test_adaptive_splitting_is_simpsons_rule_where_that_is_good_enough(power):
    changes = _changes(power(3), rules=("simpson", "adaptive"))
    assert changes.pieces.tolist() == [1]
    assert changes.gradients == 3
    np.testing.assert_array_equal(changes.values["adaptive"], changes.values["simpson"])


def test_adaptive_splitting_ends_at_the_number_of_pieces(power):
    changes = _changes(power(9), rules=("adaptive",), tolerance=0.0, max_pieces=4)
    assert changes.pieces.tolist() == [4]
    assert changes.gradients == 9  # nodes at the ends and the middles of 4 pieces


def test_rules_share_their_gradients(power):
    assert _changes(power(2), rules=("euler", "trapezoid")).gradients == 2
    assert _changes(power(2), rules=("euler", "trapezoid", "simpson")).gradients == 3


def test_no_change_has_no_closure(power):
    model = power(2)
    still = loss_change(model, model.loss, model.weights(*X), model.weights(*X))
    assert still.change == 0 and still.values["trapezoid"].sum() == 0
    assert np.isnan(still.closure("trapezoid"))


@pytest.mark.parametrize("rules", [(), ("midpoint",), ("euler", "Simpson")])
def test_unknown_rules_are_refused(power, rules):
    with pytest.raises(ValueError, match=f"rules: .*{RULES[0]}"):
        _changes(power(2), rules=rules)
