-- Prompts, and what is left of runs, are compressed before they are stored: to try it again gains nothing.

ALTER TABLE prompts ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE runs ALTER COLUMN body SET STORAGE EXTERNAL;
