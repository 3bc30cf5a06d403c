"""What was found, as rows and words for a person: shared by the command line and the page.

Pure: no I/O, nothing of a terminal or of HTTP. Shows no key.
"""
