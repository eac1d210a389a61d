// Messages of what people think of answers. They come with the thumbs.

export const feedback = {
  "feedback.title": "What do you think of this answer?",
  "feedback.up": "Good answer",
  "feedback.down": "Bad answer",
  "feedback.add": "Say why",
  "feedback.why.up": "What was good? (optional)",
  "feedback.why.down": "What was wrong? (optional)",
  "feedback.save": "Save",
  "feedback.close": "Cancel",
};
