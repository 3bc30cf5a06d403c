"""The command line without its work."""
