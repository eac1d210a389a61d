-- Who asked, beside whose the conversation is: a project's has several members. NULL: the conversation's user.
ALTER TABLE runs ADD COLUMN asker TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN key_id TEXT COLLATE "C";
ALTER TABLE queued_questions ADD COLUMN asker TEXT COLLATE "C";
ALTER TABLE queued_questions ADD COLUMN key_id TEXT COLLATE "C";
