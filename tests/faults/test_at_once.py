"""Two processes on the same results: each run is computed once, and both come to the same end."""

import pytest

from shrink_utils.study.runs import load_run

pytestmark = pytest.mark.nightly


def test_two_ablations_at_once_share_the_runs(shrink, tmp_path):
    both = [shrink(tmp_path, "ablate") for _ in range(2)]
    ended = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert all("4 runs in" in printed for printed, _ in ended)
    found = {path.name for path in (tmp_path / "small" / "runs").iterdir()}
    runs = {name for name in found if "." not in name}
    assert len(runs) == 4
    assert found == runs | {f"{name}.model" for name in runs}  # no .part, no .damaged
    assert all(len(load_run(tmp_path / "small" / "runs" / name).history) for name in runs)


@pytest.mark.timeout(1800)
def test_two_makes_at_once_both_end_with_the_claims(tmp_path, clone_into, start_study):
    clone = clone_into(tmp_path / "shrink")
    both = [start_study(clone) for _ in range(2)]
    ended = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert all("Study smoke is complete" in printed for printed, _ in ended)
    assert sum("waiting until it ends" in printed for printed, _ in ended) == 1
    assert sum("Nothing to run" in printed for printed, _ in ended) == 1
    assert not list((clone / "results").rglob("*.part*"))
