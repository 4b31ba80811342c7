"""A full disk and a folder that cannot be written: one clear line, and nothing half-written."""

import pytest

from shrink_utils.study.runs import _load_model, load_run

pytestmark = [pytest.mark.usefixtures("can_mount"), pytest.mark.nightly]


def test_a_disk_that_is_read_only_or_full_is_named_and_with_more_space_the_study_goes_on(
    with_mounts, tmp_path
):
    """6 MB hold the first run with its model (4 MB) and not the second one."""
    kept, disk = tmp_path / "kept", tmp_path / "disk"
    kept.mkdir()
    disk.mkdir()
    done = with_mounts(
        disk,
        f"""
        mount -t tmpfs -o size=6m,ro tmpfs $RESULTS
        $SHRINK ablate && exit 9
        ls $RESULTS > {kept}/nothing
        mount -o remount,rw $RESULTS
        $SHRINK ablate && exit 9
        find $RESULTS -name '*.part*' -o -name '*.damaged*' > {kept}/left
        ls $RESULTS/small/runs > {kept}/after
        mount -o remount,size=100m $RESULTS
        $SHRINK ablate
        cp -r $RESULTS/small/runs {kept}/runs
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("shrink: ") == 2 and "Traceback" not in done.stderr
    assert "shrink: [Errno 30] Read-only file system" in done.stderr
    assert str(disk / "small") in done.stderr and "No space left on device" in done.stderr
    assert (kept / "nothing").read_text() == (kept / "left").read_text() == ""
    left, found = (kept / "after").read_text().split(), sorted((kept / "runs").iterdir())
    first = [name for name in left if not name.endswith(".failed.log")]  # gone once they are made
    models = [path for path in found if path.suffix == ".model"]
    runs = [path for path in found if path not in models]
    assert 2 <= len(first) < len(found) and len(models) == len(runs) == 4
    assert {path.name for path in found} > set(first)
    for run, model in zip(runs, models, strict=True):  # every byte as its manifest says
        assert load_run(run) and _load_model(model).is_dir()
