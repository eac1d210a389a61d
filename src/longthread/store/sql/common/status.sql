-- name: count_runs
SELECT count(*) AS runs, coalesce(sum(CASE WHEN status = 'running' AND lease_until > :now THEN 1 ELSE 0 END), 0) AS live
FROM runs;
