"""The demo: the whole path on this machine, asked, compared and shown as a table."""
