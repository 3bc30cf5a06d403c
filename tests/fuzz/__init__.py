"""Whatever anybody sends: every reader of foreign bytes, fed with damaged and made-up input."""
