"""A model, a diffusivity and a metric that another package brings."""
