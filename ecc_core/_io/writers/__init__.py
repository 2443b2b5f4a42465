"""Writers of images, one module for each format. A writer takes an array and a `Grid`."""
