"""Where engines are: each module yields the whole set of addresses whenever it changes."""
