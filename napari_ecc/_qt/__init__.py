"""Panels and plots: they show models and pass on what the user does, and compute nothing."""
