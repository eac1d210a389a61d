# ruff: noqa: E501 - a table reads better in long lines
"""What the demo database is generated from: real agencies, sites and rocket families, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rocket:
    """A launch vehicle. Capacities in kilograms, the price of a flight in millions of US dollars."""

    name: str
    name_zh: str
    family: str
    family_zh: str
    agency: str
    sites: tuple[str, ...]
    height_m: float
    mass_t: float
    leo_kg: int
    gto_kg: int | None
    stages: int
    first_flight: int
    last_flight: int
    flights_a_year: float
    success: float
    price: float
    reusable: bool = False


@dataclass(frozen=True)
class Series:
    """Missions that are numbered."""

    name: str
    name_zh: str
    agency: str
    first_year: int
    last_year: int
    count: int


@dataclass(frozen=True)
class MissionKind:
    """A purpose of missions, with its usual budget in millions of US dollars."""

    name: str
    name_zh: str
    budget: float
    series: tuple[Series, ...]


@dataclass(frozen=True)
class PayloadKind:
    """A purpose of payloads, the orbits they go to, and their names."""

    name: str
    name_zh: str
    orbits: tuple[str, ...]
    names: tuple[tuple[str, str], ...]


# name, Chinese name, country, its Chinese name, founded, kind
AGENCIES: tuple[tuple[str, str, str, str, int, str], ...] = (
    ("CNSA", "中国国家航天局", "China", "中国", 1993, "Government"),
    ("CASC", "中国航天科技集团", "China", "中国", 1999, "Government"),
    ("LandSpace", "蓝箭航天", "China", "中国", 2015, "Commercial"),
    ("Galactic Energy", "星河动力", "China", "中国", 2018, "Commercial"),
    ("NASA", "美国国家航空航天局", "United States", "美国", 1958, "Government"),
    ("SpaceX", "太空探索技术公司", "United States", "美国", 2002, "Commercial"),
    ("United Launch Alliance", "联合发射联盟", "United States", "美国", 2006, "Commercial"),
    ("Rocket Lab", "火箭实验室", "United States", "美国", 2006, "Commercial"),
    ("Northrop Grumman", "诺思罗普·格鲁曼", "United States", "美国", 1994, "Commercial"),
    ("Roscosmos", "俄罗斯国家航天集团", "Russia", "俄罗斯", 1992, "Government"),
    ("ESA", "欧洲空间局", "France", "法国", 1975, "Government"),
    ("Arianespace", "阿丽亚娜空间公司", "France", "法国", 1980, "Commercial"),
    ("JAXA", "日本宇宙航空研究开发机构", "Japan", "日本", 2003, "Government"),
    ("ISRO", "印度空间研究组织", "India", "印度", 1969, "Government"),
    ("KARI", "韩国航空宇宙研究院", "South Korea", "韩国", 1989, "Government"),
)

# name, Chinese name, country, its Chinese name, latitude, longitude, opened
SITES: tuple[tuple[str, str, str, str, float, float, int], ...] = (
    ("Jiuquan Satellite Launch Center", "酒泉卫星发射中心", "China", "中国", 40.958, 100.291, 1958),
    ("Xichang Satellite Launch Center", "西昌卫星发射中心", "China", "中国", 28.246, 102.027, 1984),
    ("Taiyuan Satellite Launch Center", "太原卫星发射中心", "China", "中国", 38.849, 111.608, 1988),
    ("Wenchang Space Launch Site", "文昌航天发射场", "China", "中国", 19.614, 110.951, 2014),
    ("Haiyang Spaceport", "海阳东方航天港", "China", "中国", 36.689, 121.259, 2019),
    ("Kennedy Space Center", "肯尼迪航天中心", "United States", "美国", 28.608, -80.604, 1962),
    ("Cape Canaveral Space Force Station", "卡纳维拉尔角太空军基地", "United States", "美国", 28.489, -80.578, 1949),
    ("Vandenberg Space Force Base", "范登堡太空军基地", "United States", "美国", 34.742, -120.573, 1957),
    ("Wallops Flight Facility", "沃洛普斯飞行基地", "United States", "美国", 37.940, -75.466, 1945),
    ("Starbase", "星际基地", "United States", "美国", 25.997, -97.155, 2019),
    ("Baikonur Cosmodrome", "拜科努尔航天发射场", "Kazakhstan", "哈萨克斯坦", 45.920, 63.342, 1957),
    ("Plesetsk Cosmodrome", "普列谢茨克航天发射场", "Russia", "俄罗斯", 62.926, 40.578, 1957),
    ("Vostochny Cosmodrome", "东方航天发射场", "Russia", "俄罗斯", 51.884, 128.334, 2016),
    ("Guiana Space Centre", "圭亚那航天中心", "French Guiana", "法属圭亚那", 5.239, -52.769, 1968),
    ("Tanegashima Space Center", "种子岛宇宙中心", "Japan", "日本", 30.400, 130.970, 1969),
    ("Satish Dhawan Space Centre", "萨迪什·达万航天中心", "India", "印度", 13.733, 80.235, 1971),
    ("Naro Space Center", "罗老宇航中心", "South Korea", "韩国", 34.432, 127.535, 2009),
    ("Rocket Lab Launch Complex 1", "火箭实验室一号发射场", "New Zealand", "新西兰", -39.262, 177.865, 2016),
)

_JIUQUAN, _XICHANG, _TAIYUAN, _WENCHANG, _HAIYANG = (site[0] for site in SITES[:5])
_KENNEDY, _CAPE, _VANDENBERG, _WALLOPS, _STARBASE = (site[0] for site in SITES[5:10])
_BAIKONUR, _PLESETSK, _VOSTOCHNY, _KOUROU, _TANEGASHIMA, _SRIHARIKOTA, _NARO, _MAHIA = (site[0] for site in SITES[10:])
_LM, _LM_ZH = "Long March", "长征"
_ULA = "United Launch Alliance"

ROCKETS: tuple[Rocket, ...] = (
    Rocket("Long March 2C", "长征二号丙", _LM, _LM_ZH, "CASC", (_JIUQUAN, _TAIYUAN, _XICHANG), 43.0, 245, 4000, 1250, 2, 1982, 2025, 2.6, 0.98, 30),
    Rocket("Long March 2D", "长征二号丁", _LM, _LM_ZH, "CASC", (_JIUQUAN, _TAIYUAN, _XICHANG), 41.1, 250, 3500, None, 2, 1992, 2025, 3.2, 0.98, 29),
    Rocket("Long March 2F", "长征二号F", _LM, _LM_ZH, "CASC", (_JIUQUAN,), 58.3, 493, 8400, None, 2, 1999, 2025, 1.1, 1.0, 75),
    Rocket("Long March 3A", "长征三号甲", _LM, _LM_ZH, "CASC", (_XICHANG,), 52.5, 241, 8500, 2600, 3, 1994, 2018, 1.2, 1.0, 60),
    Rocket("Long March 3B", "长征三号乙", _LM, _LM_ZH, "CASC", (_XICHANG,), 56.3, 458, 11500, 5500, 3, 1996, 2025, 4.2, 0.96, 70),
    Rocket("Long March 4B", "长征四号乙", _LM, _LM_ZH, "CASC", (_TAIYUAN, _JIUQUAN), 45.8, 249, 4200, 1500, 3, 1999, 2025, 2.0, 0.97, 35),
    Rocket("Long March 4C", "长征四号丙", _LM, _LM_ZH, "CASC", (_TAIYUAN, _JIUQUAN), 45.8, 250, 4200, 1500, 3, 2006, 2025, 3.0, 0.95, 36),
    Rocket("Long March 5", "长征五号", _LM, _LM_ZH, "CASC", (_WENCHANG,), 56.9, 867, 25000, 14000, 2, 2016, 2025, 1.4, 0.92, 160),
    Rocket("Long March 5B", "长征五号B", _LM, _LM_ZH, "CASC", (_WENCHANG,), 53.7, 849, 25000, None, 1, 2020, 2025, 1.3, 1.0, 150),
    Rocket("Long March 6", "长征六号", _LM, _LM_ZH, "CASC", (_TAIYUAN,), 29.3, 103, 1500, None, 3, 2015, 2025, 1.4, 1.0, 20),
    Rocket("Long March 7", "长征七号", _LM, _LM_ZH, "CASC", (_WENCHANG,), 53.1, 597, 13500, 5500, 2, 2016, 2025, 1.2, 1.0, 85),
    Rocket("Long March 8", "长征八号", _LM, _LM_ZH, "CASC", (_WENCHANG,), 50.3, 356, 8100, 2800, 2, 2020, 2025, 1.4, 1.0, 55),
    Rocket("Long March 11", "长征十一号", _LM, _LM_ZH, "CASC", (_JIUQUAN, _HAIYANG), 20.8, 58, 700, None, 4, 2015, 2025, 1.8, 1.0, 8),
    Rocket("Zhuque-2", "朱雀二号", "Zhuque", "朱雀", "LandSpace", (_JIUQUAN,), 49.5, 219, 6000, None, 2, 2022, 2025, 1.5, 0.75, 22),
    Rocket("Ceres-1", "谷神星一号", "Ceres", "谷神星", "Galactic Energy", (_JIUQUAN, _HAIYANG), 20.0, 33, 400, None, 4, 2020, 2025, 4.0, 0.93, 5),
    Rocket("Falcon 9", "猎鹰9号", "Falcon", "猎鹰", "SpaceX", (_CAPE, _KENNEDY, _VANDENBERG), 70.0, 549, 22800, 8300, 2, 2010, 2025, 26.0, 0.985, 67, True),
    Rocket("Falcon Heavy", "猎鹰重型", "Falcon", "猎鹰", "SpaceX", (_KENNEDY,), 70.0, 1421, 63800, 26700, 2, 2018, 2025, 1.8, 1.0, 97, True),
    Rocket("Starship", "星舰", "Starship", "星舰", "SpaceX", (_STARBASE,), 121.3, 5000, 150000, 21000, 2, 2023, 2025, 4.0, 0.5, 100, True),
    Rocket("Space Shuttle", "航天飞机", "Space Shuttle", "航天飞机", "NASA", (_KENNEDY,), 56.1, 2030, 27500, None, 2, 1981, 2011, 5.2, 0.985, 450, True),
    Rocket("Space Launch System", "太空发射系统", "SLS", "太空发射系统", "NASA", (_KENNEDY,), 98.3, 2610, 95000, None, 2, 2022, 2025, 0.8, 1.0, 2200),
    Rocket("Atlas V", "宇宙神5号", "Atlas", "宇宙神", _ULA, (_CAPE, _VANDENBERG), 58.3, 590, 18850, 8900, 2, 2002, 2025, 4.4, 0.99, 153),
    Rocket("Delta II", "德尔塔2号", "Delta", "德尔塔", _ULA, (_CAPE, _VANDENBERG), 38.9, 231, 6100, 2171, 3, 1989, 2018, 5.4, 0.98, 51),
    Rocket("Delta IV Heavy", "德尔塔4重型", "Delta", "德尔塔", _ULA, (_CAPE, _VANDENBERG), 72.0, 733, 28790, 14220, 2, 2004, 2024, 0.9, 0.97, 350),
    Rocket("Vulcan Centaur", "火神半人马座", "Vulcan", "火神", _ULA, (_CAPE,), 61.6, 546, 27200, 14400, 2, 2024, 2025, 2.5, 0.95, 110),
    Rocket("Antares", "安塔瑞斯", "Antares", "安塔瑞斯", "Northrop Grumman", (_WALLOPS,), 42.5, 298, 8000, None, 2, 2013, 2023, 1.8, 0.95, 80),
    Rocket("Electron", "电子号", "Electron", "电子", "Rocket Lab", (_MAHIA, _WALLOPS), 18.0, 13, 300, None, 2, 2017, 2025, 7.5, 0.94, 7.5),
    Rocket("Soyuz-U", "联盟号-U", "Soyuz", "联盟", "Roscosmos", (_BAIKONUR, _PLESETSK), 51.1, 313, 6900, None, 3, 1973, 2017, 9.5, 0.97, 40),
    Rocket("Soyuz-FG", "联盟号-FG", "Soyuz", "联盟", "Roscosmos", (_BAIKONUR,), 49.5, 305, 7100, None, 3, 2001, 2019, 3.6, 0.98, 45),
    Rocket("Soyuz-2", "联盟号-2", "Soyuz", "联盟", "Roscosmos", (_BAIKONUR, _PLESETSK, _VOSTOCHNY, _KOUROU), 46.3, 312, 8200, 3250, 3, 2004, 2025, 9.5, 0.96, 48),
    Rocket("Proton-M", "质子号-M", "Proton", "质子", "Roscosmos", (_BAIKONUR,), 58.2, 705, 23000, 6920, 4, 2001, 2025, 5.5, 0.9, 65),
    Rocket("Angara A5", "安加拉A5", "Angara", "安加拉", "Roscosmos", (_PLESETSK, _VOSTOCHNY), 55.4, 773, 24500, 7500, 3, 2014, 2025, 0.5, 0.85, 100),
    Rocket("Ariane 4", "阿丽亚娜4号", "Ariane", "阿丽亚娜", "Arianespace", (_KOUROU,), 58.7, 470, 7600, 4720, 3, 1988, 2003, 7.8, 0.97, 80),
    Rocket("Ariane 5", "阿丽亚娜5号", "Ariane", "阿丽亚娜", "Arianespace", (_KOUROU,), 52.0, 777, 20000, 10500, 2, 1996, 2023, 4.6, 0.96, 165),
    Rocket("Ariane 6", "阿丽亚娜6号", "Ariane", "阿丽亚娜", "Arianespace", (_KOUROU,), 63.0, 860, 21650, 11500, 2, 2024, 2025, 3.0, 0.9, 115),
    Rocket("Vega", "织女星", "Vega", "织女星", "Arianespace", (_KOUROU,), 30.0, 137, 1963, None, 4, 2012, 2024, 1.9, 0.9, 37),
    Rocket("H-IIA", "H-IIA", "H-II", "H-II", "JAXA", (_TANEGASHIMA,), 53.0, 445, 15000, 6000, 2, 2001, 2025, 2.2, 0.98, 90),
    Rocket("H3", "H3", "H3", "H3", "JAXA", (_TANEGASHIMA,), 63.0, 574, 16500, 7900, 2, 2023, 2025, 2.2, 0.85, 50),
    Rocket("PSLV", "极地卫星运载火箭", "PSLV", "极地卫星运载火箭", "ISRO", (_SRIHARIKOTA,), 44.0, 320, 3800, 1425, 4, 1993, 2025, 2.2, 0.95, 25),
    Rocket("GSLV Mk II", "地球同步卫星运载火箭二型", "GSLV", "地球同步卫星运载火箭", "ISRO", (_SRIHARIKOTA,), 49.1, 420, 6000, 2500, 3, 2010, 2025, 1.1, 0.82, 47),
    Rocket("LVM3", "三型运载火箭", "LVM", "三型运载火箭", "ISRO", (_SRIHARIKOTA,), 43.5, 640, 10000, 4200, 3, 2017, 2025, 0.9, 1.0, 60),
    Rocket("Nuri", "世界号", "Nuri", "世界", "KARI", (_NARO,), 47.2, 200, 3300, None, 3, 2021, 2025, 0.8, 0.75, 30),
)  # fmt: skip

MISSION_KINDS: tuple[MissionKind, ...] = (
    MissionKind("Crewed flight", "载人飞行", 700, (
        Series("Shenzhou", "神舟", "CNSA", 1999, 2025, 21), Series("Soyuz MS", "联盟MS-", "Roscosmos", 2016, 2025, 27),
        Series("Crew", "龙飞船乘员-", "NASA", 2020, 2025, 11), Series("STS", "航天飞机任务", "NASA", 1990, 2011, 40))),
    MissionKind("Cargo supply", "货运补给", 240, (
        Series("Tianzhou", "天舟", "CNSA", 2017, 2025, 9), Series("Progress", "进步", "Roscosmos", 1990, 2025, 40),
        Series("CRS", "商业补给", "NASA", 2012, 2025, 30), Series("Kounotori", "白鹳", "JAXA", 2009, 2020, 9))),
    MissionKind("Space station", "空间站", 2500, (
        Series("Tiangong", "天宫", "CNSA", 2011, 2023, 4), Series("ISS Assembly", "国际空间站组装", "NASA", 1998, 2011, 12))),
    MissionKind("Lunar exploration", "月球探测", 600, (
        Series("Chang'e", "嫦娥", "CNSA", 2007, 2025, 6), Series("Chandrayaan", "月船", "ISRO", 2008, 2023, 3),
        Series("Artemis", "阿尔忒弥斯", "NASA", 2022, 2025, 2), Series("Luna", "月球", "Roscosmos", 2023, 2024, 1))),
    MissionKind("Planetary exploration", "行星探测", 900, (
        Series("Tianwen", "天问", "CNSA", 2020, 2025, 2), Series("Mars Explorer", "火星探测者", "NASA", 1996, 2022, 9),
        Series("Hayabusa", "隼鸟", "JAXA", 2003, 2018, 2), Series("Venus Express", "金星快车", "ESA", 2005, 2022, 3))),
    MissionKind("Navigation", "导航", 300, (
        Series("BeiDou", "北斗", "CNSA", 2000, 2024, 24), Series("GPS", "全球定位系统", "NASA", 1990, 2024, 24),
        Series("GLONASS", "格洛纳斯", "Roscosmos", 1990, 2025, 20), Series("Galileo", "伽利略", "ESA", 2011, 2025, 12),
        Series("NavIC", "印度导航星座", "ISRO", 2013, 2025, 8))),
    MissionKind("Communications", "通信", 220, (
        Series("ChinaSat", "中星", "CNSA", 1994, 2025, 18), Series("Starlink Group", "星链", "SpaceX", 2019, 2025, 24),
        Series("Express", "快讯", "Roscosmos", 1994, 2022, 10), Series("Eutelsat", "欧洲通信卫星", "Arianespace", 1990, 2025, 14),
        Series("GSAT", "印度通信卫星", "ISRO", 2001, 2025, 10), Series("Kirameki", "煌", "JAXA", 2017, 2024, 3))),
    MissionKind("Earth observation", "对地观测", 260, (
        Series("Gaofen", "高分", "CNSA", 2013, 2025, 14), Series("Landsat", "陆地卫星", "NASA", 1993, 2021, 4),
        Series("Sentinel", "哨兵", "ESA", 2014, 2025, 9), Series("Cartosat", "制图卫星", "ISRO", 2005, 2025, 8),
        Series("Daichi", "大地", "JAXA", 2006, 2024, 4), Series("KOMPSAT", "阿里郎", "KARI", 1999, 2025, 6),
        Series("Meteor-M", "流星-M", "Roscosmos", 2009, 2025, 5))),
    MissionKind("Science", "空间科学", 450, (
        Series("Space Science", "空间科学", "CNSA", 2015, 2025, 6), Series("Explorer", "探险者", "NASA", 1992, 2025, 14),
        Series("Cosmic Vision", "宇宙愿景", "ESA", 1999, 2025, 7), Series("Spektr", "光谱", "Roscosmos", 2011, 2022, 2))),
)  # fmt: skip

# name, Chinese name, share of the capacity for a low orbit that can be lifted there, how frequent
ORBITS: tuple[tuple[str, str, float, int], ...] = (
    ("LEO", "近地轨道", 0.9, 40),
    ("SSO", "太阳同步轨道", 0.6, 22),
    ("MEO", "中地球轨道", 0.35, 9),
    ("GTO", "地球同步转移轨道", 1.0, 19),
    ("GEO", "地球静止轨道", 1.0, 5),
    ("TLI", "地月转移轨道", 1.0, 3),
    ("Heliocentric", "日心轨道", 1.0, 2),
)

PAYLOAD_KINDS: tuple[PayloadKind, ...] = (
    PayloadKind("Communications satellite", "通信卫星", ("LEO", "GTO", "GEO", "MEO"), (
        ("ChinaSat", "中星"), ("Intelsat", "国际通信卫星"), ("Starlink", "星链卫星"), ("Iridium", "铱星"), ("Astra", "阿斯特拉"))),
    PayloadKind("Navigation satellite", "导航卫星", ("MEO", "GEO"), (
        ("BeiDou", "北斗卫星"), ("Navstar", "导航星"), ("Galileo-FOC", "伽利略卫星"), ("Uragan", "飓风"))),
    PayloadKind("Earth observation satellite", "对地观测卫星", ("SSO", "LEO"), (
        ("Yaogan", "遥感"), ("Gaofen", "高分卫星"), ("WorldView", "世界观测"), ("SPOT", "斯波特"), ("Jilin", "吉林"))),
    PayloadKind("Weather satellite", "气象卫星", ("SSO", "GEO"), (
        ("Fengyun", "风云"), ("Meteosat", "欧洲气象卫星"), ("Himawari", "向日葵"), ("Elektro", "电子卫星"))),
    PayloadKind("Science satellite", "科学卫星", ("LEO", "SSO", "Heliocentric"), (
        ("Shijian", "实践"), ("Astro", "天文"), ("Swift", "雨燕"), ("Einstein Probe", "爱因斯坦探针"))),
    PayloadKind("Crewed spacecraft", "载人飞船", ("LEO",), (
        ("Crew Capsule", "载人飞船"), ("Orbiter", "轨道飞行器"))),
    PayloadKind("Cargo spacecraft", "货运飞船", ("LEO",), (
        ("Cargo Ship", "货运飞船"), ("Supply Module", "补给舱"))),
    PayloadKind("Lunar probe", "月球探测器", ("TLI",), (
        ("Lunar Orbiter", "月球轨道器"), ("Lunar Lander", "月球着陆器"), ("Queqiao", "鹊桥"))),
    PayloadKind("Planetary probe", "行星探测器", ("Heliocentric",), (
        ("Mars Probe", "火星探测器"), ("Asteroid Probe", "小行星探测器"))),
    PayloadKind("Technology demonstrator", "技术试验星", ("LEO", "SSO", "GTO"), (
        ("CubeSat", "立方星"), ("Chuangxin", "创新"), ("TechSat", "技术卫星"))),
)  # fmt: skip
