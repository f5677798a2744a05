"""Four estimators in four threads and four processes: memory flat, results those of one alone: ``make soak``."""
