"""STS-B with treated vectors: on made-up pairs, and on a made-up file in GLUE's layout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from shrink_utils.geometry import principal_axes
from shrink_utils.study import load_profile
from shrink_utils.study.finetuned.stsb import (
    has_stsb,
    measure_stsb_after_finetuning,
    treated_spearman,
)

WORDS = "cat dog sun rain tree river stone bird road house light music winter paper".split()


@pytest.fixture
def glue(tmp_path, monkeypatch):
    """Sixty pairs that share between none and all of their five words."""
    rng, lines = np.random.default_rng(0), ["index\tsentence1\tsentence2\tscore"]
    for i in range(60):
        first, second = rng.permutation(WORDS)[:5], rng.permutation(WORDS)[:5]
        second[: i % 6] = first[: i % 6]
        lines.append(f"{i}\t{' '.join(first)}\t{' '.join(second)}\t{i % 6}.000")
    folder = tmp_path / "glue" / "STS-B"
    folder.mkdir(parents=True)
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path / "glue"))
    return folder


def _pairs(n=80, d=30):
    """Cosines that people's scores follow, hidden under one long direction that all share."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(n, d, generator=generator, dtype=torch.float64)
    alike = torch.rand(n, 1, generator=generator, dtype=torch.float64)
    second = alike * first + (1 - alike) * torch.randn(n, d, generator=generator).double()
    x = torch.cat([first, second])
    x[:, 0] = 30 * torch.randn(2 * n, generator=generator)
    return x, alike.flatten().numpy()


def test_spearman_is_that_of_cosines_of_treated_vectors():
    x, scores = _pairs()
    table = treated_spearman(x, scores).set_index(["treatment", "removed", "skipped"])
    treated = principal_axes(x).treatment(remove=3)(x).numpy()
    first, second = treated[:80], treated[80:]
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    expected = spearmanr((first * second).sum(1) / norms, scores).statistic
    assert table.spearman["global", 3, 0] == pytest.approx(expected, abs=1e-12)


def test_removing_the_long_direction_uncovers_what_it_hid():
    table = treated_spearman(*_pairs()).set_index(["treatment", "removed", "skipped"])
    assert table.spearman["untreated", 0, 0] < 0.5 < table.spearman["global", 1, 0]
    assert table.isotropy["untreated", 0, 0] < table.isotropy["global", 1, 0] <= 0


def test_every_arm_is_measured_once_beside_the_pretrained_encoder(glue, finished):
    table = measure_stsb_after_finetuning(finished)
    assert table.groupby(["arm", "seed"]).ngroups == 3
    assert set(table.arm) == {"pretrained", "none", "all"} and set(table.n) == {60}
    untreated = table[table.treatment == "untreated"].spearman
    assert (untreated > 0.3).all()  # shared words are alike even to random weights


def test_stsb_is_at_hand_where_its_folder_is(glue):
    assert has_stsb(load_profile("quick"))


def test_stsb_is_not_at_hand_in_a_folder_without_it(glue):
    for path in glue.iterdir():
        path.unlink()
    glue.rmdir()
    assert not has_stsb(load_profile("quick"))


def test_without_a_folder_only_profiles_on_glue_look_for_it(monkeypatch, tmp_path):
    monkeypatch.delenv("SHRINK_GLUE_DIR", raising=False)
    monkeypatch.setattr("shrink_utils.study.finetuned.stsb.glue_dir", lambda: None)
    assert not has_stsb(load_profile("quick"))
    assert has_stsb(load_profile("glue"))
