"""Processor seconds of a step with the barcode regularizer beside other ways to the same bars.

    python tests/benchmarks/regularizer.py [--sizes 64 512 …] [--out FIGURE.png]

Every way takes the same Gaussian cloud in turn, again and again, on one thread, and the least of
its processor times counts: what else the machine does weighs little. A way whose package is missing
(`pip install shrink-utils[bench]`), or that would keep too much at a size, is left out.
"""

import argparse
import math
import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter, process_time
from timeit import timeit

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy and torch

import gudhi
import pandas as pd
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from shrink_utils.topology import BarcodeRegularizer

WIDTH, SIZES, ROUNDS = 768, (64, 512, 2048, 2049, 4096, 8192, 16_384), 7
TURN = 0.05  # seconds that a turn lasts at least: a way fills the processor's caches for itself
sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))


def select(bars):
    """Prominent bars of ℓ_1 ≥ … ≥ ℓ_{m−1}, longest, by ``rule="published"``.

    A plain transcription of the published algorithm, with what costs its time: torch scalars in a
    loop over the bars, and a call of itself for every bar that drops out.
    """
    m, detached = len(bars), bars.detach()
    rest = detached.flip(0).cumsum(0).flip(0)  # P_i
    weighted = (detached * detached.log()).flip(0).cumsum(0).flip(0)  # W_i
    before = rest[0]
    for first in range(1, m - 2):  # to the first i with C(i) < 1, at most m − 3
        total = rest[first] + first * (weighted[first] / rest[first]).exp()
        if before / total < 1:
            break
        before = total
    alpha = (bars[-2] / bars[-1]).item()
    bound = math.ceil(alpha * m * (alpha - 1 - math.log(alpha)) / (alpha - 1) ** 2)
    if first > bound:
        return select(torch.cat([bars[:first], bars[-2:]]))
    return torch.cat([bars[:first], bars[-1:]])


def by_gudhi(points):
    """H0 bar lengths, ascending, differentiable: gudhi pairs, torch measures again."""
    tree = gudhi.RipsComplex(points=points.detach().numpy()).create_simplex_tree(max_dimension=1)
    tree.compute_persistence(min_persistence=-1)
    edges = torch.from_numpy(tree.flag_persistence_generators()[0][:, 1:].astype("int64"))
    return (points[edges[:, 0]] - points[edges[:, 1]]).norm(dim=1)


def published(points):
    """Minus the persistent entropy of the bars that the published code selects."""
    kept = select(by_gudhi(points).sort(descending=True).values.roll(-1))
    p = kept / kept.sum()
    return (p * p.log()).sum()


def _step(loss):
    """Forward and backward."""
    return lambda points: loss(points.detach().requires_grad_()).backward()


def _of(module, call):
    """A way that another package offers, forward alone."""
    return lambda points: call(import_module(module), points)


prominent, every = BarcodeRegularizer(), BarcodeRegularizer("all")
ripser = _of("ripser", lambda m, x: m.ripser(x.numpy(), maxdim=0))
giotto = _of("gph", lambda m, x: m.ripser_parallel(x.numpy(), maxdim=0, n_threads=1))
topological = _of("torch_topological.nn", lambda m, x: m.VietorisRipsComplex(dim=0)(x))
WAYS = {  # what runs, the package it needs, and the most points that it is given
    "ours": (_step(lambda x: prominent(x).loss), "torch", 10**9),
    "ours, all bars": (_step(lambda x: every(x).loss), "torch", 10**9),
    "published": (_step(published), "gudhi", 2048),
    "gudhi (forward)": (by_gudhi, "gudhi", 2048),
    "ripser (forward)": (ripser, "ripser", 4096),
    "giotto-ph (forward)": (giotto, "gph", 4096),
    "torch-topological (forward)": (topological, "torch_topological", 2048),
    "scipy (forward)": (lambda x: minimum_spanning_tree(squareform(pdist(x))), "scipy", 4096),
    "torch.cdist (forward)": (lambda x: torch.cdist(x, x), "torch", 16_384),
}


def _seconds(run, points, number, timer=process_time):
    """Seconds of one of `number` runs, the processor's unless told."""
    return timeit(lambda: run(points), number=number, timer=timer) / number


def measure(n):
    """Least processor seconds of each way at n points."""
    points = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(0))
    ways = {k: run for k, (run, of, most) in WAYS.items() if n <= most and find_spec(of)}
    # By the wall clock: that of the processor may stand still for one short run.
    once = {name: _seconds(run, points, 1, perf_counter) for name, run in ways.items()}
    times = {name: math.ceil(TURN / seconds) for name, seconds in once.items()}
    turns = [
        {name: _seconds(run, points, times[name]) for name, run in ways.items()}
        for _ in range(ROUNDS if n <= 2048 else 2)
    ]
    return pd.DataFrame(turns).min()


def main(argv=None):
    """Print seconds by size and way, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", help="where to put the figure")
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)  # ripser takes columns for rows
    prominent(torch.randn(64, 8))  # load
    seconds = pd.DataFrame({n: measure(n) for n in given.sizes}).reindex(WAYS).dropna(how="all")
    print(f"Milliseconds by number of points, d = {WIDTH}")
    print((1e3 * seconds).round(3).to_string())
    print("Times of torch.cdist alone")
    print((seconds / seconds.loc["torch.cdist (forward)"]).round(2).to_string())
    if given.out:
        draw(seconds).savefig(given.out, dpi=150, bbox_inches="tight")


def draw(seconds):
    """Seconds against points, one line and marker per way; our own is the broad one."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    fig, ax = plt.subplots(figsize=(4.4, 4.6))
    looks = zip(sns.color_palette("colorblind"), "os^DvP*XH<", strict=True)
    for (name, line), (colour, marker) in zip(seconds.iterrows(), looks, strict=False):
        broad = 2.5 if name == "ours" else 1.2
        ax.loglog(line.dropna(), marker=marker, color=colour, lw=broad, ms=6, label=name)
    sizes = [n for n in seconds if n != 2049]  # beside 2048
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes], rotation=30)
    ax.minorticks_off()
    ax.set(xlabel="points", ylabel="seconds of a processor")
    ax.grid(alpha=0.3)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return fig


if __name__ == "__main__":
    main()
