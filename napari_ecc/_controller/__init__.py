"""From a viewer's layers to the models and back: choosing data, computing, writing layers."""
