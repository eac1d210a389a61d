"""What Acme adds to Longthread: see `plugin`."""
