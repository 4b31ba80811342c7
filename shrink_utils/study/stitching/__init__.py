"""What it costs to put one model's top on another's bottom."""
