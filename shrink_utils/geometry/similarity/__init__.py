"""Is one space like another? One file per family of measures, and grids of layers."""
