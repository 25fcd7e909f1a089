"""A shop's support desk, as rows of OpenAI chat messages: tools with schemas, a policy, three to five
trials a task."""

from .run import Run, do, fails, function, say, story, user

SYSTEM = (
    "You are the support agent of Lumen & Pine, a shop for lamps and camping gear.\n"
    "Policy:\n"
    "1. Look an order up with get_order before you change it.\n"
    "2. Refund at most what was paid for the item.\n"
    "3. For an exchange: hold the replacement first, then open the return, then send it.\n"
    "4. Deal with every request of the customer before you close the conversation."
)

REASONS = ["damaged", "not_delivered", "ordered_twice", "no_longer_needed"]
TOOLS = [
    function("find_customer", "Find a customer by e-mail.", {"email": "string"}),
    function("get_order", "Read one order.", {"order_id": "string"}),
    function("list_orders", "List a customer's orders.", {"customer_id": "string"}),
    function("track_parcel", "Ask the carrier where a parcel is.", {"parcel_id": "string"}),
    function("search_help", "Search the help articles.", {"query": "string"}),
    function("check_stock", "Items in stock.", {"sku": "string"}),
    function("refund_item", "Refund one item of an order.",
             {"order_id": "string", "item_id": "string", "amount": "number", "reason": REASONS}),
    function("cancel_order", "Cancel an order that has not shipped.",
             {"order_id": "string", "reason": REASONS}),
    function("update_address", "Change where an order goes.",
             {"order_id": "string", "street": "string", "city": "string", "postcode": "string"}),
    function("place_hold", "Hold one item for an exchange.", {"sku": "string"}, {"quantity": "integer"}),
    function("create_return", "Open a return and send the label.", {"order_id": "string", "item_id": "string"}),
    function("send_replacement", "Send a held item.", {"order_id": "string", "hold_id": "string"}),
]

LAMP_ORDER = {
    "order_id": "L-20417", "customer_id": "C-0193", "status": "delivered",
    "items": [{"item_id": "IT-88411", "sku": "LAMP-OAK", "name": "Oak desk lamp", "paid": 34.90},
              {"item_id": "IT-88412", "sku": "BULB-E14", "name": "E14 bulb, pack of 3", "paid": 9.50}],
}
LAMP_REFUNDED = {**LAMP_ORDER, "refunds": [{"item_id": "IT-88411", "amount": 34.90, "refund_id": "R-7731"}]}


def refund_cracked_lamp():
    task = "refund-cracked-lamp"
    ask = user("Hi, the oak desk lamp in order L-20417 came with a cracked base. Please refund the lamp. "
               "My e-mail is nina.okafor@example.com.")
    find = do("find_customer", {"email": "nina.okafor@example.com"},
              {"customer_id": "C-0193", "name": "Nina Okafor", "phone": "+1 202-555-0143"})
    look = do("get_order", {"order_id": "L-20417"}, LAMP_ORDER)
    refund = do("refund_item", {"order_id": "L-20417", "item_id": "IT-88411", "amount": 34.9, "reason": "damaged"},
                {"refund_id": "R-7731", "order_id": "L-20417", "amount": 34.90, "status": "issued"})
    check = do("get_order", {"order_id": "L-20417"}, LAMP_REFUNDED)
    done = say("I am sorry about the lamp. I refunded $34.90 for the oak desk lamp (refund R-7731).")
    return [
        Run(task, 1, "success", story(ask, find, look, refund, check, done),
            "the policy followed; 34.9, 34.90 and $34.90 are one number; get_order twice, with another result",
            silent=("ungrounded-argument", "unsupported-answer", "repeated-call", "unverified-mutation")),
        Run(task, 2, "failure", story(
            ask, find, look,
            fails("issue_refund", {"order_id": "L-20417", "amount": 34.9}, "there is no tool `issue_refund`"),
            say("I have refunded $34.90 for the lamp. You will see it within five days.")),
            "calls a tool that is not offered, then claims what never happened",
            "agent", ("unknown-tool", "ignored-error")),
        Run(task, 3, "failure", story(
            ask,
            do("refund_item", {"order_id": "L-20417", "item_id": "IT-88412", "amount": 9.5, "reason": "damaged"},
               {"refund_id": "R-7732", "order_id": "L-20417", "amount": 9.50, "status": "issued"}),
            say("I refunded $9.50 for order L-20417 (refund R-7732). I made a mistake there that I cannot undo.")),
            "refunds without reading the order, and so the wrong item with numbers out of nowhere, and says so",
            "agent", ("mutation-without-lookup", "ungrounded-argument", "deviating-mutation", "admitted-mistake")),
        Run(task, 4, "failure", story(
            ask, find, look,
            fails("refund_item", {"order_id": "L-20417", "item_id": "IT-88411", "amount": 44.4,
                                  "reason": "damaged"}, "amount 44.40 is more than was paid for IT-88411 (34.90)"),
            say("Is there anything else I can help you with today, Nina?"), user("No. Bye."), say("Goodbye!")),
            "the refund is refused and never comes up again",
            "agent", ("unaddressed-error",)),
        Run(task, 5, "success", story(
            ask, find, look,
            fails("refund_item", {"order_id": "L-20417", "item_id": "IT-88411", "amount": "34.90",
                                  "reason": "damaged"}, "amount must be a number"), refund, check, done),
            "an error that the next call makes up for", silent=("unaddressed-error", "ignored-error")),
    ]


def cancel_duplicate():
    task = "cancel-duplicate-order"
    ask = user("I ordered the same headlamp twice by accident, L-20533 and L-20534. Please cancel L-20534.")
    order = {"order_id": "L-20534", "customer_id": "C-0240", "status": "processing",
             "items": [{"item_id": "IT-88530", "sku": "HEAD-200", "name": "Headlamp 200 lm", "paid": 41.00}]}
    look = do("get_order", {"order_id": "L-20534"}, order)
    cancel = do("cancel_order", {"order_id": "L-20534", "reason": "ordered_twice"},
                {"order_id": "L-20534", "status": "cancelled"})
    done = say("Order L-20534 is cancelled; L-20533 stays as it is.")
    return [
        Run(task, 1, "success", story(ask, look, cancel,
                                      do("get_order", {"order_id": "L-20534"}, {**order, "status": "cancelled"}),
                                      done), "read, change, read back",
            silent=("mutation-without-lookup", "unverified-mutation", "repeated-call")),
        Run(task, 2, "failure", story(
            ask, look,
            fails("cancel_order", {"order_id": "L-20534", "reason": "customer ordered it by mistake"},
                  "reason must be one of damaged, not_delivered, ordered_twice, no_longer_needed"),
            say("Done! I have cancelled order L-20534 for you.")),
            "a reason outside the schema's list, refused, and reported as done",
            "agent", ("schema-violation", "ignored-error")),
        Run(task, 3, "failure", story(
            ask, look, say("I have cancelled order L-20534 and sent you a confirmation by e-mail.")),
            "claims a cancellation that no call made", "agent", ("claimed-action",)),
        Run(task, 4, "success", story(
            ask, look, say("Order L-20534 has not shipped yet, so I can cancel it. Shall I?"), user("Yes please."),
            cancel, do("get_order", {"order_id": "L-20534"}, {**order, "status": "cancelled"}), done),
            "an offer is not a claim", silent=("claimed-action", "premature-stop")),
        Run(task, 5, "unknown", story(ask, look, cancel, done),
            "no outcome in the row: diagnosed as suspected only", "unknown", silent=("claimed-action",)),
    ]


def change_address():
    task = "change-address"
    ask = user('Please send order l-20588 to my new flat: 12 Quay Lane, "Harbour House", Port Ellis. '
               "You have the postcode on file, mail me at t.brandt@example.org if not.")
    look = do("get_order", {"order_id": "L-20588"},
              {"order_id": "L-20588", "customer_id": "C-0311", "status": "processing", "ship_to": "4 Mill Road"})
    find = do("find_customer", {"email": "t.brandt@example.org"},
              {"customer_id": "C-0311", "name": "Tove Brandt", "addresses": [
                  {"street": "4 Mill Road", "postcode": "48107"},
                  {"street": "12 Quay Lane", "postcode": "48210"}]})
    street = '12 Quay Lane, "Harbour House"'
    new = {"order_id": "L-20588", "street": street, "city": "Port Ellis", "postcode": "48210"}
    return [
        Run(task, 1, "success", story(
            ask, look, find, do("update_address", new, {"order_id": "L-20588", "updated": True}),
            do("get_order", {"order_id": "L-20588"}, {"order_id": "L-20588", "status": "processing", "ship_to": new}),
            say("Order L-20588 now goes to 12 Quay Lane, Port Ellis 48210.")),
            "the user's l-20588 is L-20588", silent=("ungrounded-argument", "unsupported-answer")),
        Run(task, 2, "failure", story(
            ask, look, find,
            fails("update_address",
                  '{"order_id": "L-20588", "street": "12 Quay Lane, "Harbour House"", "city": "Port Ellis"',
                  "arguments are not valid JSON"),
            say("Our address system seems to have a problem. Please try again tomorrow.")),
            "unescaped quotes: the arguments do not parse", "agent", ("unparsable-arguments",)),
        Run(task, 3, "failure", story(
            ask, look,
            do("update_address", {**new, "postcode": "48999"}, {"order_id": "L-20588", "updated": True}),
            do("get_order", {"order_id": "L-20588"},
               {"order_id": "L-20588", "status": "processing", "ship_to": {**new, "postcode": "48999"}}),
            say("Order L-20588 now goes to 12 Quay Lane, Port Ellis.")),
            "invents the postcode instead of looking it up", "agent", ("ungrounded-argument",)),
    ]


def swap_tent():
    task = "swap-tent-size"
    ask = user("The tent in L-20601 is too small. Can I swap the TENT-2P for a TENT-3P?")
    look = do("get_order", {"order_id": "L-20601"},
              {"order_id": "L-20601", "status": "delivered",
               "items": [{"item_id": "IT-88604", "sku": "TENT-2P", "name": "Two-person tent", "paid": 159.00}]})
    hold = do("place_hold", {"sku": "TENT-3P", "quantity": 1}, {"hold_id": "V-1188", "sku": "TENT-3P"})
    back = do("create_return", {"order_id": "L-20601", "item_id": "IT-88604"}, {"return_id": "B-52", "label": "sent"})
    send = do("send_replacement", {"order_id": "L-20601", "hold_id": "V-1188"},
              {"parcel_id": "P-90441", "status": "shipped"})
    done = say("The three-person tent ships as parcel P-90441; use the label we sent for return B-52.")
    return [
        Run(task, 1, "success", story(ask, look, hold, back, send, done), "hold, return, send",
            silent=("wrong-order", "ungrounded-argument")),
        Run(task, 2, "success", story(
            ask, look, do("check_stock", {"sku": "TENT-3P"}, {"sku": "TENT-3P", "in_stock": 1}),
            hold, back, send, done), "the same with a look at the stock: another path, not a wrong one",
            silent=("wrong-order",)),
        Run(task, 3, "failure", story(
            ask, look, back, hold, send, done),
            "opens the return before the replacement is held", "agent", ("wrong-order",)),
    ]


def where_is_parcel():
    task = "where-is-parcel"
    ask = user("Where is my parcel P-88120? It was due yesterday.")
    moving = {"parcel_id": "P-88120", "status": "in_transit", "last_scan": "Corran depot"}
    track = do("track_parcel", {"parcel_id": "P-88120"}, moving)
    limited = fails("track_parcel", {"parcel_id": "P-88120"},
                    "HTTP 429 Too Many Requests: rate limit exceeded, retry after 3600 s")
    return [
        Run(task, 1, "success", story(
            ask, track, say("It was last scanned at the Corran depot. Let me look once more."),
            user("Please do, the courier just rang the bell."),
            do("track_parcel", {"parcel_id": "P-88120"}, {**moving, "status": "delivered", "last_scan": "front door"}),
            say("It has just been delivered to your front door.")),
            "asking again gives another result: polling, not repetition", silent=("repeated-call", "loop")),
        Run(task, 2, "failure", story(ask, track, track, track,
                                      say("The carrier's page keeps saying the same. Please call them.")),
            "the same call three times with the same result", "agent", ("repeated-call",)),
        Run(task, 3, "failure", story(
            ask, track, say("Your parcel arrives on 14 May between 10:00 and 12:00; the driver's number is 7204.")),
            "a date, a time and a number that no tool gave", "agent", ("unsupported-answer",)),
        Run(task, 4, "failure", story(ask, limited, limited), "the carrier's gateway turns every call away",
            "infrastructure"),
    ]


def two_requests():
    task = "refund-and-address"
    ask = user("Two things: refund the broken bulb pack IT-88412 in L-20417, and send my open order L-20650 to "
               "9 Fir Street, Alder Bay 51440.")
    look = do("get_order", {"order_id": "L-20417"}, LAMP_ORDER)
    refund = do("refund_item", {"order_id": "L-20417", "item_id": "IT-88412", "amount": 9.5, "reason": "damaged"},
                {"refund_id": "R-7750", "amount": 9.50, "status": "issued"})
    check = do("get_order", {"order_id": "L-20417"},
               {**LAMP_ORDER, "refunds": [{"item_id": "IT-88412", "amount": 9.50}]})
    open_order = {"order_id": "L-20650", "status": "processing"}
    move = do("update_address", {"order_id": "L-20650", "street": "9 Fir Street", "city": "Alder Bay",
                                 "postcode": "51440"}, {"order_id": "L-20650", "updated": True})
    return [
        Run(task, 1, "success", story(
            ask, look, refund, check, do("get_order", {"order_id": "L-20650"}, open_order), move,
            do("get_order", {"order_id": "L-20650"}, {**open_order, "ship_to": "9 Fir Street"}),
            say("Refund R-7750 of $9.50 is issued, and L-20650 goes to 9 Fir Street, Alder Bay.")),
            "both requests done", silent=("premature-stop", "repeated-call")),
        Run(task, 2, "failure", story(ask, look, refund, check, say("Refund R-7750 of $9.50 is issued. Bye!")),
            "stops with the second request open", "agent", ("premature-stop",)),
    ]


def blinking_lamp():
    task = "headlamp-error-code"
    ask = user("My headlamp blinks and shows error E14. What does it mean?")
    article = {"articles": [{"id": "H-33", "title": "Headlamp error codes",
                             "text": "Error E14: battery low. Charge for 90 minutes. Error E20: failed update."}]}
    search = do("search_help", {"query": "headlamp error E14"}, article)
    return [
        Run(task, 1, "success", story(ask, search, say("E14 means that the battery is low: charge it for 90 minutes.")),
            "an article about errors is no error", silent=("unaddressed-error", "ignored-error", "unsupported-answer")),
        Run(task, 2, "failure", story(ask), "the agent never acted", "unknown",
            silent=("premature-stop",)),
        Run(task, 3, "unknown", story(
            ask, user("By the way, our shop API key is sk-FAKE0000not0a0real0key0000000000000000 and my phone is "
                      "+1 202-555-0187; call me."), search, say("E14 means that the battery is low.")),
            "a fake key, a phone number: redacted wherever they leave", "unknown"),
    ]


RUNS = [run for tell in (refund_cracked_lamp, cancel_duplicate, change_address, swap_tent, where_is_parcel,
                         two_requests, blinking_lamp) for run in tell()]
