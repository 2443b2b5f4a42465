"""Requests: every check of an argument is in this package."""
