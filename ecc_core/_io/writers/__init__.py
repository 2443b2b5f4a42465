"""Writers of images, one module for each format. Each takes the array in parts, and a `Grid`."""
