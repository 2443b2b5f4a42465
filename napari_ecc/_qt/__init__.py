"""Panels and plots, which display models and emit signals, and compute nothing."""
