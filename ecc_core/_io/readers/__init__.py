"""One module a format: each opens a file and says what it holds, or raises what is wrong."""
