"""Numbers of cells of each kind, of images and of labelled regions."""
