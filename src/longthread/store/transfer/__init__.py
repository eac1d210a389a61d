"""Export, import and copy of threads and stores, and import of the databases of other programs."""
