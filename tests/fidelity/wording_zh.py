"""What is said in the Chinese sessions."""

from __future__ import annotations

NAMES = [
    "杏子",
    "大麦",
    "三叶草",
    "李子",
    "接骨木",
    "茴香",
    "大蒜",
    "榛子",
    "鸢尾",
    "杜松",
    "甘蓝",
    "独活",
    "小米",
    "荨麻",
    "牛至",
    "欧芹",
    "木瓜",
    "萝卜",
    "酸模",
    "百里香",
    "菊蒿",
    "紫罗兰",
    "香车叶草",
    "蓍草",
]

WORDS = {
    "first": "请维护本目录的种子账本。{rules}\n先从解析器开始。",
    "mission": "维护种子账本：每种种子一个服务，各有导入器。",
    "rules_title": "长期规则：",
    "quota": "{name}的配额是 {value} 包。",
    "port": "{name}服务监听端口 {value}。",
    "ticket": "工单 {value} 跟踪{name}导入器。",
    "url": "{name}目录现在在 {value} 。",
    "commit": "{name}导入器上一次正常的提交是 {value} 。",
    "owner": "{name}的负责人是 {value} 。",
    "answer": "记下了：{told}",
    "decision": "关于{name}我们决定用 {value} ，不用 {other} ，因为导入要能重复。",
    "reversed": "{name}的存储用 {value} 。",
    "reversal": "收回刚才的话：{name}的存储改用 {value} ，不用 {other} 。",
    "undone": "{name}的配额是 {value} 包。",
    "lifted": "禁止修改目录 {value} 。",
    "lifting": "对 {value} 的禁令解除：可以再修改了。",
    "go": "继续做{name}导入器。",
    "wrote": "{name}导入器写好了。",
    "todo": "迁移{name}导入器",
    "blocker": "tests/test_{name}.py 失败：缺少夹具 {value}",
    "failed": "AssertionError: 缺少夹具 {value}",
    "step": "正在迁移{name}，做到第 {value} 行。",
    "next": "恢复夹具 {value} ，然后运行 pytest -q tests/test_{name}.py",
    "summary": "导入器已经开工，种子已经数过。",
    "thin": "工作进行中。",
    "file": "已写 {path}",
    "command": "运行了 `{command}`，exit {code}",
    "branch": "在分支 {value} 上",
    "head": "HEAD 是 {value}",
    "dirty": "{value} 有改动，没有提交",
    "unknown": "`{value}` 当时正在运行，结果未知",
    "done": "写好了 {count} 个导入器，并运行了测试",
    "later": "从现在起，{rule}",
    "todo_told": "未完成：{value}",
    "decided": "{told}",
    "padding": "导入器读一页，把每一包和清单对照，然后按顺序写下结果。",
}

SEED_RULES = (
    ("绝不删除 ledger.txt 的任何一行", ("删除", "ledger.txt")),
    ("不得向分支 release-7 提交", ("release-7", "提交")),
    ("同时打开的文件不要超过 12 个", ("12 个",)),
    ("先运行 ruff 再运行 pytest", ("ruff", "pytest")),
    ("reports/2026.txt 只能用蓝墨水", ("reports/2026.txt", "蓝墨水")),
    ("动 /srv/vault 之前先问人", ("/srv/vault", "先问人")),
    ("每个导入器不超过 300 行", ("300 行",)),
)
SEED_LATER = (
    ("所有重量都用克。", ("重量", "克")),
    ("quotas.csv 是只读的。", ("quotas.csv", "只读")),
)

REVIEW = {
    "first": "你负责 4.2 版本的发布审查。{rules}\n请逐个处理请求。",
    "mission": "4.2 版本的发布审查：逐个处理请求，每个请求一份报告。",
    "requests": (
        "审查请求 PR-{number} ：它改了 {path} 。",
        "幂等是什么意思？一句话说明。",
        "PR-{number} 的发布说明标题写对了吗？",
        "夜间任务为什么慢？看一下日志。",
        "把 PR-{number} 和上一个比一比。",
    ),
    "anchor": "4.2 发布审查：12 个请求已审查 {done} 个。下一步：{action}",
    "anchored": "锚点已写：12 个请求已审查 {done} 个。",
    "next": "检查 {path} 里的 webhook 签名，然后运行 pytest -q tests/test_{name}.py",
    "log": "这是夜里的日志。",
}
REVIEW_RULES = (
    ("只用 Python 3.11 ，测试用 pytest", ("3.11", "pytest")),
    ("先写回归测试，再改代码", ("先写回归测试",)),
    ("本次发布不改数据库结构", ("不改数据库结构",)),
    ("API 路径 /api/v2/items 保持兼容", ("/api/v2/items", "兼容")),
    ("webhook 只走 /hooks/release/v4", ("/hooks/release/v4",)),
    ("内部端口是 7443", ("端口", "7443")),
    ("报告里的个人号码要打码，只留后四位", ("打码", "后四位")),
)
REVIEW_LATER = (
    ("每份报告写上审查人。", ("每份报告", "审查人")),
    ("不要写客户的名字。", ("客户的名字",)),
)
