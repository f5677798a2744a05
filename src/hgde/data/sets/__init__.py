"""The data sets, one file each: address, checksums, recipe, split rule, known faults. A new file is all it takes."""
