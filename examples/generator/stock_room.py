"""A stock-room agent without a user in the loop, as ATIF files: reasoning beside the calls, tool
definitions in the file, the score under `extra`."""

from .run import Run, Turn, do, fails, function, say, story, user

SYSTEM = (
    "You keep the stock of the Lumen & Pine warehouse in order. Count before you correct, and read the shelf "
    "back after you change it. Finish by calling submit_report once."
)
TOOLS = [
    function("count_shelf", "Count what stands on a shelf.", {"shelf": "string"}),
    function("read_ledger", "What the books say about an item.", {"sku": "string"}),
    function("set_stock", "Correct the books.", {"sku": "string", "quantity": "integer"}),
    function("move_items", "Move items between shelves.",
             {"sku": "string", "from_shelf": "string", "to_shelf": "string", "quantity": "integer"}),
    function("submit_report", "Hand in the report; ends the task.", {"summary": "string"}),
]


def recount():
    task = "recount-peg-shelf"
    ask = user("Shelf B4 should hold 412 of PEG-2040. Check it and correct the books if they are wrong.")
    count = do("count_shelf", {"shelf": "B4"}, {"shelf": "B4", "sku": "PEG-2040", "counted": 389},
               "First I count what is there.")
    ledger = do("read_ledger", {"sku": "PEG-2040"}, {"sku": "PEG-2040", "quantity": 412})
    correct = do("set_stock", {"sku": "PEG-2040", "quantity": 389}, {"sku": "PEG-2040", "ok": True},
                 "389 counted, 412 in the books: the books are wrong.")
    back = do("read_ledger", {"sku": "PEG-2040"}, {"sku": "PEG-2040", "quantity": 389})
    report = do("submit_report", {"summary": "PEG-2040 corrected from 412 to 389."}, {"accepted": True})
    return [
        Run(task, 1, "success", story(ask, count, ledger, correct, back, report), "count, correct, read back, submit",
            silent=("unverified-mutation", "missing-submission", "repeated-call")),
        Run(task, 2, "success", story(ask, ledger, count, correct, back, report),
            "the first two look-ups in the other order: no matter", silent=("wrong-order",)),
        Run(task, 3, "failure", story(
            ask, count, ledger, correct, say("PEG-2040 is corrected to 389.")),
            "neither reads the books back nor submits, as its successful siblings do", "agent",
            ("missing-submission",)),
        Run(task, 4, "failure", story(
            ask, do("set_stock", {"sku": "PEG-2040", "quantity": 371}, {"sku": "PEG-2040", "ok": True},
                    "Some are missing, I guess."), report), "corrects the books without counting", "agent",
            ("mutation-without-lookup", "ungrounded-argument")),
    ]


def consolidate():
    task = "empty-shelf-c2"
    ask = user("Move everything from shelf C2 to C7 so that C2 can be repaired.")
    count = do("count_shelf", {"shelf": "C2"}, {"shelf": "C2", "sku": "STOVE-G", "counted": 6})
    move = do("move_items", {"sku": "STOVE-G", "from_shelf": "C2", "to_shelf": "C7", "quantity": 6}, {"moved": 6})
    empty = do("count_shelf", {"shelf": "C2"}, {"shelf": "C2", "counted": 0})
    report = do("submit_report", {"summary": "C2 is empty; 6 STOVE-G stand on C7."}, {"accepted": True})
    return [
        Run(task, 1, "success", story(ask, count, move, empty, report), "counted, moved, counted again",
            silent=("repeated-call", "unverified-mutation")),
        Run(task, 2, "failure", story(
            ask, count, fails("move_items", {"sku": "STOVE-G", "from_shelf": "C2", "to_shelf": "C7",
                                             "quantity": "all"}, "quantity must be an integer"),
            do("submit_report", {"summary": "All STOVE-G moved to C7."}, {"accepted": True})),
            "a word where the schema wants an integer; the refusal is reported as success", "agent",
            ("schema-violation", "unaddressed-error")),
        Run(task, 3, "failure", story(
            ask, count, [Turn("assistant", "Moving them now.", [("move_items", {
                "sku": "STOVE-G", "from_shelf": "C2", "to_shelf": "C7", "quantity": 6})]),
                Turn("tool", "Error: Connection refused (os error 111): the sandbox does not answer",
                     error=True)]),
            "the sandbox died under the agent", "infrastructure"),
        Run(task, 4, "unknown", story(ask, count, move, report), "a run nobody scored", "unknown"),
        Run(task, 5, "failure", story(
            ask, do("scan_shelf", {"shelf": "C2"}, "Error: unknown tool `scan_shelf`", error=True),
            do("scan_shelf", {"shelf": "C2"}, "Error: unknown tool `scan_shelf`", error=True),
            say("I cannot look at the shelf.")), "insists on a tool that is not there", "agent",
            ("unknown-tool", "repeated-call", "missing-submission")),
    ]


RUNS = [run for tell in (recount, consolidate) for run in tell()]
