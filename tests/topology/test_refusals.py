"""What topology refuses, in one line that names the argument; and what it reads all the same."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.topology import (
    BarcodeRegularizer,
    barcode,
    class_clouds,
    h0_barcode,
    persistent_entropy,
    prominent_features,
)

X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.arange(8) % 2
D = torch.cdist(X, X)
NAN, ZERO = X.clone(), X.clone()
NAN[3, 2], ZERO[[4, 6]] = math.nan, 0.0
MASKED = np.ma.masked_array(X.numpy(), mask=np.eye(8, 4))
CLOUD = [
    (NAN, r"of shape \(8, 4\) has NaN or infinity in 1 row\(s\), the first of them row 3"),
    (X / 0, "has NaN or infinity in 8 row"),
    (X[None], r"must have two axes .*\(1, 8, 4\)"),
    (X.to(torch.complex64), "must hold real numbers.*torch.complex64"),
    (X.to_sparse(), "in a dense tensor.*torch.sparse_coo"),
    (X.to(torch.float8_e4m3fn), "of 16 bits or more.*float8_e4m3fn"),
    (MASKED, r"is a masked array of shape \(8, 4\) with 4 masked value"),
    (pd.DataFrame({"text": ["a", "b"]}), "must hold real numbers, got dtype"),
    ([[1.0], [1.0, 2.0]], "is not a matrix of numbers"),
]


def _by(metric, bars_of):
    return lambda points: bars_of(points, metric=metric)


def _of(selection="prominent", **options):
    return lambda _: BarcodeRegularizer(selection, **options)


REFUSED = [
    *((f, x, match) for f in (h0_barcode, barcode, BarcodeRegularizer()) for x, match in CLOUD),
    *((_by("cosine", f), ZERO, "2 zero row.* first at row 4") for f in (h0_barcode, barcode)),
    *((_by("cosine", f), NAN, "NaN or infinity") for f in (h0_barcode, barcode)),
    *(
        (_by("precomputed", f), d, match)
        for f in (h0_barcode, barcode)
        for d, match in [
            (D[:, :-1], r"square matrix of distances for metric='precomputed'; got \(8, 7"),
            (-D, "hold a negative distance"),
            (D + torch.arange(8) / 8, "no symmetric matrix"),
            (D + torch.eye(8), "distance of a point from itself, 1.0: the diagonal must be 0"),
            (D * math.nan, "NaN or infinity"),
        ]
    ),
    *(
        (f, X[:, :0], r"1 column\(s\), got shape \(8, 0")
        for f in (BarcodeRegularizer(), class_clouds)
    ),
    (lambda x: h0_barcode(x, metric="manhattan"), X, "metric: no metric 'manhattan' .*cosine"),
    (lambda x: barcode(x, max_dim=-1), X, "max_dim must be a whole number"),
    (lambda x: barcode(x, max_dim=1.5), X, "max_dim must be a whole number"),
    *(
        (f, x, match)
        for f in (persistent_entropy, prominent_features)
        for x, match in [
            ([1.0, -1.0], "lengths .*found -1.0 at index 1"),
            ([1.0, math.nan], "lengths .*found nan at index 1"),
            ([1.0, math.inf], "lengths .*found inf at index 1"),
            (torch.ones(2, 3), r"lengths .*\(2, 3\)"),
        ]
    ),
    (lambda x: prominent_features(x, rule="ratios"), torch.ones(3), "no rule .* mean 'ratio'"),
    (_of("some"), X, "selection: no selection 'some' .*prominent, all, random"),
    (_of(rule="longest"), X, "rule: no rule 'longest'"),
    (_of(weight=math.nan), X, "weight must be a finite number; got nan"),
    (_of(weight="1"), X, "weight must be a finite number; got '1'"),
    (_of(weight=[1.0]), X, "weight must be a finite number"),
    (_of(weight=torch.ones(2)), X, "weight must be a finite number"),
    (_of(weight=torch.ones((), requires_grad=True)), X, "weight must be a number; got a tensor to"),
    (_of(unselected_l2=math.inf), X, "unselected_l2 must be a finite number; got inf"),
    (_of(homology_dim=-1), X, "homology_dim must be a whole number"),
    (_of(homology_dim=0.5), X, "homology_dim must be a whole number"),
    *(
        (lambda y, f=f: f(X, y), y, match)
        for f in (BarcodeRegularizer(), class_clouds)
        for y, match in [
            (Y[:5], r"labels must hold one class per row .*\(5,\) beside .*\(8, 4\)"),
            (Y[:, None], r"labels must hold one class per row .*\(8, 1\)"),
            (Y.double(), "labels must be whole numbers.*labels=None"),
            (Y - 1, "labels must be 0 or more, or -100 .*got -1"),
            (["a", "b"] * 4, "labels, one whole number per class, must hold real numbers"),
            ([None] * 8, "labels, one whole number per class, must hold real numbers"),
        ]
    ),
]


@pytest.mark.parametrize(("call", "argument", "match"), REFUSED)
def test_bad_input_is_refused_in_one_line(call, argument, match):
    with pytest.raises(ValueError, match=match) as error:
        call(argument)
    assert "\n" not in str(error.value)
