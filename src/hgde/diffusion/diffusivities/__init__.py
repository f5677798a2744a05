"""The diffusivities, one file each; a new file that registers one is all it takes."""
