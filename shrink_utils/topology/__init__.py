"""Points → bars → prominent bars → a differentiable loss.

The method is that of *Shrink the longest* (Kudriashov et al. 2025, arXiv 2501.05502).
"""

from shrink_utils.topology.barcodes import (
    barcode as barcode,
    h0_barcode as h0_barcode,
)
from shrink_utils.topology.entropy import (
    persistent_entropy as persistent_entropy,
    prominent_features as prominent_features,
)
from shrink_utils.topology.regularizer import (
    BarcodeRegularizer as BarcodeRegularizer,
    class_clouds as class_clouds,
)
