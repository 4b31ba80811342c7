"""Penalties: what holds for all of them, then each against geometry and by hand."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.optim.swa_utils import AveragedModel

from shrink_utils.geometry import avg_sim, effective_rank, iso_score
from shrink_utils.topology import (
    BarcodeRegularizer,
    h0_barcode,
    persistent_entropy,
    prominent_features,
)
from shrink_utils.training.penalties import (
    PENALTIES,
    AverageCosine,
    IsoScoreStar,
    RankedBars,
    Regrouped,
    SIGReg,
    SpectralEntropy,
)
from tests.topology.conftest import gaussian
from tests.training.conftest import OPTIONS


class SameDirections(SIGReg):
    """SIGReg that draws the same directions each time, so that two values can be compared."""

    def _value(self, cloud):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return super()._value(cloud)


each_penalty = pytest.mark.parametrize(
    "penalty_class", [AverageCosine, IsoScoreStar, SpectralEntropy, SameDirections]
)


@pytest.fixture
def cloud():
    """One class: 12 anisotropic rows off the origin, float64 (12, 5)."""
    return gaussian(12, 5) * torch.tensor([3.0, 1.0, 1.0, 0.5, 0.2]) + 0.7


@pytest.fixture
def batch():
    """Rows of three classes, float64 (24, 6), that wait for a gradient, and their labels."""
    embeddings = gaussian(24, 6, seed=1) * torch.linspace(0.2, 2.0, 6) + 0.3
    return embeddings.requires_grad_(), torch.arange(24) % 3


@each_penalty
def test_classes_are_summed_one_term_each(penalty_class, batch):
    embeddings, labels = batch
    out = penalty_class(weight=0.3)(embeddings, labels)
    assert out.classes.tolist() == [0, 1, 2]
    assert len(set(out.values.tolist())) == 3
    torch.testing.assert_close(out.loss, 0.3 * out.values.sum())


@each_penalty
def test_gradcheck(penalty_class, batch):
    embeddings, labels = batch
    penalty = penalty_class(weight=0.7)
    if penalty_class is IsoScoreStar:  # what carries no gradient must not move with the rows
        penalty(embeddings.detach().flip(1) + 1.0, labels)
        penalty.degrees += 10**15
    penalty.eval()
    fast = {"fast_mode": penalty_class is SameDirections}  # of many directions
    assert torch.autograd.gradcheck(lambda x: penalty(x, labels).loss, embeddings, **fast)


@each_penalty
def test_unit_and_rotation_do_not_matter(penalty_class, batch):
    embeddings, labels = batch
    rotated = embeddings @ torch.linalg.qr(gaussian(6, 6, seed=2)).Q
    loss, _, expected = penalty_class()(embeddings, labels)
    (of_plain,) = torch.autograd.grad(loss, embeddings)
    others = [] if penalty_class is SameDirections else [rotated]  # its directions stay
    for unit in (1e3, 1e-3, 1e200, 1e-200):  # squares of the last two leave float64
        others.append(unit * embeddings)
    for same in others:
        found = penalty_class()(same, labels)
        torch.testing.assert_close(found.values, expected, rtol=1e-9, atol=1e-12)
        (gradient,) = torch.autograd.grad(found.loss, embeddings, retain_graph=True)
        torch.testing.assert_close(gradient, of_plain, rtol=1e-9, atol=1e-12)


@each_penalty
@pytest.mark.filterwarnings("ignore:.* no class of the first batch")
@pytest.mark.parametrize("n", [0, 1, 2, 3])
# Duplicated, collinear, zero.
@pytest.mark.parametrize("factors", [(1, 1, 1), (1, 2, 3), (0, 0, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tiny_and_flat_classes_have_a_defined_result(penalty_class, n, factors, dtype):
    rows = torch.outer(torch.tensor(factors[:n]).double(), gaussian(1, 4)[0])
    embeddings = rows.to(dtype).requires_grad_()
    out = penalty_class()(embeddings)
    out.loss.backward()
    assert out.loss.isfinite() and out.values.isfinite().all()
    assert embeddings.grad.isfinite().all()
    if n < 2:
        assert (out.loss.item(), embeddings.grad.abs().sum()) == (0.0, 0.0)


def test_the_average_cosine_is_the_mean_over_pairs_whatever_their_lengths(cloud):
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], dtype=torch.float64)
    assert AverageCosine()(rows).values.item() == pytest.approx((0 + 2 * 0.5**0.5) / 3)
    lengths = torch.linspace(0.1, 5.0, len(cloud), dtype=torch.float64)[:, None]
    for same in (cloud, lengths * cloud):
        assert AverageCosine()(same).values.item() == pytest.approx(avg_sim(cloud).value, abs=1e-12)
    assert AverageCosine()(cloud + 100.0).values.item() > 0.99  # a shift matters


def test_a_zero_row_counts_as_orthogonal_to_all_and_does_not_move(cloud):
    rows = torch.cat([cloud, torch.zeros(1, 5)]).requires_grad_()
    out = AverageCosine()(rows)
    out.loss.backward()
    n = len(cloud)
    assert out.values.item() == pytest.approx(avg_sim(cloud).value * (n - 1) / (n + 1), abs=1e-12)
    assert rows.grad[-1].abs().max() == 0.0
    assert rows.grad[:-1].abs().max() > 0.0


def test_the_first_value_of_one_class_is_that_of_its_measure(cloud):
    for penalty, expected in (
        (IsoScoreStar(), 1 - iso_score(cloud)),
        (SpectralEntropy(), -math.log(effective_rank(cloud))),
    ):
        assert penalty(cloud).values.item() == pytest.approx(expected, abs=1e-12)


def test_the_covariance_is_drawn_towards_that_of_all_classes_and_batches():
    first, second = gaussian(9, 4), 3 * gaussian(7, 4, seed=1)
    labels = torch.tensor([0] * 4 + [1] * 3)
    penalty = IsoScoreStar()
    penalty(first)
    values = penalty(second, labels).values
    covariances = [torch.cov(x.T) for x in (first, second[:4], second[4:])]
    covariances = [c / c.trace() for c in covariances]
    pooled = sum(k * c for k, c in zip((8, 3, 2), covariances, strict=True)) / 13
    torch.testing.assert_close(penalty.stable, pooled, rtol=1e-12, atol=1e-14)
    assert penalty.degrees == 13
    for value, covariance in zip(values, covariances[1:], strict=True):
        eigenvalues = torch.linalg.eigvalsh(0.8 * covariance + 0.2 * pooled)
        ratio = eigenvalues.sum() ** 2 / eigenvalues.square().sum()
        assert value.item() == pytest.approx(1 - (ratio.item() - 1) / 3, abs=1e-12)


def test_a_cloud_that_shrinks_gains_nothing():
    """As published it does: what is left of it is the stable covariance, of full rank."""
    penalty, few = IsoScoreStar(), gaussian(4, 8, seed=1)
    penalty(gaussian(200, 8))
    penalty.eval()
    assert penalty(1e-3 * few).loss.item() == pytest.approx(penalty(few).loss.item(), rel=1e-9)


def test_in_evaluation_mode_nothing_is_remembered(cloud):
    penalty = IsoScoreStar()
    penalty(cloud.requires_grad_())
    before = penalty.stable.clone()
    assert not before.requires_grad
    penalty.eval()
    first, again = (penalty(gaussian(8, 5)).loss.item() for _ in range(2))
    assert torch.equal(penalty.stable, before) and first == again
    assert first != IsoScoreStar()(gaussian(8, 5)).loss.item()  # what is remembered counts


def _centred(x):
    return x - x.mean(0)


@pytest.mark.parametrize("shape", [(6, 20), (20, 6)])
def test_the_spectral_gradient_is_that_of_the_formula(shape):
    """Also with fewer rows than dimensions, where centring takes a direction away."""
    rows = gaussian(*shape).requires_grad_()
    SpectralEntropy(weight=2.0)(rows).loss.backward()
    u, sigma, v = torch.linalg.svd(_centred(rows.detach()), full_matrices=False)
    rank = min(shape[0] - 1, shape[1])
    u, sigma, v = u[:, :rank], sigma[:rank], v[:rank]
    p = sigma / sigma.sum()
    entropy = -(p * p.log()).sum()
    slopes = -(p.log() + entropy) / sigma.sum()  # ∂H/∂σ
    torch.testing.assert_close(rows.grad, -2.0 * (u * slopes) @ v, rtol=1e-9, atol=1e-12)


def test_rows_in_few_dimensions_stay_in_them():
    """Rounding would otherwise choose directions, with gradients of the size of ln 1e-16."""
    flat = gaussian(10, 2) @ gaussian(2, 8, seed=1)
    rows = flat.clone().requires_grad_()
    SpectralEntropy()(rows).loss.backward()
    outside = torch.linalg.svd(_centred(flat)).Vh[2:]  # (6, 8)
    assert rows.grad.abs().max() > 1e-3
    assert (rows.grad @ outside.T).abs().max() < 1e-12


def test_sigreg_of_one_dimension_is_the_statistic_of_epps_and_pulley():
    """By quadrature on a grid a hundred times as fine; the one direction is ± the axis."""
    x = gaussian(9, 1).square()
    z = ((x - x.mean()) / x.std()).flatten().numpy()
    t = np.linspace(-5, 5, 1601)
    bell = np.exp(-(t**2) / 2)
    apart = np.abs(np.exp(1j * np.outer(t, z)).mean(axis=1) - bell) ** 2
    expected = 9 * np.trapezoid(apart * bell, t)
    assert SIGReg()(x).values.item() == pytest.approx(expected, rel=1e-4)


def test_sigreg_is_at_its_floor_for_a_gaussian_and_above_it_for_other_shapes():
    """With n rows less their mean the floor is √(2π) − √(2π/3)(1 + 1/3), for every n."""
    floor = math.sqrt(2 * math.pi) - math.sqrt(2 * math.pi / 3) * 4 / 3
    x = gaussian(2000, 6)
    torch.manual_seed(0)
    value = SIGReg()
    assert value(x).values.item() == pytest.approx(floor, rel=0.2)
    stretched = x * torch.tensor([4.0, 1, 1, 1, 1, 1])
    bimodal = x + 4.0 * torch.arange(2000)[:, None].remainder(2)
    assert value(stretched).values > 20 * floor and value(bimodal).values > 20 * floor
    assert value(stretched).values > 3 * value(x * torch.tensor([2.0, 1, 1, 1, 1, 1])).values


def test_the_whole_batch_has_one_barcode(batch):
    x, labels = batch
    out = Regrouped("batch", weight=0.5)(x, labels)
    assert torch.equal(out.loss, BarcodeRegularizer(weight=0.5)(x).loss)
    assert out.n_bars.tolist() == [23]


def test_shuffled_classes_keep_their_sizes_and_lose_their_rows(batch):
    x, _ = batch
    labels = (torch.arange(24) < 9).long()
    torch.manual_seed(3)
    dealt = labels[torch.randperm(24)]
    torch.manual_seed(3)
    out = Regrouped("shuffled")(x, labels)
    assert torch.equal(out.loss, BarcodeRegularizer()(x, dealt).loss)
    assert out.n_bars.tolist() == [14, 8] and not torch.equal(dealt, labels)
    assert out.loss != BarcodeRegularizer()(x, labels).loss


@pytest.mark.parametrize("keep", ["longest", "shortest"])
def test_the_loss_is_minus_the_entropy_of_the_bars_that_are_kept(batch, keep):
    x, labels = batch
    out = RankedBars(keep, weight=0.7)(x, labels)
    expected, counts = 0.0, []
    for c in range(3):
        lengths = h0_barcode(x.detach()[labels == c]).lengths.sort().values
        n = math.ceil(7 / 2) if keep == "longest" else len(prominent_features(lengths))
        bars = lengths[-n:] if keep == "longest" else lengths[:n]
        expected -= 0.7 * persistent_entropy(bars).item()
        counts.append(n)
    assert out.loss.item() == pytest.approx(expected, rel=1e-12)
    assert out.n_features.tolist() == counts and out.n_bars.tolist() == [7, 7, 7]
    assert out.entropy.sum().item() == pytest.approx(-expected / 0.7)
    reward = RankedBars(keep, weight=0.7)
    assert torch.autograd.gradcheck(lambda x: reward(x, labels).loss, x, fast_mode=True)


REWARDS = {
    **{name: partial(term, **OPTIONS.get(name, {})) for name, term in PENALTIES.items()},
    "shortest": partial(RankedBars, "shortest"),
    "whole batch": partial(Regrouped, "batch"),
}


@pytest.mark.filterwarnings("ignore:.* no class of the first batch")
@pytest.mark.parametrize("name", REWARDS)
def test_rows_labelled_minus_100_are_left_out_by_every_reward(batch, name):
    x, labels = batch
    ignored = torch.arange(24) % 5 == 0
    labels = torch.where(ignored, -100, labels)

    def of(rows, labels):
        torch.manual_seed(0)
        out = REWARDS[name]()(rows, labels.tolist())
        return out, torch.autograd.grad(out.loss, x)[0]

    (found, gradient), (expected, wanted) = of(x, labels), of(x[~ignored], labels[~ignored])
    torch.testing.assert_close(found.loss, expected.loss)
    torch.testing.assert_close(gradient, wanted)
    assert found.classes.tolist() == expected.classes.tolist()
    nothing, flat = of(x, torch.full_like(labels, -100))
    assert nothing.loss == 0 and len(nothing.classes) == 0 and not flat.any()


@pytest.mark.parametrize("name", REWARDS)
def test_a_reward_that_cannot_move_says_so_once(name):
    reward = REWARDS[name]()
    least = {"cosine": 2, "isoscore": 2, "sigreg": 2, "spectral": 3}.get(name, 4)
    if name == "whole batch":  # of one cloud
        still, moves = torch.zeros(1).long(), torch.arange(8)
    else:
        still, moves = (torch.arange(4).repeat(n) for n in (least - 1, least + 3))
    torch.manual_seed(0)
    x = torch.randn(64, 6, requires_grad=True)
    with pytest.warns(UserWarning, match=type(reward).__name__) as said:
        for _ in range(3):
            out = reward(x[: len(still)], still)
    assert len(said) == 1
    (gradient,) = torch.autograd.grad(out.loss, x)
    assert not gradient.any()
    fresh = REWARDS[name]()  # warnings are errors here
    (gradient,) = torch.autograd.grad(fresh(x[: len(moves)], moves).loss, x)
    assert gradient.any()
    fresh(x[: len(still)], still)  # a later batch may hold a class of one row
    quiet = REWARDS[name]()
    quiet(x[: len(still)].detach(), still)  # a measurement
    quiet.weight = 0.0
    quiet(x[: len(still)], still)


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("seen", [0, 1])
def test_averages_of_weights_leave_what_isoscore_remembers_alone(cloud, use_buffers, seen):
    """Made before and after the first batch; as a target network copies buffers in place."""
    model = nn.ModuleDict({"encoder": nn.Linear(5, 5).double(), "reward": IsoScoreStar()})
    for _ in range(seen):
        model["reward"](model["encoder"](cloud))
    average = AveragedModel(model, use_buffers=use_buffers)
    for _ in range(3):
        model["reward"](model["encoder"](cloud))
        average.update_parameters(model)
    assert model["reward"].degrees == 11 * (3 + seen)
    assert average.module["reward"].degrees == 11 * seen
    assert torch.equal(average.module["encoder"].weight, model["encoder"].weight)
    assert not [*model["reward"].buffers()]


def test_a_reward_whose_memory_is_made_later_has_none(cloud):
    with torch.device("meta"):
        model = nn.ModuleDict({"encoder": nn.Linear(5, 5), "reward": IsoScoreStar(n_features=5)})
    model.to_empty(device="cpu")
    for module in model.children():
        module.reset_parameters()
    assert model["reward"](cloud).loss == IsoScoreStar()(cloud).loss
    model["reward"].reset_parameters()
    assert model["reward"](cloud).loss == IsoScoreStar()(cloud).loss


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_distributed_checkpoint_is_copied_into_a_fresh_isoscore(cloud, tmp_path):
    penalty = nn.ModuleDict({"reward": IsoScoreStar()})
    penalty["reward"](cloud)
    fresh = nn.ModuleDict({"reward": IsoScoreStar(n_features=5)})
    saved, loaded = get_model_state_dict(penalty), get_model_state_dict(fresh)
    checkpoint.save(saved, checkpoint_id=tmp_path / "saved", no_dist=True)
    checkpoint.load(loaded, checkpoint_id=tmp_path / "saved", no_dist=True)
    set_model_state_dict(fresh, loaded)
    assert fresh["reward"](cloud[:6]).loss == penalty["reward"](cloud[:6]).loss
    assert fresh["reward"].degrees == 11 + 5
    with pytest.raises(ValueError, match=r"5 dimensions.*got 4"):
        fresh["reward"](cloud[:, :4])
