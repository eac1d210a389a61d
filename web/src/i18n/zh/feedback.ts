import type { feedback as en } from "../en/feedback";

export const feedback: Record<keyof typeof en, string> = {
  "feedback.title": "你觉得这个回答怎么样？",
  "feedback.up": "回答得好",
  "feedback.down": "回答得不好",
  "feedback.add": "说说原因",
  "feedback.why.up": "好在哪里？（选填）",
  "feedback.why.down": "哪里不对？（选填）",
  "feedback.save": "保存",
  "feedback.close": "取消",
};
