"""Who calls and what they may: tokens, clients, live policy, and the way of a call."""
