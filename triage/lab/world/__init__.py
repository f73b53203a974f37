"""Replicas, a gateway and users in one virtual time, and the record of what each request met."""
