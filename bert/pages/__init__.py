"""Pages to look at in a browser, each one file that asks nothing of any server."""
