import type { chart as en } from "../en/chart";

export const chart: Record<keyof typeof en, string> = {
  "chart.title": "修改图表",
  "chart.mark": "类型",
  "chart.x": "横轴",
  "chart.slices": "扇区",
  "chart.y": "数值",
  "chart.series": "系列",
  "chart.seriesNone": "无",
  "chart.stack": "堆叠",
  "chart.stack.grouped": "并排",
  "chart.stack.stacked": "堆叠",
  "chart.stack.normalize": "按百分比堆叠",
  "chart.sort": "排序",
  "chart.sort.rows": "与表格一致",
  "chart.sort.most": "从大到小",
  "chart.sort.least": "从小到大",
  "chart.sort.name": "按名称",
  "chart.heading": "标题",
  "chart.sums": "同一位置的多行会相加。",
  "chart.reset": "还原",
  "chart.done": "完成",
};
