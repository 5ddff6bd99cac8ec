"""The tables of docflow; `every` has all of them, and each module those of one subject."""
