"""Models of the docks: evented state, without Qt and napari."""
