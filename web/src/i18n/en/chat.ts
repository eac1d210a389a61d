// Messages of the conversation's column, and its composer. Ids begin with `chat.`.

export const chat = {};
