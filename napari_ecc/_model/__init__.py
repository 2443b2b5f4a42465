"""What the panels show: evented state, without Qt and without napari."""
