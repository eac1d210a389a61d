-- name: select_leases
SELECT r.id
FROM json_each(:leases) l
CROSS JOIN runs r ON r.thread_id = json_extract(l.value, '$[0]') AND r.id = json_extract(l.value, '$[1]')
WHERE r.owner = json_extract(l.value, '$[2]') AND r.status = 'running';

-- name: insert_texts
INSERT INTO events (thread_id, run_id, seq, type, data, at)
SELECT json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]'), json_extract(e.value, '$[2]'), 'text',
       json_extract(e.value, '$[3]'), json_extract(e.value, '$[4]')
FROM json_each(:texts) e WHERE true
ON CONFLICT (thread_id, run_id, seq) DO NOTHING;
