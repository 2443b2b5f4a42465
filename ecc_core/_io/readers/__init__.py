"""Readers of file formats, one module each. A reader opens a file and describes its image."""
