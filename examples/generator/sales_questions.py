"""Questions about a shop's sales table, as one Inspect log: samples by epoch, a scorer, errors and limits."""

from .run import Run, do, fails, say, story, user

SYSTEM = ("Answer the question about the table `sales` (day, sku, quantity, price). Query it with sql, then call "
          "submit with the answer.")
SCHEMA = "sales(day TEXT, sku TEXT, quantity INTEGER, price REAL); 1,204 rows"


def revenue():
    task = "revenue-may"
    ask = user("What was the revenue of LAMP-OAK in May 2026?")
    schema = do("describe", {"table": "sales"}, SCHEMA)
    query = "select sum(quantity * price) from sales where sku = 'LAMP-OAK' and day like '2026-05-%'"
    ask_sql = do("sql", {"query": query}, "1256.40")
    extra = {"target": "1256.40"}
    return [
        Run(task, 1, "success", story(ask, schema, ask_sql, do("submit", {"answer": "1,256.40"}, ""),
                                      say("The revenue was 1,256.40.")),
            "1,256.40 is the 1256.40 that the query gave", silent=("unsupported-answer", "missing-submission"),
            extra=extra),
        Run(task, 2, "failure", story(
            ask, schema, fails("sql", {"query": query.replace("price", "amount")}, "no such column: amount"),
            do("submit", {"answer": "1310.00"}, ""), say("The revenue was 1310.00.")),
            "the query fails, the answer is invented", "agent", ("unsupported-answer", "unaddressed-error"),
            extra=extra),
        Run(task, 3, "failure", story(ask, schema, ask_sql, say("I have what I need: the table holds the sales.")),
            "has the number and never submits it", "agent", ("missing-submission",), extra=extra),
        Run(task, 4, "success", story(
            ask, schema, fails("sql", {"query": query.replace("price", "amount")}, "no such column: amount"),
            ask_sql, do("submit", {"answer": "1256.40"}, ""), say("The revenue was 1256.40.")),
            "one failed query, then the right one", silent=("unaddressed-error", "ignored-error"), extra=extra),
    ]


def best_day():
    task = "best-day"
    ask = user("On which day of June 2026 did the shop sell most TENT-2P?")
    schema = do("describe", {"table": "sales"}, SCHEMA)
    same = do("sql", {"query": "select day, quantity from sales where sku = 'TENT-2P' limit 1"}, "2026-06-01|2")
    ask_sql = do("sql", {"query": "select day from sales where sku = 'TENT-2P' and day like '2026-06-%' "
                                  "group by day order by sum(quantity) desc limit 1"}, "2026-06-20")
    extra = {"target": "2026-06-20"}
    return [
        Run(task, 1, "success", story(ask, schema, ask_sql, do("submit", {"answer": "2026-06-20"}, ""),
                                      say("2026-06-20")), "the plain way", silent=("unsupported-answer",), extra=extra),
        Run(task, 2, "failure", story(ask, schema, *[same] * 6), "the same query until the message limit", "agent",
            ("repeated-call", "loop", "limit-reached", "missing-submission"),
            extra={**extra, "limit": {"type": "message", "limit": 16}}),
        Run(task, 3, "unknown", story(ask, schema), "never scored: the model's server stopped", "infrastructure",
            extra={**extra, "error": "InternalServerError: Error code: 500 - the server had an error while "
                                     "processing your request"}),
        Run(task, 4, "failure", story(
            ask, do("sql", '{"query": "select day from sales where sku = "TENT-2P""}',
                    "Error: could not parse the arguments as JSON", error=True),
            do("submit", {"answer": "I could not query the table."}, "")),
            "unescaped quotes: the arguments do not parse", "agent", ("unaddressed-error",), extra=extra),
    ]


RUNS = [run for tell in (revenue, best_day) for run in tell()]
