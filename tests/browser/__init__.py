"""The operator's page in Chromium, as a person sees and uses it, on the lab's real servers."""
