"""Trainings followed step by step: which parameters lower the loss."""
