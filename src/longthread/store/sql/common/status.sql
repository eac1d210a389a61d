-- name: count_runs
SELECT count(*) AS runs, coalesce(sum(CASE WHEN w.id IS NOT NULL THEN 1 ELSE 0 END), 0) AS live
FROM runs r LEFT JOIN workers w ON w.id = r.owner;
