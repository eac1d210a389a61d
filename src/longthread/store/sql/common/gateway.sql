-- name: select_known_replies
-- Those of one conversation and the newest few others: what many conversations have in common has as many rows. The nodes
-- are found first (MATERIALIZED, CROSS): otherwise a planner without statistics reads all conversations of the user.
WITH n AS MATERIALIZED (
    SELECT thread, node, seq, call, place FROM gateway_nodes WHERE node AMONG_NUMBERS[:nodes] AND call > 0
)
SELECT node, thread_id, seq, call, place, updated_at, tip, client FROM (
    SELECT n.node, t.id AS thread_id, n.seq, n.call, n.place, t.updated_at, t.tip, coalesce(c.client, '') AS client,
           row_number() OVER (
               PARTITION BY n.node
               ORDER BY CASE WHEN t.id = CAST(:own AS TEXT) THEN 0 ELSE 1 END,
                        CASE WHEN c.client = CAST(:client AS TEXT) THEN 0 ELSE 1 END, t.updated_at DESC, n.seq DESC
           ) AS newest
    FROM n CROSS JOIN threads t LEFT JOIN thread_clients c ON c.thread_id = t.id
    WHERE t.number = n.thread AND t.user_id = :user_id AND n.seq >= t.first_seq
      AND (t.expires_at IS NULL OR t.expires_at > :now)
) found
WHERE newest <= 32;

-- name: select_thread_nodes
SELECT n.node, n.seq, n.call, t.tip FROM gateway_nodes n JOIN threads t ON t.number = n.thread
WHERE t.id = :thread_id AND n.node AMONG_NUMBERS[:nodes] AND n.place = 0 AND n.seq >= t.first_seq
  AND (t.expires_at IS NULL OR t.expires_at > :now);

-- name: select_gateway_call
SELECT c.thread_id, c.n, c.response_id, coalesce(c.dialect, f.dialect) AS dialect, coalesce(c.upstream, f.upstream) AS upstream,
       coalesce(c.family, f.family) AS family, coalesce(c.model, f.model) AS model, c.frame, c.tools, c.status, c.asked_seq,
       c.reply_seq, c.reply_end, c.asked, c.ends, c.previous, c.base, c.hidden, c.hidden_hash, c.restored, c.dropped,
       c.refused, c.usage, c.head, c.started_at, c.elapsed_ms
FROM gateway_calls c LEFT JOIN gateway_frames f ON f.thread_id = c.thread_id AND f.id = c.frame
WHERE c.thread_id = :thread_id AND c.n = :n;

-- name: select_gateway_calls
SELECT c.thread_id, c.n, c.response_id, coalesce(c.dialect, f.dialect) AS dialect, coalesce(c.upstream, f.upstream) AS upstream,
       coalesce(c.family, f.family) AS family, coalesce(c.model, f.model) AS model, c.frame, c.tools, c.status, c.asked_seq,
       c.reply_seq, c.reply_end, c.asked, c.ends, c.previous, c.base, c.hidden, c.hidden_hash, c.restored, c.dropped,
       c.refused, c.usage, c.head, c.started_at, c.elapsed_ms
FROM gateway_calls c LEFT JOIN gateway_frames f ON f.thread_id = c.thread_id AND f.id = c.frame
WHERE c.thread_id = :thread_id AND c.n <= :n ORDER BY c.n;

-- name: select_gateway_calls_among
SELECT c.thread_id, c.n, c.response_id, coalesce(c.dialect, f.dialect) AS dialect, coalesce(c.upstream, f.upstream) AS upstream,
       coalesce(c.family, f.family) AS family, coalesce(c.model, f.model) AS model, c.frame, c.tools, c.status, c.asked_seq,
       c.reply_seq, c.reply_end, c.asked, c.ends, c.previous, c.base, c.hidden, c.hidden_hash, c.restored, c.dropped,
       c.refused, c.usage, c.head, c.started_at, c.elapsed_ms
FROM gateway_calls c LEFT JOIN gateway_frames f ON f.thread_id = c.thread_id AND f.id = c.frame
WHERE c.thread_id = :thread_id AND c.n AMONG_NUMBERS[:numbers] ORDER BY c.n;

-- name: select_gateway_position
-- The thread's last call, the tools of its first one that had any, and whether a frame, a node and a live run are there.
SELECT coalesce(max(n), 0) AS n, coalesce((
    SELECT c.tools FROM gateway_calls c WHERE c.thread_id = :thread_id AND c.tools <> 0 ORDER BY c.n LIMIT 1
), 0) AS tools, EXISTS (SELECT 1 FROM gateway_frames WHERE thread_id = :thread_id AND id = :frame) AS has_frame, EXISTS (
    SELECT 1 FROM gateway_nodes WHERE thread = (SELECT number FROM threads WHERE id = :thread_id)
    AND seq = :seq AND place = 0 AND node = :node AND call = :call
) AS has_node, EXISTS (SELECT 1 FROM runs WHERE thread_id = :thread_id AND status = 'running') AS has_run,
(SELECT CASE WHEN t.user_id = coalesce(CAST(:user_id AS TEXT), t.user_id) THEN c.owner ELSE 'another user' END
 FROM threads t LEFT JOIN thread_clients c ON c.thread_id = t.id WHERE t.id = :thread_id) AS owner
FROM gateway_calls WHERE thread_id = :thread_id;

-- name: insert_gateway_call
INSERT INTO gateway_calls (thread_id, n, response_id, frame, tools, status, asked_seq, reply_seq, reply_end, asked, ends,
                           previous, base, hidden, hidden_hash, restored, dropped, head, started_at, elapsed_ms)
VALUES (:thread_id, :n, :response_id, :frame, :tools, :status, :asked_seq, :reply_seq, :reply_end, :asked, :ends,
        :previous, :base, :hidden, :hidden_hash, :restored, :dropped, :head, :started_at, :elapsed_ms);

-- name: refuse_gateway_calls
UPDATE gateway_calls SET refused = TRUE WHERE thread_id = :thread_id AND n = :n;

-- name: insert_gateway_frame
INSERT INTO gateway_frames (thread_id, id, dialect, upstream, family, model, body)
VALUES (:thread_id, :id, :dialect, :upstream, :family, :model, :body) ON CONFLICT (thread_id, id) DO NOTHING;

-- name: select_gateway_frame
SELECT body FROM gateway_frames WHERE thread_id = :thread_id AND id = :id;

-- name: insert_gateway_node
INSERT INTO gateway_nodes (thread, seq, place, node, call)
VALUES ((SELECT number FROM threads WHERE id = :thread_id), :seq, :place, :node, :call)
ON CONFLICT (thread, seq, place) DO NOTHING;

-- name: extend_expiry
-- Also of the threads above, unless they have expired: what is below goes with them.
WITH RECURSIVE above (id, parent, user_id, depth) AS (
    SELECT id, parent_thread_id, user_id, 0 FROM threads WHERE id = :id
    UNION ALL
    SELECT t.id, t.parent_thread_id, t.user_id, a.depth + 1
    FROM above a JOIN threads t ON t.id = a.parent AND t.user_id = a.user_id WHERE a.depth < 100
)
UPDATE threads SET expires_at = :expires_at
WHERE id IN (SELECT id FROM above) AND (id = :id OR (expires_at > :now AND expires_at < :expires_at));

-- name: put_thread_client
INSERT INTO thread_clients (thread_id, client_type, last_signature, access_count, client, owner)
VALUES (:thread_id, :client_type, :last_signature, 1, :client, :owner)
ON CONFLICT (thread_id) DO UPDATE
SET client_type = excluded.client_type, client = excluded.client, access_count = thread_clients.access_count + 1,
    last_signature = coalesce(excluded.last_signature, thread_clients.last_signature),
    owner = coalesce(thread_clients.owner, excluded.owner);

-- name: select_gateway_owner
SELECT CASE WHEN t.user_id = coalesce(CAST(:user_id AS TEXT), t.user_id) THEN c.owner ELSE 'another user' END AS owner
FROM threads t LEFT JOIN thread_clients c ON c.thread_id = t.id WHERE t.id = :thread_id;

-- name: select_unowned
SELECT 1 AS found FROM thread_clients c JOIN threads t ON t.id = c.thread_id
WHERE c.thread_id = :thread_id AND c.owner IS NULL AND t.user_id = :user_id;

-- name: select_any_unowned
SELECT EXISTS (SELECT 1 FROM thread_clients WHERE owner IS NULL) AS found;

-- name: put_gateway_owner
UPDATE thread_clients SET owner = :owner WHERE thread_id = :thread_id;

-- name: delete_gateway_nodes
DELETE FROM gateway_nodes WHERE thread = (SELECT number FROM threads WHERE id = :thread_id);

-- name: select_gateway_salt
SELECT salt FROM gateway_salt WHERE id = 'owners';

-- name: insert_gateway_salt
INSERT INTO gateway_salt (id, salt) VALUES ('owners', :salt) ON CONFLICT (id) DO NOTHING;

-- name: select_gateway_client
SELECT t.client, count(*) AS calls FROM thread_clients t JOIN gateway_calls c ON c.thread_id = t.thread_id
WHERE t.thread_id = :thread_id GROUP BY t.client;

-- name: prune_gateway_nodes
DELETE FROM gateway_nodes WHERE thread = (SELECT number FROM threads WHERE id = :thread_id) AND seq < :cut;

-- name: prune_gateway_frames
-- Before the calls: those that stay need theirs.
DELETE FROM gateway_frames WHERE thread_id = :thread_id AND id NOT IN (
    SELECT c.frame FROM gateway_calls c WHERE c.thread_id = :thread_id AND coalesce(c.reply_end, c.asked_seq) >= :cut);

-- name: prune_gateway_calls
DELETE FROM gateway_calls WHERE thread_id = :thread_id AND coalesce(reply_end, asked_seq) < :cut;

-- name: select_threads_without_nodes
-- A reply that is hidden whole has no node, and is found by its name alone. A response that was deleted has none.
SELECT t.id, t.user_id FROM threads t WHERE EXISTS (
    SELECT 1 FROM gateway_calls c WHERE c.thread_id = t.id AND (
        c.ends > 0 AND NOT EXISTS (
            SELECT 1 FROM gateway_nodes n WHERE n.thread = t.number AND n.place = 0
            AND n.seq = CASE WHEN c.ends > c.asked THEN c.reply_end ELSE c.asked_seq END)
        OR c.response_id IS NOT NULL AND c.reply_end IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM gateway_nodes n WHERE n.thread = t.number AND n.place = 1 AND n.seq = c.reply_end)));

-- name: forget_response
UPDATE gateway_calls SET response_id = NULL, head = :head WHERE thread_id = :thread_id AND n = :n;

-- name: delete_response_nodes
DELETE FROM gateway_nodes
WHERE thread = (SELECT number FROM threads WHERE id = :thread_id) AND call = :call AND place > 0;
