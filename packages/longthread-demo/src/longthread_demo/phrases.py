"""The demo model's sentences, in English and Chinese."""

from __future__ import annotations

PHRASES: dict[str, dict[str, str]] = {
    "label": {"en": "*Demo model: rule-based, no AI.*", "zh": "*演示模型：基于规则，没有使用 AI。*"},
    "greeting": {"en": "Ask a question about the database.", "zh": "请就这个数据库提一个问题。"},
    "empty": {
        "en": "This source has no tables, so there is nothing to ask.",
        "zh": "这个数据源里没有表，无法回答问题。",
    },
    "listing": {"en": "I do not know the tables yet.", "zh": "我还不知道有哪些表。"},
    "describing": {"en": "I need the columns of {text}.", "zh": "我需要了解 {text} 的列。"},
    "probing": {"en": "I look for {text} among the values.", "zh": "我在数据里查找 {text}。"},
    "running": {"en": "I can ask this in one query.", "zh": "可以用一条查询回答。"},
    "listing_again": {
        "en": "The database does not know a name; I look at its tables again.",
        "zh": "数据库不认识其中的名称，我重新查看有哪些表。",
    },
    "repairing": {
        "en": "The query failed; I try once more in a simpler form.",
        "zh": "查询失败，换一种更简单的写法再试一次。",
    },
    "one_table": {"en": "There is {text} table:", "zh": "共有 {text} 张表："},
    "tables": {"en": "There are {text} tables:", "zh": "共有 {text} 张表："},
    "columns": {"en": "{text} has these columns:", "zh": "{text} 有以下列："},
    "row": {"en": "{text} row", "zh": "{text} 行"},
    "rows": {"en": "{text} rows", "zh": "{text} 行"},
    "found_rows": {"en": "found {text}", "zh": "找到 {text}"},
    "found_more": {"en": "found more than {text}", "zh": "找到的超过 {text}"},
    "cannot": {
        "en": "I cannot answer this.",
        "zh": "我无法回答这个问题。",
    },
    "understood": {"en": "I understood: {text}.", "zh": "我理解到的是：{text}。"},
    "no_value": {
        "en": "I could not place {text}: no table or column is called so, and I found no such value.",
        "zh": "我无法解释 {text}：没有这样的表名或列名，数据里也没有找到这样的值。",
    },
    "no_name": {
        "en": "I could not place {text}: no table or column is called so.",
        "zh": "我无法解释 {text}：没有这样的表名或列名。",
    },
    "no_rule": {
        "en": "I know {text}, but have no rule that brings it into this query.",
        "zh": "我认识 {text}，但没有规则能把它放进这个查询。",
    },
    "try": {"en": "Try for example:", "zh": "可以试试："},
    "lost": {
        "en": "This seems to follow up on an earlier question that I cannot see any more. Please ask it in full.",
        "zh": "这像是对之前问题的追问，但我已看不到之前的问题。请完整地再问一次。",
    },
    "nothing": {"en": "No rows match", "zh": "没有符合条件的数据"},
    "null_result": {
        "en": "There is no value: no row matches, or none of those that do has one",
        "zh": "没有值：没有符合条件的行，或者这些行都没有值",
    },
    "read_as": {"en": "Read as: {text}.", "zh": "问题理解为：{text}。"},
    "cut": {
        "en": "I cannot see what I looked up: it does not fit into the context window. Raise MEMORY_CONTEXT_WINDOW (0: "
        "as large as the model's), or begin a new conversation.",
        "zh": "我看不到刚才查询的结果：上下文窗口放不下。请调大 MEMORY_CONTEXT_WINDOW（0 表示与模型相同），"
        "或者开始新的对话。",
    },
    "failed": {"en": "The database did not answer: {text}", "zh": "数据库没有给出结果：{text}"},
    "unreachable": {"en": "I see no key that connects {text}.", "zh": "我没有找到连接 {text} 的键。"},
    "note_one": {
        "en": "I answer one question at a time; this is the first.",
        "zh": "我一次只回答一个问题；这是第一个。",
    },
    "note_cut": {"en": "I read the first {text} characters only.", "zh": "我只读了前 {text} 个字符。"},
    "note_one_of": {
        "en": "Joined by {text}; say which one you mean if it is the other.",
        "zh": "按 {text} 连接；括号里是另一种可能，请说明是哪一种。",
    },
    "note_view": {
        "en": "`{text}` is a view, so a row of a table may be in it several times.",
        "zh": "`{text}` 是视图，表中的一行在其中可能出现多次。",
    },
    "note_also": {"en": "{text}", "zh": "{text}"},
    "note_sum_row": {
        "en": "The last row of `{text}` may be a sum of the others, so this query leaves it out.",
        "zh": "`{text}` 的最后一行可能是其他各行的合计，所以这次查询没有计入它。",
    },
    "left_out": {
        "en": "Not in this result: {number} of {all} rows of {base}, which have no {missing}{total} {cite}.",
        "zh": "未计入结果：{base} 的 {all} 行中有 {number} 行没有对应的 {missing}{total} {cite}。",
    },
    "left_out_total": {"en": " (total of {text})", "zh": "（合计 {text}）"},
    "in_several": {
        "en": "{number} of {all} rows of {base} are in several groups, so these add up to more than all {cite}.",
        "zh": "{base} 的 {all} 行中有 {number} 行属于多个分组：各组相加会多于总数 {cite}。",
    },
    "not_counted": {
        "en": "I could not count the rows that the join leaves out.",
        "zh": "我没能统计连接时遗漏了多少行。",
    },
    "note_as_text": {
        "en": "`{text}` is kept as text, since its numbers or dates can be read in several ways or are not all such.",
        "zh": "`{text}` 按文本保存，因为其中的数字或日期有多种读法，或者并非都是数字或日期。",
    },
    "note_newest": {
        "en": "“Last” is counted from the newest date in the data, not from today.",
        "zh": "“最近/去年”按数据中最新的日期计算，而不是今天。",
    },
    "note_inclusive": {"en": "{text} itself is included.", "zh": "包含{text}本身。"},
    "note_assumed_ten": {"en": "No number was given, so I show ten.", "zh": "没有说明数量，这里显示十个。"},
    "note_counted": {"en": "Counted by rows of `{text}`.", "zh": "按 `{text}` 的行数计算。"},
    "note_unit_assumed": {"en": "I took the number in the unit of `{text}`.", "zh": "数值按 `{text}` 的单位理解。"},
    "note_filter_dropped": {
        "en": "The earlier filter on `{text}` does not apply here.",
        "zh": "之前对 `{text}` 的筛选在这里不适用。",
    },
}

REFUSALS: dict[str, dict[str, str]] = {
    "unsupported": {
        "en": "I have no rule for “{text}”: I list, count, filter, group, rank and aggregate.",
        "zh": "我没有处理“{text}”的规则：我只会列出、计数、筛选、分组、排名和汇总。",
    },
    "nothing_new": {
        "en": "I see nothing in “{text}” that changes the question before.",
        "zh": "我没看出“{text}”对上一个问题有什么改变。",
    },
    "no_amount": {"en": "I found no number column for “{text}”.", "zh": "我没有找到“{text}”对应的数值列。"},
    "several_amounts": {
        "en": "Several columns may hold the money: {text}. Please name one.",
        "zh": "有几列都可能是金额：{text}。请说明是哪一列。",
    },
    "several_columns": {
        "en": "Several columns hold {text}. Please say which one.",
        "zh": "有几列都有这个值（{text}）。请说明是哪一列。",
    },
    "two_values": {
        "en": "I have no rule for two values of one column beside each other: “{text}”.",
        "zh": "我没有处理同一列两个值并列（“{text}”）的规则。",
    },
    "far_apart": {
        "en": "I have no rule for a join over so many tables: {text}.",
        "zh": "我没有跨这么多张表连接的规则：{text}。",
    },
    "no_units": {
        "en": "I see no column that says how many of `{text}` were sold.",
        "zh": "我没有找到记录 `{text}` 售出数量的列。",
    },
    "no_person": {
        "en": "I see no column of `{text}` that says who.",
        "zh": "`{text}` 里没有能说明“谁”的列。",
    },
    "two_things": {
        "en": "This asks for several things at once: “{text}”. Please ask one at a time.",
        "zh": "这里一次问了几件事：“{text}”。请分开提问。",
    },
    "per_group": {
        "en": "I have no rule for the first of each group (“{text}”).",
        "zh": "我没有“每组各取一个”的规则（“{text}”）。",
    },
    "largest_or_total": {
        "en": "I have no rule for “{text}” where each has many: the single largest, or the total? Please say “total”.",
        "zh": "我没有规则判断“{text}”是指单笔最大还是合计：每个都有多笔。请说明是“总”的。",
    },
    "average_or_total": {
        "en": "I have no rule for “{text}” of each group: the average, the total or the highest? Please say which.",
        "zh": "我没有规则判断每组的“{text}”是平均、合计还是最高。请说明是哪一种。",
    },
    "two_readings": {
        "en": "I have no rule which of two is meant: {text}. Please name the table or the column.",
        "zh": "我没有规则判断指的是哪一个：{text}。请说明是哪张表或哪一列。",
    },
    "list_column": {
        "en": "`{text}` holds a list in each row, and I have no rule to count or group what is in lists.",
        "zh": "`{text}` 的每一行是一个列表，我没有规则统计列表里的内容，也不能按它分组。",
    },
    "no_dimension": {"en": "I do not see what to group by for “{text}”.", "zh": "我不确定“{text}”应按什么分组。"},
    "no_measure": {"en": "I do not see what “{text}” counts.", "zh": "我不确定“{text}”统计的是什么。"},
    "no_ranking": {"en": "I found no column to rank by for “{text}”.", "zh": "我没有找到可用于“{text}”排序的列。"},
    "no_order": {"en": "I found no column “{text}” to sort by.", "zh": "我没有找到可用于排序的列“{text}”。"},
    "no_date": {"en": "I found no date column for “{text}”.", "zh": "我没有找到“{text}”对应的日期列。"},
    "odd_dates": {
        "en": "The dates in `{text}` are not in a form I can compare.",
        "zh": "`{text}` 里的日期格式我无法比较。",
    },
    "no_comparison": {"en": "I do not see which column “{text}” compares.", "zh": "我不确定“{text}”比较的是哪一列。"},
    "no_pattern_column": {
        "en": "I do not see which column should contain “{text}”.",
        "zh": "我不确定哪一列应包含“{text}”。",
    },
    "apart": {
        "en": "I can only take dates that lie together, not “{text}”.",
        "zh": "我只能处理连续的日期，不能处理“{text}”。",
    },
}
