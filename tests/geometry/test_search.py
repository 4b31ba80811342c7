"""Whitening and its kin, and search by few bits: by definition, on clouds with known neighbours."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from shrink_utils.geometry import all_but_the_top, anisotropy, random_rotation, search, whitening
from tests.geometry.conftest import rotation_of

RNG = np.random.default_rng(0)
LENGTHS = np.logspace(0, -2, 8)  # as uneven as embeddings, and off the origin
X, NEW = RNG.normal(size=(200, 8)) * LENGTHS + 3, RNG.normal(size=(50, 8)) * LENGTHS + 3


@pytest.fixture(scope="module")
def real():
    """MiniLM's [CLS] vectors of 600 real sentences, (600, 384)."""
    pytest.importorskip("transformers")  # `make compatibility` has topology and geometry alone
    from shrink_utils.models import hidden_states, load_encoder
    from shrink_utils.text import load_sentences

    texts = list(load_sentences("all", n=600, seed=0)["text"])
    return hidden_states(load_encoder("minilm"), texts, layers=[-1], max_length=48)[0].double()


# --- maps ------------------------------------------------------------------------------------


def test_whitened_rows_are_those_of_scikit_learn_whatever_the_unit():
    expected = PCA(whiten=True, svd_solver="full").fit(X).transform(NEW)
    for unit in (1e-150, 1.0, 1e150):
        found = whitening(X * unit)(NEW * unit).numpy()
        np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.cov(whitening(X)(X), rowvar=False), np.eye(8), atol=1e-9)


def test_whitening_ends_at_the_same_cosines_whatever_linear_map_came_before():
    """The null of all anisotropy: no stretch and no shift of the cloud is left."""
    a = RNG.normal(size=(8, 8))
    ours, theirs = whitening(X)(NEW), whitening(X @ a + 5)(NEW @ a + 5)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("cut", "kept"), [(0.0, 8), (1e-9, 8), (1.1e-4, 7), (0.5, 1)])
def test_directions_below_the_cut_are_left_out(cut, kept):
    x = np.concatenate([np.eye(8), -np.eye(8), np.eye(8)]) * LENGTHS
    x = np.concatenate([x, -np.eye(8) * LENGTHS])  # variances exactly the squares of LENGTHS
    assert whitening(x, cut=cut)(x).shape == (32, kept)


def test_a_direction_that_holds_rounding_alone_is_no_direction(real):
    """Three columns of MiniLM's are constant up to rounding, and rounding is each machine's own."""
    dead = real.std(dim=0) < 1e-6 * real.std(dim=0).median()
    assert dead.sum() == 3
    noise = torch.randn(600, 384, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    real = real + 1e-9 * noise * dead
    train, held_out = real[:450], real[450:]
    kept, uncut = whitening(train), whitening(train, cut=0.0)
    assert kept(held_out).shape == (150, 381) and uncut(held_out).shape == (150, 384)
    np.testing.assert_allclose(torch.cov(kept(train).T), np.eye(381), atol=1e-8)
    assert kept.matrix[dead].abs().max() < 1e-4 < 1e4 < uncut.matrix[dead].abs().max()
    assert anisotropy(kept(train), k=1) < 0.003 < 0.02 < anisotropy(train, k=1, center=True)


def test_all_but_the_top_leaves_the_rest_as_it_was():
    mean, axes = X.mean(axis=0), np.linalg.svd(X - X.mean(axis=0))[2]
    expected = (NEW - mean) @ axes[3:].T @ axes[3:]
    np.testing.assert_allclose(all_but_the_top(X, remove=3)(NEW), expected, rtol=0, atol=1e-12)


def test_a_rotation_keeps_every_distance_and_is_that_of_its_seed():
    first, second = random_rotation(X, seed=0), random_rotation(X, seed=1)
    np.testing.assert_allclose(cdist(first(NEW), first(NEW)), cdist(NEW, NEW), atol=1e-12)
    assert first(X).mean(dim=0).abs().max() < 1e-12
    assert torch.equal(first.matrix, random_rotation(X, seed=0).matrix)
    assert (first.matrix - second.matrix).abs().max() > 0.1


def test_rotations_have_no_favourite_direction():
    """Haar: the first row is uniform on the sphere, and both signs of a determinant occur."""
    found = torch.stack([random_rotation(X, seed=seed).matrix for seed in range(400)])
    assert found.mean(dim=0).abs().max() < 4 / np.sqrt(400 * 8)
    assert abs(float(torch.linalg.det(found).mean())) < 4 / np.sqrt(400)


@pytest.mark.filterwarnings("ignore:x of shape")
def test_rows_too_few_to_whiten_by_are_told_since_all_would_be_equally_far():
    x = RNG.normal(size=(6, 8))
    with pytest.warns(UserWarning, match=r"\(6, 8\) has too few rows"):
        whitened = whitening(x)(x)
    cosines = 1 - cdist(whitened, whitened, "cosine")
    np.testing.assert_allclose(cosines[np.triu_indices(6, 1)], -1 / 5, atol=1e-8)


# --- search ----------------------------------------------------------------------------------


def _nearest(queries, corpus, k, *, metric="cosine"):
    return cdist(queries, corpus, metric).argsort(axis=1, kind="stable")[:, :k]


def test_in_full_precision_the_nearest_are_those_of_scipy():
    found = search(NEW, X, k=10)
    assert (found.rows.numpy() == _nearest(NEW, X, 10)).all()
    cosines = 1 - np.take_along_axis(cdist(NEW, X, "cosine"), found.rows.numpy(), axis=1)
    np.testing.assert_allclose(found.similarity, cosines, rtol=0, atol=1e-12)
    assert (found.shares.sum(dim=1) == 10).all()


def test_one_bit_is_the_hamming_distance_of_signs():
    x, y = RNG.normal(size=(300, 64)), RNG.normal(size=(20, 64))
    hamming = (np.packbits(y > 0, axis=1)[:, None] ^ np.packbits(x > 0, axis=1)[None]).astype(int)
    hamming = np.vectorize(lambda byte: int(byte).bit_count())(hamming).sum(axis=2)  # (20, 300)
    found = search(y, x, k=10, bits=1)
    assert (found.rows.numpy() == hamming.argsort(axis=1, kind="stable")[:, :10]).all()
    np.testing.assert_allclose(
        found.similarity, 1 - np.sort(hamming, axis=1)[:, :10] / 32, rtol=0, atol=1e-12
    )


def test_eight_bits_are_steps_between_the_ends_of_the_calibration():
    low, step = X.min(axis=0), np.ptp(X, axis=0) / 255
    coded = [low + step * np.clip(np.round((x - low) / step), 0, 255) for x in (NEW * 2, X)]
    found = search(NEW * 2, X[:100], k=5, bits=8, calibration=X)
    assert (found.rows.numpy() == _nearest(coded[0], coded[1][:100], 5)).all()
    assert (
        search(NEW, X, k=5, bits=8).rows == search(NEW, X, k=5, bits=8, calibration=X).rows
    ).all()


def test_rescored_by_all_is_full_precision_and_by_few_is_the_best_of_them():
    x, y = RNG.normal(size=(300, 32)), RNG.normal(size=(20, 32))
    full = search(y, x, k=10)
    assert torch.equal(search(y, x, k=10, bits=1, rescore=300).shares, full.shares)
    hamming = cdist(y > 0, x > 0, "hamming")
    fourtieth = np.sort(hamming, axis=1)[:, 39:40]
    cosines = np.where(hamming <= fourtieth, cdist(y, x, "cosine"), np.inf)
    found = search(y, x, k=10, bits=1, rescore=40)
    assert (found.rows.numpy() == cosines.argsort(axis=1, kind="stable")[:, :10]).all()
    alone, wanted = search(y, x, k=10, bits=1), full.rows
    assert alone.recall(wanted).mean() < found.recall(wanted).mean() < 1


def test_queries_look_among_each_other_without_themselves():
    found = search(X, k=7)
    distances = cdist(X, X, "cosine") + np.diag([np.inf] * len(X))
    assert (found.rows.numpy() == distances.argsort(axis=1, kind="stable")[:, :7]).all()
    assert not (found.rows == torch.arange(len(X))[:, None]).any()
    assert (found.shares.diagonal() == 0).all()


def test_rows_that_are_tied_share_the_places_that_are_left():
    """Two nearer ones, then four equal ones for one place of three."""
    corpus = np.array([[1, 0], [1, 0.1], *[[1, 1]] * 4, [-1, 0]])
    for order in (np.arange(7), np.array([6, 5, 3, 0, 2, 4, 1])):
        found = search([[1, 0.01]], corpus[order], k=3)
        shares = found.shares[0][torch.tensor(order.argsort())]
        assert shares.tolist() == [1, 1, 0.25, 0.25, 0.25, 0.25, 0]
        wanted = order.argsort()
        assert found.recall([[wanted[0], wanted[2]]]) == pytest.approx((1 + 0.25) / 2)
        assert found.recall([wanted[6]]) == 0
        assert found.precision(np.isin(order, [0, 2, 3])[None]) == pytest.approx(1.5 / 3)


def test_recall_of_one_row_is_the_chance_that_it_is_among_the_ten():
    """As the registered analyses counted it: nearer ones first, ties in equal parts."""
    x = np.sign(RNG.normal(size=(60, 6)))  # many ties
    y = x + 0.01 * RNG.normal(size=x.shape)
    agree = np.sign(y) @ x.T
    right = np.diagonal(agree)[:, None]
    nearer, tied = (agree > right).sum(axis=1), (agree == right).sum(axis=1)
    expected = np.clip((10 - nearer) / tied, 0, 1)
    np.testing.assert_allclose(
        search(y, x, k=10, bits=1).recall(np.arange(60)), expected, atol=1e-12
    )


def test_without_anything_to_find_recall_and_precision_are_those_of_chance():
    x, y = np.ones((40, 3)), np.ones((4, 3))
    assert search(y, x, k=10).recall([0, 1, 2, 3]).tolist() == [0.25] * 4
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(400, 16)), np.arange(400) % 4
    same = search(x, k=10).precision(labels[:, None] == labels)
    assert same.mean() == pytest.approx(99 / 399, abs=0.02)
    found = search(x[:200], x[200:], k=10, bits=1).recall(np.arange(200))
    assert found.mean() == pytest.approx(10 / 200, abs=0.04)


@given(st.integers(0, 10**6), st.sampled_from([None, 1, 8]))
def test_no_order_and_no_length_of_the_rows_matters(seed, bits):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, 4)), rng.normal(size=(5, 4))
    order, length = rng.permutation(30), 1.0 if bits == 8 else rng.uniform(0.1, 9, size=(5, 1))
    found, other = search(y, x, k=4, bits=bits), search(y * length, x[order], k=4, bits=bits)
    np.testing.assert_allclose(found.shares[:, order], other.shares, atol=1e-12)
    if bits is None:
        turned = search(y @ rotation_of(4), x @ rotation_of(4), k=4)
        assert torch.equal(turned.rows, found.rows)


def test_a_planted_neighbour_is_found_by_more_bits_and_by_centred_signs(real):
    """Real sentences and slightly moved ones: off the origin, signs say less until centred."""
    train, held_out = real[:450], real[450:]
    scale = held_out.std()
    asked = held_out + 0.7 * scale * torch.randn(held_out.shape, dtype=torch.float64)
    right = torch.arange(len(held_out))

    def recall(map_=lambda x: x, **options):
        return float(search(map_(asked), map_(held_out), k=1, **options).recall(right).mean())

    turned = random_rotation(train, seed=0)
    assert recall() > 0.99 and recall(bits=8, calibration=train) > 0.99
    assert recall(bits=1) < recall(bits=1, rescore=40)
    assert recall(turned) == pytest.approx(recall(), abs=0.01)
    shuffled = search(asked, held_out[torch.randperm(150)], k=1).recall(right).mean()
    assert shuffled < 0.03
