"""What a type checker knows of the library's calls: `make types`."""

from typing import assert_type

import torch
from torch import Tensor

from shrink_utils import geometry as g
from shrink_utils import topology as t
from shrink_utils.topology.barcodes import Barcode, H0Barcode
from shrink_utils.training.penalties import IsoScoreStar, SIGReg, SpectralEntropy

x: Tensor = torch.randn(32, 4)
labels = torch.arange(32) % 2

assert_type(t.h0_barcode(x), H0Barcode)
assert_type(t.h0_barcode(x).lengths, Tensor)
assert_type(t.barcode(x, max_dim=1), list[Barcode])
assert_type(t.persistent_entropy(x[0]), Tensor)
assert_type(t.prominent_features(x[0]), Tensor)
t.h0_barcode(x, metric="cosine")
added = t.BarcodeRegularizer("all", weight=2.0)(x, labels)
for term in (IsoScoreStar(), SIGReg(), SpectralEntropy()):
    term(x, labels)

assert_type(g.avg_sim(x).value, float)
assert_type(g.anisotropy(x, k=1, center=True), Tensor)
assert_type(g.iso_score(x), float)
assert_type(g.effective_rank(x), float)
assert_type(g.participation_ratio(x), float)
assert_type(g.partition_isotropy(x), float)
assert_type(g.rogue_dimensions(x), Tensor)
assert_type(g.intrinsic_dimension(x), float | tuple[float, float])
assert_type(g.self_sim(x, labels).value, float)
assert_type(g.intra_sim(x, labels).value, float)
assert_type(g.rsa(x, x), float)
assert_type(g.cca(x, x), Tensor)
assert_type(g.svcca(x, x), float)
assert_type(g.pwcca(x, x), float)
assert_type(g.cka(x, x), float)
assert_type(g.mutual_knn(x, x), float)
assert_type(g.procrustes(x, x)(x), Tensor)
assert_type(g.whitening(x)(x), Tensor)
assert_type(g.all_but_the_top(x)(x), Tensor)
assert_type(g.random_rotation(x)(x), Tensor)
assert_type(g.search(x, k=2).rows, Tensor)
assert_type(g.search(x, k=2).recall(labels), Tensor)
