"""The systems HGDE is compared with, one file each, written from their papers."""
