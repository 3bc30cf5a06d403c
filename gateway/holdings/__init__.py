"""Who holds a hostname, and what an ownership may do with it: records, certificates, claims."""
