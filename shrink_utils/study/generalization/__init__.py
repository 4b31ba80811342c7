"""Models that learn a rule and models that learn a short cut."""
