"""What really happened to users: where their time went, and what was broken, from the records of their requests."""
