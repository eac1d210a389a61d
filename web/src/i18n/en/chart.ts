// Messages of the editor of a chart. Ids begin with `chart.`.

export const chart = {
  "chart.title": "Change the chart",
  "chart.mark": "Type",
  "chart.x": "Along the axis",
  "chart.slices": "Slices",
  "chart.y": "Values",
  "chart.series": "Series",
  "chart.seriesNone": "None",
  "chart.stack": "Stacking",
  "chart.stack.grouped": "Side by side",
  "chart.stack.stacked": "Stacked",
  "chart.stack.normalize": "Stacked to 100%",
  "chart.sort": "Order",
  "chart.sort.rows": "As in the table",
  "chart.sort.most": "Largest first",
  "chart.sort.least": "Smallest first",
  "chart.sort.name": "By name",
  "chart.heading": "Title",
  "chart.sums": "Rows that share a place are added up.",
  "chart.reset": "Reset",
  "chart.done": "Done",
};
