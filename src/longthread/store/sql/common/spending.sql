-- name: add_spending
INSERT INTO access_spending
    (user_id, day, key_id, agent, model, requests, tokens_in, tokens_out, cost, unpriced)
VALUES
    (:user_id, :day, :key_id, :agent, :model, 1, :tokens_in, :tokens_out, :cost, :unpriced)
ON CONFLICT (user_id, day, key_id, agent, model) DO UPDATE SET
    requests = access_spending.requests + 1,
    tokens_in = access_spending.tokens_in + excluded.tokens_in,
    tokens_out = access_spending.tokens_out + excluded.tokens_out,
    cost = access_spending.cost + excluded.cost,
    unpriced = access_spending.unpriced + excluded.unpriced;

-- name: select_budget_of_user
SELECT name, budget, budget_unit, budget_period FROM access_users WHERE id = :user_id AND budget IS NOT NULL;

-- name: select_budget_of_key
SELECT name, budget, budget_unit, budget_period FROM access_keys WHERE id = :key_id AND budget IS NOT NULL;

-- name: select_spent_by_user
SELECT CAST(coalesce(sum(tokens_in + tokens_out), 0) AS BIGINT) AS tokens,
       CAST(coalesce(sum(cost), 0) AS DOUBLE PRECISION) AS money
FROM access_spending WHERE user_id = :id AND day >= :since;

-- name: select_spent_by_key
SELECT CAST(coalesce(sum(tokens_in + tokens_out), 0) AS BIGINT) AS tokens,
       CAST(coalesce(sum(cost), 0) AS DOUBLE PRECISION) AS money
FROM access_spending WHERE key_id = :id AND key_id <> '' AND day >= :since;

-- name: select_spending
SELECT CASE CAST(:by AS TEXT) WHEN 'user' THEN user_id WHEN 'key' THEN key_id WHEN 'agent' THEN agent
            WHEN 'model' THEN model ELSE day END AS subject,
       CAST(sum(requests) AS BIGINT) AS requests,
       CAST(sum(tokens_in) AS BIGINT) AS tokens_in,
       CAST(sum(tokens_out) AS BIGINT) AS tokens_out,
       CAST(sum(cost) AS DOUBLE PRECISION) AS cost,
       CAST(sum(unpriced) AS BIGINT) AS unpriced
FROM access_spending
WHERE day >= :since AND day <= :until AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id)
GROUP BY 1 ORDER BY 1;
