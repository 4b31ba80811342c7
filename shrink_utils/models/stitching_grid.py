"""Stitches between many pairs of layers in one call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from shrink_utils.models.stitching import Map, Reading, Stitched, identity, stitched
from shrink_utils.models.stitching_maps import MapTraining, least_squares_maps, train_map
from shrink_utils.names import unknown_name

__all__ = ["MAPS", "stitch_grid"]

MAPS = ("identity", "affine", "trained")

LayerPair = tuple[int, int]


def stitch_grid(
    front: Reading,
    back: Reading,
    kind: str,
    *,
    fitted_on: tuple[Reading, Reading] | None = None,
    layers: Sequence[LayerPair] | None = None,
    training: MapTraining | None = None,
    seed: int = 0,
    on_stitch: Callable[[], object] | None = None,
) -> list[Stitched]:
    """Stitch every layer of one model to every layer of another.

    Parameters
    ----------
    front, back : Reading
        Of the batches that stitches are judged on.
    kind : {"identity", "affine", "trained"}
        Nothing (models of one width), least squares on token states, or LayerNorm + affine trained
        on the loss of the stitched model.
    fitted_on : (Reading, Reading), optional
        Of front and back, of the batches that maps are fitted to. Not for "identity".
    layers : sequence of (int, int), optional
        Pairs (front layer, back layer); all of them by default.
    training : MapTraining, optional
        Of "trained" maps; that of the paper by default.
    seed : int
        Of "trained" maps.
    on_stitch : callable, optional
        Called after each stitch, as for a progress bar.

    Returns
    -------
    list of Stitched
        One a pair, ordered by front layer.

    Raises
    ------
    ValueError
        An unknown kind, nothing to fit a map to, or what `stitched` refuses.

    Notes
    -----
    The lower layers are not run again: a `Reading` holds their states. All least-squares maps from
    one layer of the front share one decomposition.
    """
    if kind not in MAPS:
        raise unknown_name("kind", "map", kind, MAPS)
    if kind != "identity" and fitted_on is None:
        raise ValueError(f"fitted_on: none, expected readings to fit {kind} maps to")
    if layers is None:
        layers = [(i, j) for i in range(front.depth + 1) for j in range(back.depth + 1)]
    results = []
    for (i, j), phi in _maps(kind, fitted_on, sorted(layers), training or MapTraining(), seed):
        results.append(stitched(front, back, phi, front_layer=i, back_layer=j))
        if on_stitch is not None:
            on_stitch()
    return results


def _maps(
    kind: str,
    fitted_on: tuple[Reading, Reading] | None,
    layers: Sequence[LayerPair],
    training: MapTraining,
    seed: int,
) -> Iterator[tuple[LayerPair, Map]]:
    """Each pair of layers with its map, one front layer's maps at a time."""
    back_layers = defaultdict(list)
    for i, j in layers:
        back_layers[i].append(j)
    for i, js in back_layers.items():
        if kind == "identity":
            maps = [identity] * len(js)
        elif kind == "affine":
            maps = least_squares_maps(*fitted_on, front_layer=i, back_layers=js)
        else:
            maps = (
                train_map(*fitted_on, front_layer=i, back_layer=j, training=training, seed=seed)
                for j in js
            )
        for j, phi in zip(js, maps, strict=True):
            yield (i, j), phi
