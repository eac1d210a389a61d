"""Export, import and copy of threads and stores."""
