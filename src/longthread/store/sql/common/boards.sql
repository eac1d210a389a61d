-- name: insert_board
INSERT INTO boards (id, user_id, title, created_at, updated_at) VALUES (:id, :user_id, :title, :now, :now);

-- name: touch_board
-- Locks it, before what decides is read.
UPDATE boards SET updated_at = :now WHERE id = :id AND user_id = :user_id;

-- name: select_boards
SELECT b.id, b.user_id, b.title, b.refresh_every, b.refreshed_at, b.given, b.created_at, b.updated_at,
       (SELECT count(*) FROM board_cards c WHERE c.board_id = b.id) AS cards
FROM boards b WHERE b.user_id = :user_id ORDER BY b.created_at, b.id;

-- name: select_board
SELECT * FROM boards WHERE id = :id AND (user_id = :user_id OR CAST(:user_id AS TEXT) IS NULL);

-- name: update_board
UPDATE boards SET title = :title, refresh_every = :refresh_every, refreshed_at = :refreshed_at, given = :given
WHERE id = :id;

-- name: refresh_board
-- Its schedule was carried out.
UPDATE boards SET refreshed_at = :now WHERE id = :id;

-- name: delete_board
DELETE FROM boards WHERE id = :id AND user_id = :user_id;

-- name: insert_card
-- Behind the others.
INSERT INTO board_cards
    (id, board_id, place, title, question, asked_in, entry_id, source, sql, parameters, look, result, read_at, revision)
SELECT :id, :board_id, coalesce(max(place), 0) + 1, :title, :question, :asked_in, :entry_id, :source, :sql, '[]', :look, :result,
       :read_at, 1
FROM board_cards WHERE board_id = :board_id;

-- name: select_cards bulky
-- `thread_id` is the conversation that they come from, as long as that is the user's.
SELECT c.*, t.id AS thread_id
FROM board_cards c JOIN boards b ON b.id = c.board_id LEFT JOIN threads t ON t.id = c.asked_in AND t.user_id = b.user_id
WHERE c.board_id = :board_id AND (c.id = :id OR CAST(:id AS TEXT) IS NULL) ORDER BY c.place, c.id;

-- name: place_card
UPDATE board_cards SET place = :place WHERE id = :id AND board_id = :board_id;

-- name: update_card
UPDATE board_cards SET title = :title, look = :look WHERE id = :id AND board_id = :board_id;

-- name: ask_card_anew
-- What is asked has changed.
UPDATE board_cards SET sql = :sql, parameters = :parameters, revision = revision + 1 WHERE id = :id AND board_id = :board_id;

-- name: give_cards
-- Other values for their parameters.
UPDATE board_cards SET revision = revision + 1 WHERE board_id = :board_id;

-- name: save_card_result
UPDATE board_cards SET result = :result, read_at = :read_at, error = NULL WHERE id = :id AND revision = :revision;

-- name: save_card_error
UPDATE board_cards SET error = :error WHERE id = :id AND revision = :revision;

-- name: delete_card
DELETE FROM board_cards WHERE id = :id AND board_id = :board_id;

-- name: count_cards_of_thread
-- And the links that show one of its results.
SELECT (SELECT count(*) FROM board_cards c WHERE c.asked_in = :thread_id) AS board_cards,
       (SELECT count(*) FROM board_link_threads s WHERE s.asked_in = :thread_id) AS board_links;

-- name: delete_board_links_of_thread
-- Links that show a result of the thread.
DELETE FROM board_links WHERE id IN (SELECT s.link_id FROM board_link_threads s WHERE s.asked_in = :thread_id);

-- name: delete_cards_of_thread
DELETE FROM board_cards WHERE asked_in = :thread_id;

-- name: insert_board_link
INSERT INTO board_links (id, board_id, user_id, token_hash, shown, created_at, expires_at)
VALUES (:id, :board_id, :user_id, :token_hash, :shown, :created_at, :expires_at);

-- name: select_threads_of_board
SELECT DISTINCT asked_in FROM board_cards WHERE board_id = :board_id AND asked_in IS NOT NULL ORDER BY asked_in;

-- name: insert_board_link_threads
INSERT INTO board_link_threads (link_id, asked_in)
SELECT DISTINCT CAST(:link_id AS TEXT), asked_in FROM board_cards WHERE board_id = :board_id AND asked_in IS NOT NULL;

-- name: select_board_links
SELECT id, board_id, created_at, expires_at FROM board_links
WHERE board_id = :board_id AND (expires_at IS NULL OR expires_at > :now) ORDER BY created_at, id;

-- name: select_board_link bulky
SELECT shown FROM board_links WHERE token_hash = :token_hash AND (expires_at IS NULL OR expires_at > :now);

-- name: delete_board_link
DELETE FROM board_links WHERE board_id = :board_id AND id = :id;

-- name: delete_expired_board_links
DELETE FROM board_links WHERE board_id = :board_id AND expires_at <= :now;

-- name: select_boards_without_job
-- Boards with a schedule that no job carries out, as they come with a copy of another store.
SELECT b.id FROM boards b
WHERE b.refresh_every IS NOT NULL AND NOT EXISTS (SELECT 1 FROM background_jobs j WHERE j.kind = :kind AND j.subject = b.id)
ORDER BY b.id;

-- name: delete_board_jobs_of_user
DELETE FROM background_jobs WHERE kind = :kind AND subject IN (SELECT b.id FROM boards b WHERE b.user_id = :user_id);
