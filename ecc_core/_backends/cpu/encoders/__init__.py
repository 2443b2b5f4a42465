"""Encoders, which turn the values of an image into keys."""
