-- name: lock_user
-- Until the end of the transaction, so that of many questions at once no more begin than the user may have runs.
SELECT 1 AS locked FROM (SELECT pg_advisory_xact_lock(hashtextextended(:user_id, 26))) AS held;
