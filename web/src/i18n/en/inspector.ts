// Messages of the inspector. Ids begin with `inspector.`.

export const inspector = {};
