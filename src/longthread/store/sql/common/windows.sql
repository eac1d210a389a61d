-- name: select_window
SELECT tokens FROM context_windows WHERE model = :model AND endpoint = :endpoint AND assumed = :assumed
  AND learned_at >= :since;

-- name: save_window
INSERT INTO context_windows (model, endpoint, assumed, tokens, learned_at)
VALUES (:model, :endpoint, :assumed, :tokens, :learned_at)
ON CONFLICT (model, endpoint, assumed) DO UPDATE SET tokens = excluded.tokens, learned_at = excluded.learned_at;

-- name: select_model_protocol
SELECT protocol FROM model_protocols WHERE model = :model AND endpoint = :endpoint;

-- name: select_model_protocols
SELECT model, protocol FROM model_protocols ORDER BY probed_at;

-- name: put_model_protocol
INSERT INTO model_protocols (model, endpoint, protocol, probed_at) VALUES (:model, :endpoint, :protocol, :probed_at)
ON CONFLICT (model, endpoint) DO UPDATE SET protocol = excluded.protocol, probed_at = excluded.probed_at;
