"""Training one learner on one problem: trainer, optimisers, checkpoints, and scores to choose settings by."""
