"""Holdings on a real Redis and a real BIND, with calls brought into every order."""
