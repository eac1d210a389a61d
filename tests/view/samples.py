"""Texts of many kinds, each of a kilobyte and more, made the same everywhere. `counts.json` has their true counts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator


def noise(size: int, salt: str = "") -> bytes:
    """Bytes that look random and are the same everywhere."""
    blocks = (hashlib.sha256(f"{salt}{n}".encode()).digest() for n in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def numbers(salt: str) -> Iterator[int]:
    """Whole numbers below 2**32, without end."""
    count = 0
    while True:
        count += 1
        yield int.from_bytes(noise(4, f"{salt}/{count}/"))


_LANGUAGES = {
    "english": (
        "Sales in the third quarter rose twelve percent over last year, mostly because of new customers in the east. "
        "We also saw that more parcels came back: deliveries were late and boxes were damaged. Could you count the "
        "orders of each region by month and draw a chart? I talked to Mia yesterday, and she said that the launch had "
        "slipped again since the staging cluster kept running out of disk. Tom will check whether the alerts fire. "
        "By the way, what did we decide about the pricing page? I remember that the yearly plan was going to be "
        "cheaper, but nobody wrote the number down, and my sister visits on Friday. "
    ),
    "chinese": (
        "今年第三季度的销售额比去年同期增长了百分之十二，主要来自华东地区的新客户。我们注意到退货率也有所上升，"
        "原因是物流延迟和包装破损。请帮我统计一下每个省份的订单数量，并按月份画出趋势图。昨天晚上跟老张吃火锅，"
        "聊起他儿子考研的事情，他说复试没过，正在考虑调剂还是直接找工作。唐代诗人王维精通诗书音画，安史之乱后，"
        "他隐居辋川，过着半官半隐的生活。肺炎多见于婴幼儿及老年人，临床表现为寒战、高热、咳嗽、胸痛。"
    ),
    "japanese": (
        "昨年の売上は前年より十二パーセント増加しましたが、返品率も少し上がりました。原因は配送の遅れと梱包の破損だと"
        "考えられます。各都道府県の注文数を月ごとに集計して、グラフにしてください。昨日は友達と渋谷でランチを食べて、"
        "そのあと映画を見に行きました。サーバーのログを確認したところ、接続がタイムアウトしていることが判明しました。"
        "鎌倉時代の武士は質素な生活を重んじ、弓馬の道に励んだ。"
    ),
    "korean": (
        "올해 삼분기 매출은 작년 같은 기간보다 십이 퍼센트 증가했으며, 주로 동부 지역의 신규 고객 덕분입니다. "
        "반품률도 조금 올랐는데 배송 지연과 포장 파손이 원인입니다. 각 지역의 주문 수를 월별로 집계하고 그래프를 그려 "
        "주세요. 어제는 친구와 점심을 먹고 영화를 보러 갔습니다. "
    ),
    "russian": (
        "Продажи в третьем квартале выросли на двенадцать процентов по сравнению с прошлым годом, в основном благодаря "
        "новым клиентам. Мы также заметили, что доля возвратов увеличилась из-за "
        "задержек доставки. Вчера мы с друзьями "
        "ходили в кино, а потом долго говорили о том, как лучше провести выходные. "
    ),
    "arabic": (
        "ارتفعت المبيعات في الربع الثالث بنسبة اثني عشر بالمئة مقارنة بالعام الماضي، ويعود ذلك أساسا إلى عملاء جدد. "
        "لاحظنا أيضا أن معدل الإرجاع ارتفع بسبب تأخر الشحن وتلف التغليف. يرجى تلخيص عدد الطلبات لكل محافظة حسب الشهر. "
    ),
    "hindi": (
        "तीसरी तिमाही में बिक्री पिछले साल की तुलना में बारह प्रतिशत बढ़ी, जिसका मुख्य कारण नए ग्राहक थे। हमने देखा कि "
        "वापसी की दर भी बढ़ी है, क्योंकि डिलीवरी में देरी हुई और पैकेजिंग खराब थी। "
    ),
    "german": (
        "Der Umsatz im dritten Quartal stieg gegenüber dem Vorjahr um zwölf Prozent, "
        "hauptsächlich durch neue Kunden im "
        "Osten. Außerdem kamen mehr Pakete zurück, weil Lieferungen sich verspäteten "
        "und Verpackungen beschädigt waren. "
        "Bitte zählen Sie die Bestellungen jedes Bundeslandes nach Monaten und zeichnen Sie ein Diagramm. "
    ),
    "french": (
        "Les ventes du troisième trimestre ont augmenté de douze pour cent par rapport "
        "à l'année dernière, surtout grâce "
        "à de nouveaux clients. Nous avons aussi remarqué que le taux de retour avait augmenté à cause des retards de "
        "livraison. Pourriez-vous compter les commandes de chaque région par mois et tracer un graphique ? "
    ),
    "emoji": "Great job 🎉🎉 ship it 🚀 but check the logs 🔥 first 👀 👍🏽 👩‍💻 🇨🇳 ❤️ ✅ ❌ 🤔 ",
}

_PYTHON = '''
class Window:
    """The last messages of a thread, oldest first."""

    def __init__(self, limit: int = 200) -> None:
        self.limit = limit
        self._items: list[Message] = []

    def add(self, message: Message) -> None:
        self._items.append(message)
        if len(self._items) > self.limit:
            del self._items[: len(self._items) - self.limit]

    def find(self, key: str) -> Message | None:
        for item in reversed(self._items):
            if item.key == key and not item.deleted:
                return item
        raise KeyError(f"no message {key!r} in {self.limit} items")
'''
_MINIFIED = (
    'function e(t,n){if(t===null||typeof t!=="object")return t;var r=Array.isArray(t)?[]:{};for(var i in t)'
    "Object.prototype.hasOwnProperty.call(t,i)&&(r[i]=e(t[i],n));return r}!function(a){a.fn.extend({modal:function(b){"
    "return this.each(function(){var c=a(this),d=c.data('modal');d||c.data('modal',d=new o(this,b)),d.show()})}})}(j);"
)
_SQL = (
    "SELECT c.country, COUNT(*) AS n, SUM(o.total) AS revenue FROM customers AS c "
    "JOIN orders o ON o.customer_id = c.id "
    "WHERE o.created_at >= '2026-01-01' AND c.status <> 'deleted' GROUP BY c.country HAVING COUNT(*) > 3\n"
    "ORDER BY revenue DESC LIMIT 10;\nINSERT INTO orders (id, customer_id, total, note) VALUES (17, 4, 99.50, NULL);\n"
)


def samples() -> dict[str, str]:
    """Each kind's text."""
    row = numbers("rows")
    people = ["Ada Lovelace", "李雷", "Bob Smith", "María García"]
    rows = [
        {
            "id": n,
            "name": people[next(row) % 4],
            "total": next(row) % 10**6 / 100,
            "at": f"2026-0{n % 9 + 1}-17T08:30:00Z",
        }
        for n in range(40)
    ]
    logs = [
        f"2026-11-{next(row) % 28 + 1:02}T{next(row) % 24:02}:{next(row) % 60:02}:07.{next(row) % 1000:03}Z WARN "
        f"[worker-{next(row) % 16}] acme.orders - request_id={next(row):08x} took "
        f"{next(row) % 3000}ms path=/api/v1/items"
        for _ in range(20)
    ]
    table = [f"| {n} | {people[n % 4]} | {next(row) % 10**6 / 100:.2f} | 2026-03-{n % 20 + 10} |" for n in range(40)]
    uuids = [noise(16, f"u{n}").hex() for n in range(40)]
    return {name: text * (1 + 1400 // len(text)) for name, text in _LANGUAGES.items()} | {
        "python": _PYTHON * 2,
        "minified": _MINIFIED * 4,
        "sql": _SQL * 4,
        "json": json.dumps(rows, ensure_ascii=False, separators=(",", ":")),
        "json indented": json.dumps(rows[:20], ensure_ascii=False, indent=2),
        "json escaped": json.dumps({"text": _LANGUAGES["chinese"]}),
        "base64": base64.b64encode(noise(3000)).decode(),
        "hex": noise(1500).hex(),
        "uuids": "\n".join(f"{u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}" for u in uuids),
        "logs": "\n".join(logs),
        "table": "| id | name | total | created |\n|---|---|---:|---|\n" + "\n".join(table),
        "csv": "\n".join(",".join(str(next(row) % 10**6 / 100) for _ in range(6)) for _ in range(40)),
        "indented": "\n".join(" " * (4 * (n % 7)) + "return value" for n in range(100)),
        "blank lines": "word\n\n\n" * 250,
        "spaces": " " * 3000,
        "dashes": "-" * 3000,
        "letters": "x" * 1500,
        "han": "哈" * 1200,
        "rule": "=" * 70 + "\n" + "Title of a section\n" * 20,
        "half width": "ﾌﾘｺﾐ ｶ)ﾔﾏﾀﾞｼﾖｳｼﾞ 2026/11/22 ¥12,000 ﾃﾞﾝｷﾀﾞｲ ﾄｳｷﾖｳｶﾞｽ\n" * 40,
        "full width": "東京都港区六本木１－２－３　ＡＢＣビル　４０５号室　ＴＥＬ０３－１２３４－５６７８\n" * 40,
        "dialogue": "「好！」「是——」他說：「我們走吧……」「真的？」“嗯。”（笑）\n" * 40,
        "dialogue japanese": "「え、本当？」「うん、本当だよ。」「そっか……。」（笑）\n" * 40,
        "marks table": "| id | name | **total** |\n| --- | :-: | ---: |\n| 1 | `foo` | 3.5 |\n" * 20,
        "marks table chinese": "| 编号 | 名称 | 金额 |\n| --- | --- | --- |\n| 1 | 苹果 | 3.5 |\n" * 20,
        "tasks": "- [ ] task *one*\n- [x] **done** `x`\n  - > q\n" * 30,
        "families": "👩\u200d👩\u200d👧 ok 👍🏽 " * 60,
        "vowel points": "بِسْمِ ٱللَّهِ ٱلرَّحْمَٰنِ ٱلرَّحِيمِ\n" * 40,
        "sinhala": "ඔබේ ඇණවුම ඊයේ යවන ලදී, කරුණාකර ඔබේ ලිපිනය පරීක්ෂා කරන්න.\n" * 30,
        "telugu": "మీ ఆర్డర్ నిన్న పంపబడింది, దయచేసి మీ చిరునామాను తనిఖీ చేయండి.\n" * 30,
    }
