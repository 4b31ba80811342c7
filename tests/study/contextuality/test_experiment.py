"""Units of the contextuality measures, against their definitions and the code they repeat."""

from __future__ import annotations

import pytest
import torch
from sklearn.decomposition import TruncatedSVD

from shrink_utils.study import load_profile
from shrink_utils.study.contextuality.experiment import measure_contextuality, released_mev


@pytest.mark.parametrize("shape", [(5, 9), (40, 6), (2, 3)])
def test_the_released_share_is_that_of_truncated_svd(shape):
    x = torch.randn(*shape, dtype=torch.float64) + 0.5
    model = TruncatedSVD(n_components=1, algorithm="arpack").fit(x.numpy())
    assert released_mev(x) == pytest.approx(model.explained_variance_ratio_[0], rel=1e-9)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(tmp_path_factory.mktemp("results")))
        return measure_contextuality(load_profile("smoke"))


def test_every_layer_has_every_quantity_of_the_same_units(table):
    of_layer = table.groupby(["quantity", "layer"]).item.agg(list)
    for quantity in ("avg_sim", "intra_sim", "mev"):
        assert of_layer[quantity, 0] == of_layer[quantity, 1] == of_layer[quantity, 2]
    assert len(of_layer["avg_sim", 0]) == 48
    assert of_layer["mev_released", 1] == of_layer["mev", 1]
    assert ("mev_released", 0) not in of_layer.index


def test_a_units_baseline_is_that_of_its_layer(table):
    per_layer = table.dropna(subset="baseline").groupby(["quantity", "layer"]).baseline.nunique()
    assert (per_layer == 1).all()
    intra = table[table.quantity == "intra_sim"].groupby("layer").baseline.first()
    pseudo = table[table.quantity == "avg_sim"].groupby("layer").value.mean()
    assert intra.to_numpy() == pytest.approx(pseudo.to_numpy(), abs=1e-2)
