"""Trainings followed step by step, and the spaces they end in: who lowers the loss, and how."""
