-- Signatures are relative to a mean and have two bits a number. The old ones are made anew from the vectors: thread by thread
-- behind the turns, or at once by `longthread db index`.
DELETE FROM recall_signatures;
UPDATE recall_embedded SET signed_from = NULL;
