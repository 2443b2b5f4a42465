"""Curves of labelled regions."""
