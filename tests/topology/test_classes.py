"""The clouds of the classes of a batch."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.topology import class_clouds


def _batch():
    embeddings = torch.arange(12, dtype=torch.float32).reshape(6, 2).requires_grad_()
    return embeddings, torch.tensor([4, -1, 4, 0, -1, 4])


def test_each_class_has_its_rows_in_order():
    embeddings, labels = _batch()
    classes, clouds = class_clouds(embeddings, labels)
    assert classes.tolist() == [-1, 0, 4]
    assert [cloud[:, 0].tolist() for cloud in clouds] == [[2, 8], [6], [0, 4, 10]]
    assert {cloud.dtype for cloud in clouds} == {torch.float64}


def test_without_labels_all_rows_are_class_zero():
    embeddings, _ = _batch()
    classes, (cloud,) = class_clouds(embeddings)
    assert classes.tolist() == [0]
    assert torch.equal(cloud, embeddings.double())


def test_a_cloud_hands_its_gradient_to_its_rows():
    embeddings, labels = _batch()
    class_clouds(embeddings, labels)[1][0].sum().backward()
    assert embeddings.grad[:, 0].tolist() == [0, 1, 0, 0, 1, 0]


def test_what_is_no_batch_of_a_classifier_is_an_error():
    embeddings, labels = _batch()
    with pytest.raises(ValueError, match=r"embeddings must .*\(6, 2, 1\)"):
        class_clouds(embeddings[..., None], labels)
    with pytest.raises(ValueError, match="labels must hold one class a row"):
        class_clouds(embeddings, labels[:5])
    with pytest.raises(ValueError, match="labels must be whole numbers"):
        class_clouds(embeddings, labels.double())
    with pytest.raises(ValueError, match=r"embeddings of shape \(6, 2\) .* row 0"):
        class_clouds(embeddings / 0, labels)
