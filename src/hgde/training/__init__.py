"""Training: tasks, trainer, checkpoints, and runs of several seeds."""
