"""The fleet as Kubernetes and a GPU exporter show it: API objects, an API server on loopback, exporter pages."""
