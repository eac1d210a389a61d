-- From version 33 to version 34. What was in this table has been unpacked before (longthread.store.backends.old_bundles).
DROP TABLE run_bundles;
