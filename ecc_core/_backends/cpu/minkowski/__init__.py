"""Numbers of cells by kind: of images and of labelled regions."""
