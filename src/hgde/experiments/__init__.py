"""Many runs: searches, comparisons, the tables of the paper, the demonstration. All go through :mod:`.jobs`."""
