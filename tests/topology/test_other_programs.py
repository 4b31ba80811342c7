"""The regularizer in other people's programs: compiled, given frames, near-duplicates, units."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from shrink_utils.topology import BarcodeRegularizer, h0_barcode, persistent_entropy

COMPILED_STEP = """
import torch
from shrink_utils.topology import BarcodeRegularizer, h0_barcode, persistent_entropy
from shrink_utils.training.penalties import AverageCosine

layer = torch.nn.Linear(16, 16)
terms = [BarcodeRegularizer(), AverageCosine()]


def step(x, y):
    h = torch.tanh(layer(x))
    bars = persistent_entropy(h0_barcode(h).lengths)
    return h.square().mean() + sum(term(h, y).loss for term in terms) - bars


def of(function):
    layer.zero_grad()
    loss = function(x, y)
    loss.backward()
    return loss.detach(), layer.weight.grad.clone()


x, y = torch.randn(32, 16), torch.arange(32) % 2
compiled = of(torch.compile(step, backend="BACKEND"))  # before any call that is not compiled
for found, expected in zip(compiled, of(step), strict=True):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
print("equal")
"""


def cloud(n=64, d=768, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.nightly)])
def test_a_step_is_compiled_in_a_fresh_process(backend):
    if backend == "inductor" and not shutil.which("g++"):
        pytest.skip("no g++ here")
    code = COMPILED_STEP.replace("BACKEND", backend)
    one = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # else a pool of processes that all load torch
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **one})
    assert done.stdout == "equal\n", done.stderr[-2000:]


@pytest.mark.parametrize("selection", ["prominent", "all"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_copy_of_a_row_is_a_copy_up_to_rounding(selection, dtype):
    """From no difference to one of 1e-6 of every coordinate: the same bars, the same loss."""
    x, noise = cloud().to(dtype), cloud(1, seed=1)[0].to(dtype)
    x[1] = x[0]
    regularizer = BarcodeRegularizer(selection)
    exact = regularizer(x)
    assert exact.n_features > 20 and exact.loss < -3
    for size in (1e-12, 1e-9, 1e-8, 1e-7, 3e-7, 1e-6):
        x[1] = x[0] + size * noise
        near = regularizer(x)
        assert near.n_features == exact.n_features
        assert near.loss.item() == pytest.approx(exact.loss.item(), rel=1e-5)


def test_a_difference_beyond_rounding_is_a_bar():
    x, noise = cloud(), cloud(1, seed=1)[0]
    regularizer = BarcodeRegularizer("all")
    x[1] = x[0]
    exact = regularizer(x).loss.item()
    x[1] = x[0] + 1e-3 * noise
    assert regularizer(x).loss.item() < exact - 1e-4
    assert BarcodeRegularizer()(x).n_features == 1  # what the definition does with so short a bar


def test_rounding_is_of_the_rows_own_size():
    """A tight cluster near the origin keeps its bars beside a far one."""
    near, far = 1e-6 * cloud(8, 16), 1e4 + cloud(8, 16, seed=1)
    x = torch.cat([near, far]).double()
    out = BarcodeRegularizer("all")(x)
    assert out.entropy.item() == pytest.approx(
        persistent_entropy(h0_barcode(x).lengths).item(), rel=1e-12
    )


def test_each_class_has_a_unit_of_its_own():
    """Float32 holds both, and no unit that they could share."""
    x, labels = cloud(40, 8), torch.arange(40) % 2
    expected = BarcodeRegularizer("all")(x, labels).entropy
    scaled = torch.where(labels[:, None] == 0, x * 1e25, x * 1e-25).requires_grad_()
    before = scaled.detach().clone()
    found = BarcodeRegularizer("all")(scaled, labels)
    torch.testing.assert_close(found.entropy, expected, rtol=1e-5, atol=0.0)
    found.loss.backward()
    reference = x.clone().double().requires_grad_()
    BarcodeRegularizer("all")(reference, labels).loss.backward()
    small = labels == 1  # the gradient of the other class is below float32's least number
    expected = reference.grad[small] * 1e25
    torch.testing.assert_close(scaled.grad[small].double(), expected, rtol=1e-3, atol=1e20)
    assert torch.equal(scaled.detach(), before)


def test_under_autocast_the_bars_are_taken_in_float32():
    x = cloud(16, 32).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = BarcodeRegularizer("all")(x)
    assert out.loss.dtype == torch.float32
    assert torch.equal(out.loss, BarcodeRegularizer("all")(x).loss)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("place", [900.0, 902.0])  # 902 is rounded to 900 or 904 in bfloat16
def test_one_massive_coordinate_in_half_precision_leaves_the_bars_of_the_others(dtype, place):
    x = 0.3 * cloud(32, 256)
    x[:, 7] += place
    x = x.to(dtype).requires_grad_()
    out = BarcodeRegularizer("all")(x)
    expected = BarcodeRegularizer("all")(x.detach().float())
    assert out.loss.item() == pytest.approx(expected.loss.item(), rel=1e-3)
    out.loss.backward()
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_copies_that_were_rounded_to_neighbours_in_half_precision_are_copies(dtype):
    x = cloud(32, 256)
    x[1] = x[0]
    exact = BarcodeRegularizer("all")(x.to(dtype))
    x[1] += 1e-6 * cloud(1, 256, seed=1)[0]
    x[1, ::2] *= 1 + torch.finfo(dtype).eps / 2
    assert not torch.equal(x[1].to(dtype), x[0].to(dtype))
    near = BarcodeRegularizer("all")(x.to(dtype))
    assert near.loss.item() == pytest.approx(exact.loss.item(), rel=1e-3)
