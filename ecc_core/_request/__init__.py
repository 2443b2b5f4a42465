"""What a call asks for, checked once: every check of an argument is in this package."""
