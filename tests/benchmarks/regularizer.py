"""What the barcode regularizer costs beside other ways to the same bars: time and memory.

    python tests/benchmarks/regularizer.py [--sizes 64 512 …] [--repeats N] [--out FIGURE.png]

Every way takes the same Gaussian cloud in turn, again and again, on one thread: whatever else the
machine does weighs on all. What takes milliseconds runs many times in its turn, as timeit does it,
and their mean counts, so that none pays for the one before having filled the processor's caches;
among other work, such as a training step's, all that is short takes longer. Ways whose
package is missing (`pip install shrink-utils[bench]`), or that are out of their depth at a size,
are passed over with a line.
"""

import argparse
import ctypes
import math
import os
import statistics
import sys
import time
import timeit
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy and torch read them

import gudhi  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import NullLocator  # noqa: E402
from scipy.sparse.csgraph import minimum_spanning_tree  # noqa: E402
from scipy.spatial.distance import pdist, squareform  # noqa: E402
from torch import Tensor  # noqa: E402

from shrink_utils.topology import BarcodeRegularizer  # noqa: E402
from shrink_utils.topology.arrays import COMPILED  # noqa: E402

WIDTH, SIZES = 768, (64, 512, 2048, 8192, 50_000)
SHORT, LONG = 0.05, 30.0  # seconds: a turn lasts this long at least, and what takes more has one


@dataclass(frozen=True)
class Way:
    """One way to the bars: what runs, the package it needs, and the most points it can be given."""

    run: Callable[[Tensor], object]
    package: str = "torch"
    most: int = 10**9
    note: str = ""
    exact: bool = True  # to the points as given; False where distances are kept in float32


# The published algorithm as published: our own plain transcription of its description, with what
# costs its time: torch scalars in a loop over the bars, and a call of itself for every bar that
# drops out.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))  # a notebook's


def bars_by_gudhi(points: Tensor) -> Tensor:
    """H0 bar lengths, ascending, differentiable: gudhi pairs, torch measures again."""
    tree = gudhi.RipsComplex(points=points.detach().numpy()).create_simplex_tree(max_dimension=1)
    tree.compute_persistence(min_persistence=-1)
    edges = torch.from_numpy(tree.flag_persistence_generators()[0][:, 1:].astype("int64"))
    return (points[edges[:, 0]] - points[edges[:, 1]]).norm(dim=1)


def entropy_of_all(points: Tensor) -> Tensor:
    """Persistent entropy of every bar."""
    return _entropy(bars_by_gudhi(points))


def entropy_of_selected(points: Tensor) -> Tensor:
    """Persistent entropy of the bars that the published code selects."""
    lengths = bars_by_gudhi(points).sort(descending=True).values
    return _entropy(select(torch.cat([lengths[1:], lengths[:1]])))


def select(bars: Tensor) -> Tensor:
    """Prominent bars of ℓ_1 ≥ … ≥ ℓ_{m−1}, longest, by ``rule="published"``."""
    m = len(bars)
    i = _first_below_one(bars.detach())
    alpha = (bars[-2] / bars[-1]).item()
    bound = math.ceil(alpha * m * (alpha - 1 - math.log(alpha)) / (alpha - 1) ** 2)
    if i > bound:
        return select(torch.cat([bars[:i], bars[-2:]]))
    return torch.cat([bars[:i], bars[-1:]])


def _first_below_one(bars: Tensor) -> int:
    """The first i with C(i) < 1, at most m − 3."""
    rest = bars.flip(0).cumsum(0).flip(0)  # P_i
    weighted = (bars * bars.log()).flip(0).cumsum(0).flip(0)  # W_i
    before = rest[0]
    for i in range(1, len(bars) - 2):
        total = rest[i] + i * (weighted[i] / rest[i]).exp()
        if before / total < 1:
            return i
        before = total
    return len(bars) - 3


def _entropy(lengths: Tensor) -> Tensor:
    p = lengths / lengths.sum()
    return -(p * p.log()).sum()


def _step(loss: Callable[[Tensor], Tensor]) -> Callable[[Tensor], None]:
    """Forward and backward."""

    def run(points: Tensor) -> None:
        loss(points.detach().requires_grad_()).backward()

    return run


def _ripser(points: Tensor) -> object:
    with warnings.catch_warnings():  # it takes more coordinates than points for a mistake
        warnings.simplefilter("ignore", UserWarning)
        return import_module("ripser").ripser(points.numpy(), maxdim=0)


def _giotto(points: Tensor) -> object:
    return import_module("gph").ripser_parallel(points.numpy(), maxdim=0, n_threads=1)


def _torch_topological(points: Tensor) -> object:
    return import_module("torch_topological.nn").VietorisRipsComplex(dim=0)(points)


def _scipy(points: Tensor) -> object:
    return minimum_spanning_tree(squareform(pdist(points.numpy())))


def _quitefastmst(points: Tensor) -> object:
    return import_module("quitefastmst").mst_euclid(points.numpy())


def _fast_hdbscan(points: Tensor) -> object:
    package = import_module("fast_hdbscan.hdbscan")
    tree, weights = package.build_kdtree(points.numpy()), np.empty(1, np.float32)  # no weights
    return package.parallel_boruvka(tree, 1, 1, weights, False)


def _oineus(points: Tensor) -> object:
    distances = squareform(pdist(points.numpy()))  # it takes points of few coordinates only
    return import_module("oineus").compute_diagrams_vr(distances, from_pwdists=True, max_dim=1)


OURS, ALL, SELECTION, EVERY_BAR = "ours", "ours, all bars", "published", "published, all bars"
PROMINENT, EVERY = BarcodeRegularizer(), BarcodeRegularizer("all")
WAYS: dict[str, Way] = {
    OURS: Way(_step(lambda x: PROMINENT(x).loss)),
    ALL: Way(_step(lambda x: EVERY(x).loss)),
    SELECTION: Way(_step(entropy_of_selected), "gudhi", 2048, "recursion, one level a bar"),
    EVERY_BAR: Way(_step(entropy_of_all), "gudhi", 8192, "a simplex an edge"),
    "gudhi": Way(bars_by_gudhi, "gudhi", 2048, "a simplex an edge"),
    "ripser": Way(_ripser, "ripser", 8192, "n² distances", exact=False),
    "giotto-ph": Way(_giotto, "gph", 8192, "n² distances", exact=False),
    "torch-topological": Way(_torch_topological, "torch_topological", 2048, "n² distances"),
    "Oineus": Way(_oineus, "oineus", 2048, "a simplex an edge"),
    "quitefastmst": Way(_quitefastmst, "quitefastmst", 50_000, "n² distances", exact=False),
    "fast-hdbscan": Way(_fast_hdbscan, "fast_hdbscan", 8192, "a k-d tree", exact=False),
    "scipy's tree": Way(_scipy, "scipy", 8192, "n² distances"),
    "torch.cdist": Way(lambda x: torch.cdist(x, x), "torch", 8192, "n² distances", exact=False),
}
FORWARD_ONLY = set(WAYS) - {OURS, ALL, SELECTION, EVERY_BAR}


def measure(n: int, repeats: int) -> dict[str, tuple[float, float, float | None]]:
    """Median seconds, least seconds and peak extra MiB of each way at n points."""
    points = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(0))
    seconds: dict[str, list[float]] = {}
    peaks = {}
    for name, way in WAYS.items():
        if find_spec(way.package) is None:
            print(f"  {name}: {way.package} is not installed")
        elif n > way.most:
            print(f"  {name}: not at {n:,} points ({way.note})")
        else:
            peaks[name], first = _peak(lambda run=way.run: run(points))
            seconds[name] = [first] if first > LONG else []
    for _ in range(repeats):
        for name in seconds:
            if not (seconds[name] and seconds[name][0] > LONG):
                seconds[name].append(_turn(lambda run=WAYS[name].run: run(points)))
    return {k: (statistics.median(v), min(v), peaks[k]) for k, v in seconds.items()}


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _turn(run: Callable[[], object]) -> float:
    first = _seconds(run)
    if first > SHORT:
        return first
    number = math.ceil(SHORT / first)
    return timeit.timeit(run, number=number) / number


def _peak(run: Callable[[], object]) -> tuple[float | None, float]:
    """Peak MiB above what was held before (None where the system does not tell), and seconds."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # glibc: what was freed goes back to the system
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts afresh
        before = _status("VmRSS")
    except (OSError, AttributeError):
        return None, _seconds(run)
    seconds = _seconds(run)
    return (_status("VmHWM") - before) / 1024, seconds


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def show(n: int, results: dict[str, tuple[float, float, float | None]]) -> None:
    """Print one size's table."""
    ours = results[OURS][0]
    print(f"\n{n:,} points, d = {WIDTH}")
    print(f"  {'':22}{'median':>11}{'least':>11}{'× ours':>10}{'peak MiB':>10}")
    for name, (median, least, peak) in results.items():
        label = f"{name}{' *' if name in FORWARD_ONLY else ''}{'' if WAYS[name].exact else ' ~'}"
        memory = "" if peak is None else f"{peak:10.0f}"
        print(f"  {label:22}{_time(median):>11}{_time(least):>11}{median / ours:10.2f}{memory}")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds < 1 else f"{seconds:.2f} s"


# Okabe & Ito's colours, told apart by all, and a marker each.
COLOURS = (
    "#000000 #E69F00 #D55E00 #CC79A7 #56B4E9 #009E73 #F0E442 #0072B2 #999999 #882255 "
    "#332288 #117733 #AA4499"
).split()
MARKERS = "osD^vP*Xh<>pd"


def draw(results: dict[int, dict[str, tuple]], out: Path) -> None:
    """The log-log figure: seconds against points."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="points", ylabel="seconds")
    for name, colour, marker in zip(WAYS, COLOURS, MARKERS, strict=True):
        sizes = [n for n in results if name in results[n]]
        label = f"{name} (forward)" if name in FORWARD_ONLY else name
        if sizes:
            line = [results[n][name][0] for n in sizes]
            width = 2.5 if name == OURS else 1.2
            axes.plot(sizes, line, color=colour, marker=marker, label=label, linewidth=width)
    axes.set_xticks(list(results), [f"{n:,}" for n in results])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(which="major", alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark, print its tables and draw the figure."""
    parser = argparse.ArgumentParser(description="time and memory of the barcode regularizer")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--repeats", type=int, default=None, help="by default fewer for larger")
    parser.add_argument("--out", type=Path, default=None, help="where to put the figure")
    arguments = parser.parse_args(argv)

    torch.set_num_threads(1)
    numba = "yes" if COMPILED else "no"
    print(f"torch {torch.__version__}, NumPy {np.__version__}, numba: {numba}")
    print("one thread; ours and the published algorithm forward and backward, * forward only")
    print("~ approximate: distances in float32; the others are exact to float64")
    print("published: a plain transcription of its description, with its scalar loops")
    for n in (64, 2100):  # compile or load
        WAYS[OURS].run(torch.randn(n, 8))
    results = {}
    for n in arguments.sizes:
        repeats = arguments.repeats or max(3, min(25, 20_000 // n))
        results[n] = measure(n, repeats)
        show(n, results[n])
    if arguments.out is not None:
        draw(results, arguments.out)
        print(f"\nfigure: {arguments.out}")


if __name__ == "__main__":
    main()
