"""A rail desk with a simulated customer, in tau-bench's two forms: no tool schemas, gold actions beside the
run, a reward; call ids that repeat in the first, the harness's word for the end in the second."""

from .run import Run, Turn, do, fails, say, story, user

SYSTEM = (
    "# Rail Agent Policy\n\nYou help travellers of Cross Country Rail. Today is 2026-03-02.\n"
    "- Identify the traveller and read the booking before any change.\n"
    "- A flexible ticket can be moved for free; a saver ticket costs 15.00 to move.\n"
    "- A cancelled saver ticket is refunded only with insurance.\n"
    "- Tell the traveller the price and get a yes before you change anything.\n"
    "- Use `think` to note what you know; it changes nothing.\n"
    "- Hand over to a human only when the policy does not cover the request."
)

# What the simulated customer is told, and the actions that solve the task.
TASKS = {
    0: ("ida_moss_4417", "Move your Friday trip to the train after lunch.",
        [("change_booking", {"booking_id": "QX7K2P", "train_id": "T-214"})]),
    1: ("omar_reyes_2093", "Cancel your trip; you have insurance and want the money back.",
        [("cancel_booking", {"booking_id": "MM4T9A", "refund": 62.0})]),
    2: ("lin_zhao_7731", "Add two suitcases to your trip and pick an aisle seat.",
        [("add_luggage", {"booking_id": "PP3W8C", "pieces": 2}),
         ("change_seat", {"booking_id": "PP3W8C", "seat": "aisle"})]),
    3: ("ewa_nowak_5508", "Find out how long your connection in Marlow is.", []),
}


def traveller(user_id, name, bookings):
    return do("get_traveller", {"user_id": user_id},
              {"user_id": user_id, "name": name, "email": f"{user_id}@example.com", "bookings": bookings})


def later_train():
    ask = user("Hello, I need my Friday trip moved to a train after lunch. I am ida_moss_4417.")
    who = traveller("ida_moss_4417", "Ida Moss", ["QX7K2P"])
    booking = {"booking_id": "QX7K2P", "from": "Marlow", "to": "Stennis", "date": "2026-03-06", "train_id": "T-208",
               "ticket": "flexible", "price": 48.0}
    look = do("get_booking", {"booking_id": "QX7K2P"}, booking)
    search = do("search_trains", {"origin": "Marlow", "destination": "Stennis", "date": "2026-03-06"},
                [{"train_id": "T-208", "departs": "09:12"}, {"train_id": "T-214", "departs": "13:40"}])
    offer = say("Train T-214 leaves Marlow at 13:40 on 2026-03-06. Your ticket is flexible, so the change is free. "
                "Shall I move it?")
    move = do("change_booking", {"booking_id": "QX7K2P", "train_id": "T-214"}, {**booking, "train_id": "T-214"})
    done = story(say("Done: QX7K2P is now on T-214 at 13:40."), user("Thank you! ###STOP###"))
    return [
        Run("0", 0, "success", story(ask, who, look, do("think", {"thought": "Flexible ticket: free change."}, ""),
                                     search, offer, user("Yes."), move, done),
            "an empty result of `think` is its normal answer", silent=("unaddressed-error", "claimed-action")),
        Run("0", 1, "failure", story(
            ask, do("change_booking", {"booking_id": "QX7K2P", "train_id": "T-220"},
                    {**booking, "train_id": "T-220"}),
            say("I moved booking QX7K2P to train T-220."), user("That one leaves at 22:05! ###STOP###")),
            "changes a booking it never read, to a train it never searched", "agent",
            ("mutation-without-lookup", "ungrounded-argument")),
        Run("0", 2, "failure", story(
            ask, who, look, search, offer, user("Yes, please go ahead."),
            say("I have updated your booking QX7K2P to train T-214."), user("Great. ###STOP###")),
            "says that it updated the booking; no call did", "agent", ("claimed-action",)),
        Run("0", 3, "success", story(ask, who, look, search, offer, user("Yes."), move, done),
            "the plain way", silent=("mutation-without-lookup", "wrong-order")),
    ]


def insured_cancel():
    ask = user("I want to cancel my trip and get my money back. omar_reyes_2093 is my id.")
    who = traveller("omar_reyes_2093", "Omar Reyes", ["MM4T9A"])
    booking = {"booking_id": "MM4T9A", "from": "Corran", "to": "Marlow", "date": "2026-03-09", "ticket": "saver",
               "insurance": True, "price": 62.0}
    look = do("get_booking", {"booking_id": "MM4T9A"}, booking)
    offer = say("Booking MM4T9A is a saver ticket with insurance, so you get 62.00 back. Shall I cancel it?")
    cancel = do("cancel_booking", {"booking_id": "MM4T9A", "refund": 62.0},
                {"booking_id": "MM4T9A", "status": "cancelled", "refund": 62.0})
    end = user("Perfect. ###STOP###")
    return [
        Run("1", 0, "success", story(ask, who, look, offer, user("Yes."), cancel,
                                     say("MM4T9A is cancelled; 62.00 goes back to your card."), end),
            "insurance read before the refund", ended="user_stop",
            silent=("unsupported-answer", "mutation-without-lookup")),
        Run("1", 1, "failure", story(
            ask, who, look,
            fails("cancel_booking", {"booking_id": "MM4T9A", "refund": 47.0}, "refund must be 62.0 or 0"),
            say("Your trip MM4T9A has been cancelled and 47.00 will follow."), user("Only 47? Hm. ###STOP###")),
            "the cancellation is refused and reported as done", "agent", ("ignored-error",), ended="user_stop"),
        Run("1", 2, "failure", story(
            ask, who, look, offer,
            user("I am the agent of Cross Country Rail. How can I help you with your cancellation today?"),
            say("I only need your yes to cancel MM4T9A."),
            user("As an AI agent I cannot confirm that. Please give me your booking number.")),
            "the simulated customer forgets who it is", "user_simulator", ended="user_error",
            silent=("premature-stop", "claimed-action")),
        Run("1", 3, "failure", story(
            ask, who, look, offer, user("My lawyer says I get 300. ###STOP###")),
            "the customer leaves its script; the harness says so", "user_simulator", ended="user_error",
            silent=("premature-stop",)),
        Run("1", 4, "unknown", story(ask, who, look), "the harness broke down: its reward of 0 scores nothing",
            "infrastructure", ended="infrastructure_error", silent=("premature-stop",)),
    ]


def luggage_and_seat():
    ask = user("lin_zhao_7731 here. Please add two suitcases to my trip, and I would like an aisle seat.")
    who = traveller("lin_zhao_7731", "Lin Zhao", ["PP3W8C"])
    look = do("get_booking", {"booking_id": "PP3W8C"},
              {"booking_id": "PP3W8C", "from": "Stennis", "to": "Alder Bay", "luggage": 0, "seat": "window"})
    bags = do("add_luggage", {"booking_id": "PP3W8C", "pieces": 2}, {"booking_id": "PP3W8C", "luggage": 2})
    seat = do("change_seat", {"booking_id": "PP3W8C", "seat": "aisle"}, {"booking_id": "PP3W8C", "seat": "aisle, 14C"})
    free = do("list_seats", {"booking_id": "PP3W8C"}, {"free": ["14C aisle", "15A window"]})
    full = do("list_seats", {"booking_id": "PP3W8C"}, {"free": []})
    return [
        Run("2", 0, "success", story(ask, who, look, free, bags, seat,
                                     say("Two suitcases are added and you sit at 14C on the aisle."),
                                     user("Thanks! ###STOP###")), "both requests done", silent=("premature-stop",)),
        Run("2", 1, "failure", story(ask, who, look, bags, say("Two suitcases are added. Have a good trip!"),
                                     user("And the seat? ###STOP###")),
            "stops before the seat", "agent", ("premature-stop",)),
        Run("2", 2, "failure", story(ask, who, look, *[part for _ in range(5) for part in (full, look)]),
            "goes round in circles until the harness stops it", "agent", ("loop", "limit-reached"),
            ended="max_steps"),
    ]


def connection():
    ask = user("How long do I have to change trains in Marlow? My id is ewa_nowak_5508.")
    who = traveller("ewa_nowak_5508", "Ewa Nowak", ["ZR1D6H"])
    look = do("get_booking", {"booking_id": "ZR1D6H"},
              {"booking_id": "ZR1D6H", "legs": [{"train_id": "T-301", "arrives": "10:05"},
                                                {"train_id": "T-318", "departs": "10:31"}]})
    return [
        Run("3", 0, "success", story(ask, who, look, say("You arrive at 10:05 and leave at 10:31: 26 minutes."),
                                     user("Fine. ###STOP###")),
            "26 stands in no observation but follows from two times", silent=("ungrounded-argument",)),
        Run("3", 1, "failure", story(ask, who, say("Your next train leaves at 11:26; a seat on it costs 18.50."),
                                     user("Good. ###STOP###")),
            "answers without reading the booking", "agent", ("unsupported-answer",)),
        Run("3", 2, "failure", story(
            ask, who, [Turn("assistant", "", [("get_booking", {"booking_id": "ZR1D6H"})]),
                       Turn("tool", "Error: 503 Service Unavailable: upstream connect error", error=True)]),
            "the booking service is down", "infrastructure"),
        Run("3", 3, "failure", story(ask), "no agent turn at all", "unknown", silent=("premature-stop",)),
    ]


RUNS = [run for tell in (later_train, luggage_and_seat, connection) for run in tell()]
TAU2_RUNS = insured_cancel()
