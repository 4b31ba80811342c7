"""How a run lives: its identity, its folder, where it is computed, and tables measured once."""
