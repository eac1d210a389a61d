-- System messages of a conversation can be recalled: they get vectors with the thread's next pass, or by `longthread db index`.
UPDATE recall_embedded SET last_seq = 0, refused = 0;
