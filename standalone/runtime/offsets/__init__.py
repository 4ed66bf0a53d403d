"""Source offsets: the journal, what may be stored of them when, and how operators see, change and exchange them."""
