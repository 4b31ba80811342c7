"""The first line of every notebook: one profile, its threads, its seed, the house style."""

import gc
from pathlib import Path

import torch
from IPython import get_ipython
from threadpoolctl import threadpool_limits

from shrink_utils.sources import _same_checkout
from shrink_utils.study.figures import use_house_style
from shrink_utils.study.profiles import Profile, load_profile


def setup_notebook(profile: str, *, seed: int = 0) -> Profile:
    """Load a profile and set this process up as it says.

    Threads are set because they change the last digits of sums; the seed is torch's global one,
    for what a notebook draws itself (runs and samplers take their own); `seed` is the study's.
    Raises RuntimeError if the package is not that of the checkout that holds the notebook.
    """
    _same_checkout(Path.cwd())
    loaded = load_profile(profile, seed=seed)
    torch.set_num_threads(loaded.threads)
    threadpool_limits(loaded.threads, user_api="blas")  # NumPy's, which torch does not know
    torch.manual_seed(seed)
    use_house_style()
    check_in_sentences()
    # What is imported by now stays. The Trainer collects garbage after every training, and would
    # look through all of it, for .3 s.
    gc.freeze()
    return loaded


def check_in_sentences() -> None:
    """Make ``%%check``, in a notebook, the first line of a check that stops nothing."""
    if shell := get_ipython():
        shell.register_magic_function(_check, "cell", "check")


def _check(line: str, cell: str) -> None:
    """Cell magic of an exercise's check: say what an answer lacks, and let the chapter go on.

    Whatever the answer raises is said in a sentence: no wrong answer stops *Run All*.

    A name of the chapter that the check uses as well keeps its value.
    """
    shell = get_ipython()
    before = dict(shell.user_ns)
    try:
        shell.ex(cell)
    except AssertionError as error:
        print(f"Not yet. {error}")
    except Exception as error:  # an answer that cannot be run or measured is one more wrong answer
        print(f"Not yet. Your answer ends with {type(error).__name__}: {error}")
    finally:
        shell.user_ns.update(before)
