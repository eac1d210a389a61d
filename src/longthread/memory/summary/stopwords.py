"""Words that name no topic, in English and Chinese."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BREAKS = _words(
    """
    a an the this that these those such some any each every either neither both all most more much many few less
    least several enough other another others own same no none nor not only just also too very quite rather really
    still yet already almost always never ever often sometimes usually again once twice here there everywhere
    somewhere anywhere now then today tomorrow yesterday tonight soon later early earlier before after since until
    while when whenever where wherever who whom whose which what whatever why how however whether if unless because
    although though so thus hence therefore otherwise instead anyway perhaps maybe but and or as than like unlike
    about above across against along among around at behind below beneath beside besides between beyond by despite
    down during except for from in inside into near of off on onto out outside over past per through throughout to
    toward towards under up upon via with within without versus vs i me my mine myself we us our ours ourselves you
    your yours yourself he him his himself she her hers herself it its itself they them their theirs themselves one
    ones someone somebody anyone anybody everyone everybody nobody nothing something anything everything am is are
    was were be been being have has had having do does did doing done can could will would shall should may might
    must ought let lets get gets got gotten getting go goes going gone went come comes coming came make makes making
    made take takes taking took taken give gives giving gave given put puts putting keep keeps keeping kept say says
    saying said tell tells telling told ask asks asking asked see sees seeing saw seen look looks looking looked seem
    seems seemed show shows showing showed shown know knows knowing knew known think thinks thinking thought believe
    believes believed feel feels feeling felt want wants wanting wanted need needs needing needed wish hope hopes
    hoping hoped try tries trying tried use uses using used find finds finding found become becomes became happen
    happens happened mean means meant leave leaves left help helps helping helped love loves loved likes liked enjoy
    enjoys enjoyed guess suppose remember forget wonder wondering sound sounds sounded talk talks talking talked
    speak spoke explain explains explained describe please thanks thank thankfully sorry hello hi hey okay ok yes
    yeah yep nope well oh wow haha ah hmm right sure exactly absolutely definitely actually basically simply probably
    certainly clearly indeed good great nice better best bad worse worst new old big small large little long short
    high low full whole main major minor important different similar certain possible impossible available able ready
    easy hard simple difficult fine cool awesome amazing wonderful beautiful happy glad excited sad proud true false
    real correct wrong first second third last next previous final current recent latest late entire total general
    specific particular various single double two three four five six seven eight nine ten hundred thousand million
    half ll ve re don didn doesn isn wasn aren weren won wouldn couldn shouldn can't cannot hasn haven hadn etc eg ie
    im ive id dont doesnt didnt cant wont lot lots bit kind sort way ways thing things stuff allow allows allowed add
    adds adding added remove removes removing removed delete deletes deleting deleted drop drops dropped fix fixes
    fixing fixed create creates creating created choose chooses chose chosen pick picks picked run runs running ran
    start starts starting started stop stops stopping stopped begin begins began finish finishes finished move moves
    moving moved turn turns turned set sets setting send sends sending sent write writes writing wrote written read
    reads reading open opens opened close closes closed call calls called follow follows followed bring brings
    brought buy buys bought pay pays paid wait waits waiting waited work works working worked include includes
    including included contain contains contained return returns returned provide provides provided compare compares
    compared based according regarding depending consider considering decide decides decided agree agrees agreed
    suggest suggests suggested recommend recommends recommended prefer prefers preferred expect expects expected
    learn learns learned spend spends spent stay stays stayed live lives lived meet meets met hear heard gonna wanna
    gotta kinda sorta ain y'all congrats congratulations welcome worry matter matters special tough strong weak busy
    free safe deep wide fast slow quick clean fresh healthy crazy interesting exciting incredible perfect lovely
    grateful thankful lucky useful helpful common rare far interested inspiring tricky weird strange funny worth
    obvious necessary optional extra separate complete empty broken missing cheap expensive popular favorite
    favourite huge tiny super pretty totally honestly plus together even ahead away apart forward back positive
    negative rewarding appreciate appreciates search searching chase chasing grow growing doubt
    """
)
"""Words at which a phrase ends."""

LIGHT = _words(
    """
    time times day days week weeks month months year years hour hours minute minutes second seconds moment date dates
    morning afternoon evening night monday tuesday wednesday thursday friday saturday sunday january february march
    april may june july august september october november december people person man woman men women guy guys friend
    friends example examples case cases point points part parts place places side end ends start beginning top bottom
    number numbers amount count counts sum average name names list lists item items type types kind value values
    option options change changes update updates step steps result results output outputs input inputs answer answers
    question questions reply message messages text word words line lines row rows column columns table tables query
    queries field fields file files folder code data info information detail details thought thoughts idea ideas
    reason reasons problem problems issue issues error errors fact facts sense chance difference check checks test
    tests look note notes order orders group level version user users system function method class object string
    integer null none true false total today life world home house work job fun love luck hand hands head face eye
    eyes sir thing one ones limit offset asc desc rest set call view views page pages id ids key keys observation
    action tool tools arg args ok image images photo photos picture pictures thank lot support experience everyone
    whole impact assistant human conversation chat topic topics summary content created completed successfully
    successful failed
    """
)
"""Words that name a topic only after others: "price list", but not "list"."""

AGENTS = _words(
    """
    i you we they he she it to can could will would shall should may might must please let lets don't didn't doesn't
    won't can't cannot not i'll we'll you'll i'd we'd let's who and then
    """
)
"""Words after which a word is rather a verb."""

SQL = _words(
    """
    SELECT FROM WHERE JOIN LEFT RIGHT INNER OUTER FULL CROSS ON USING GROUP ORDER BY HAVING LIMIT OFFSET AS AND OR
    NOT IN IS NULL LIKE ILIKE BETWEEN EXISTS UNION ALL DISTINCT CASE WHEN THEN ELSE END WITH RECURSIVE OVER PARTITION
    ROWS INSERT INTO VALUES UPDATE SET DELETE CREATE ALTER DROP TABLE INDEX VIEW PRIMARY KEY FOREIGN REFERENCES
    DEFAULT CAST COUNT SUM AVG MIN MAX ROUND COALESCE EXTRACT DATE YEAR MONTH DAY INTERVAL ASC DESC TRUE FALSE INT
    INTEGER BIGINT TEXT VARCHAR BOOLEAN NUMERIC REAL TIMESTAMP EXPLAIN ANALYZE TODO NOTE OK
    """
)
"""Words in capitals that are a query's, not what it is about."""

_HAN_BREAKS = """
什么 怎么 怎样 如何 为什么 为何 为了 哪里 哪儿 哪个 哪些 多少 几个 是否 是不是 有没有 能不能 可不可以 可以 可能 可是
能够 应该 应当 必须 需要 想要 希望 打算 准备 觉得 认为 以为 知道 明白 了解 记得 忘了 告诉 看看 看到 看一下 看起来
说明一下 说到 说过 听说 发现 建议 推荐 我们 你们 他们 她们 它们 咱们 大家 自己 别人 有人 人们 这个 这些 这里 这儿
这样 这么 这种 这次 那个 那些 那里 那儿 那样 那么 那种 那次 一个 一些 一下 一点 一种 一样 一起 一直 一定 一般 一切
一次 一共 一边 有点 有些 有时 有的 每个 每次 每天 各种 各个 某个 其他 其它 其中 其实 另外 此外 以及 及其 或者 还是
还有 还要 还没 不是 不会 不能 不要 不用 不过 不同 不错 不好 不太 不再 没有 没什么 没事 没问题 因为 所以 因此 但是
而且 然而 然后 如果 假如 要是 虽然 尽管 即使 只要 只有 只是 只能 除了 关于 对于 由于 根据 按照 通过 随着 作为 包括
比如 例如 比较 非常 特别 十分 相当 真的 确实 肯定 当然 可惜 终于 已经 曾经 正在 刚才 刚刚 马上 立刻 现在 目前 当前
今天 明天 昨天 后天 前天 今年 去年 明年 最近 以前 以后 之前 之后 之间 之一 以上 以下 以内 以外 时候 时间 开始 结束
继续 完成 进行 使用 采用 利用 得到 获得 成为 变成 出来 起来 下来 下去 上去 过来 过去 回来 进去 出去 所有 全部 整个
许多 很多 大量 不少 更多 更好 最好 最后 最终 首先 其次 同时 同样 直接 完全 主要 重要 方面 问题 情况 东西 事情 地方
方式 方法 内容 结果 部分 原因 意思 谢谢 感谢 请问 请你 请帮 帮我 帮忙 麻烦 你好 您好 好的 好吧 好了 对了 是的 没错
嗯嗯 哈哈 再见 不客气 下面 上面 里面 外面 前面 后面 左右 分别 一句 两个 三个 四个 五个 第一 第二 第三 上次 下次 这边
那边 有关 相关 怎么样 多久 多大 来说 来看 的话 就是 也是 都是 而是 正是 总是 老是 算是 于是 要求 是不 给我 给你 让我
让你 跟我 和我 对我 周一 周二 周三 周四 周五 周六 周日 星期 上午 下午 晚上 早上 中午 小时 分钟 收到 明白了 查询一下
查一下 列出 显示 展示 统计一下 改成 改为 增加 添加 删除 修改 加上 去掉 放到 放在 写成 用来 用到 来自 属于 存在 出现
处理 说 想 很 太 吗 呢 吧 啊 呀 哦 嗯 哈 喔 啦 嘛 么 的 了 着 们 我 你 您 他 她 它 这 那 哪 谁 是 就 也 都 还 又 再
最 更 把 被 让 跟 与 及 或 且 但 若 则 之 其 每 某 各 请 并 才 只 没 先 個 麼 嗎 們 這 還 說 讓 與 沒 請
"""
_HAN_KEPT = """
目的 标的 了不起 终了 了望 着陆 着色 着装 附着 沉着 执着 试着 是非 国是 就业 就餐 就诊 成就 也门 都市 首都 成都 京都
古都 都江堰 还款 还原 归还 偿还 退还 还贷 再生 再贷款 最优 最值 最大值 最小值 更新 变更 更衣 更年期 把握 把手 被子
棉被 植被 转让 让步 让利 与会 参与 及格 普及 涉及 埃及 以及 或然 并且 但丁 若干 规则 原则 法则 准则 则天 其他 每股
各州 请求 请假 申请 邀请 聘请 请柬 并发 并行 合并 并购 并网 才能 人才 天才 才艺 只读 沉没 没收 淹没 先进 优先 先锋
祖先 先生 先后 想法 思想 理想 梦想 想象 幻想 联想 说明 小说 传说 学说 说唱 解说 说服 太阳 太极 太空 太太 亚太 太原
太湖 哈尔滨 哈希 哈佛 他人 其乐 吗啡 呢绒 吧台 酒吧 网吧 贴吧 什么时候 么么 自我 我国 谁家 那不勒斯 哪吒 这厢 之江
总之 个性 個人 還原 說明 小說 參與
"""


def _any_of(text: str) -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, text.split()), key=lambda word: (-len(word), word))))


HAN_BREAKS = _any_of(_HAN_BREAKS)
"""What no Chinese name has in it."""
HAN_ALONE = frozenset(word for word in _HAN_BREAKS.split() if len(word) == 1)
"""Of those, the characters."""
HAN_KEPT = _any_of(_HAN_KEPT)
"""Words that have one of them, and are none."""
_HAN_LIGHT = """
数据 信息 用户 系统 功能 操作 表格 字段 数量 数字 名称 类型 列表 文件 代码 文本 消息 回答 答案 例子 步骤 选项 版本
级别 对象 单位 公司 工作 生活 朋友 孩子 先生 女士 电话 名字 喜欢 想法 计划 感觉 开心 高兴 有趣 一天 两天 几天 一周
个月 月份 年份 日期 的人 成功 失败 错误 查询 结论 报告 总结 更新 说明 请求 申请 影响 体验 提升 交流 支持 需求 机会
经验 过程 关系 作用
"""
HAN_LIGHT = _words(_HAN_LIGHT)
"""Words that are too common to name a topic alone."""
_AFTER_NUMBERS = "个位次种件条张只家名些天年月日号点时分秒元块万亿千百十"
HAN_EDGES = frozenset(_AFTER_NUMBERS + "几多少和在有对从到为以于要会能去来做得地上下里中后前将向比等由至因所")
"""Characters with which no name begins or ends that statistics have found."""
_NUMBERS = "一二两三四五六七八九零"
HAN_COUNTS = re.compile(f"[{_NUMBERS}][{_AFTER_NUMBERS}{_NUMBERS}]?$|.*[{_NUMBERS}]$")
"""Numbers, with what they count."""
HAN_WITHIN = re.compile("(?<=.)[到和在从把被与](?=.)")
"""What stands between words, and within few."""
