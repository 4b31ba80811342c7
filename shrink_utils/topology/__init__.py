"""Points → bars → prominent bars → a differentiable loss.

The method is that of *Shrink the longest* (Kudriashov et al. 2025, arXiv 2501.05502).
"""

from shrink_utils.topology.barcodes import Barcode, H0Barcode, barcode, h0_barcode
from shrink_utils.topology.entropy import persistent_entropy
from shrink_utils.topology.regularizer import BarcodeRegularizer, RegularizerOutput, class_clouds
from shrink_utils.topology.selection import prominent_features

__all__ = [
    "Barcode",
    "BarcodeRegularizer",
    "H0Barcode",
    "RegularizerOutput",
    "barcode",
    "class_clouds",
    "h0_barcode",
    "persistent_entropy",
    "prominent_features",
]
