"""What `scripts/golden` and the golden tests share: the encoding of the cases, and how each kind of case is run."""
