-- From version 46 to version 47: a link knows the run that its branch ended with.

ALTER TABLE share_links ADD COLUMN run_id TEXT COLLATE "C";
