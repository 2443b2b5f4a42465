"""Arguments of calls: how they are checked, and the values that they stand for."""
