"""Controllers connect the layers of a viewer with the models."""
