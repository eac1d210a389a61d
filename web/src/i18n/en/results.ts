// Messages of results and receipts. Ids begin with `results.`.

export const results = {};
