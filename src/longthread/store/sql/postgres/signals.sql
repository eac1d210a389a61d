-- name: notify
SELECT pg_notify(:channel, payload) FROM json_array_elements_text(CAST(:payloads AS JSON)) AS payload;
