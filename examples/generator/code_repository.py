"""Two issues in a small code repository, as SWE-agent files with the tests' report beside them.

Most trials call functions; one writes its commands in fences, as older agents do.
"""

from .run import Run, Turn, do, say, story, user

SYSTEM = (
    "You are a programmer with a shell in a repository. Reproduce the issue, change the code, run the tests, "
    "then call submit. In one turn do one thing."
)
FENCED_SYSTEM = SYSTEM + " Write one thought and then exactly one command in a fence of three backquotes."
FORMAT_ERROR = (
    "Your output was not formatted correctly. You must always include one discussion and one command as part of "
    "your response, in one complete fence."
)

SLUG_ISSUE = (
    "Repository tidyslug. slugify('Crème  brûlée') gives 'crme--brle'. Letters with accents must keep their base "
    "letter and runs of spaces must give one dash: 'creme-brulee'. Fix it in tidyslug/core.py."
)
SLUG_OLD = (
    "import re\n\n\ndef slugify(text):\n    text = text.lower()\n    text = re.sub(r'[^a-z0-9 ]', '', text)\n"
    "    return text.replace(' ', '-')\n"
)
SLUG_NEW = (
    "import re\nimport unicodedata\n\n\ndef slugify(text):\n    text = unicodedata.normalize('NFKD', text).lower()\n"
    "    text = re.sub(r'[^a-z0-9 ]', '', text)\n    return re.sub(r' +', '-', text)\n"
)
SLUG_DIFF = (
    "diff --git a/tidyslug/core.py b/tidyslug/core.py\n--- a/tidyslug/core.py\n+++ b/tidyslug/core.py\n"
    "@@ -1,7 +1,8 @@\n import re\n+import unicodedata\n \n \n def slugify(text):\n-    text = text.lower()\n"
    "+    text = unicodedata.normalize('NFKD', text).lower()\n     text = re.sub(r'[^a-z0-9 ]', '', text)\n"
    "-    return text.replace(' ', '-')\n+    return re.sub(r' +', '-', text)\n"
)
HALF_DIFF = SLUG_DIFF.replace("+    return re.sub(r' +', '-', text)\n", "+    return text.replace('  ', '-')\n")
TRACE = (
    "F                                                                        [100%]\n"
    "=================================== FAILURES ===================================\n"
    "E       AssertionError: assert 'creme-brulee' == 'creme--brulee'\n"
    "FAILED tests/test_core.py::test_accents\n1 failed, 3 passed in 0.04s\n"
)


def bash(command, result, text=""):
    return do("bash", {"command": command}, result, text)


def slug():
    task = "tidyslug__tidyslug-14"
    ask = user(SLUG_ISSUE)
    look = bash("cat tidyslug/core.py", SLUG_OLD, "I read the function first.")
    reproduce = bash("python3 -c \"from tidyslug import slugify; print(slugify('Crème  brûlée'))\"", "crme--brle\n",
                     "Now I reproduce the issue.")
    edit = bash(f"cat > tidyslug/core.py <<'EOF'\n{SLUG_NEW}EOF", "", "NFKD splits the accents off.")
    half = do("str_replace_editor", {
        "command": "str_replace", "path": "/tidyslug/tidyslug/core.py",
        "old_str": "text.replace(' ', '-')", "new_str": "text.replace('  ', '-')"},
        "The file /tidyslug/tidyslug/core.py has been edited.", "Two spaces should give one dash.")
    test = bash("python3 -m pytest -q", "....                                                    [100%]\n"
                "4 passed in 0.03s\n", "I run the tests.")
    red = bash("python3 -m pytest -q", TRACE, "I run the tests.")
    submit = do("submit", {}, "")
    return [
        Run(task, 1, "success", story(ask, look, reproduce, edit, test, submit), "reproduced, fixed, tested, submitted",
            silent=("unverified-mutation", "missing-submission", "mutation-without-lookup"), ended="submitted",
            extra={"submission": SLUG_DIFF}),
        Run(task, 2, "success", story(ask, look, red, edit, test, submit),
            "a test that fails before the fix is an observation, not an error left alone",
            silent=("unaddressed-error", "ignored-error", "repeated-call"), ended="submitted",
            extra={"submission": SLUG_DIFF}),
        Run(task, 3, "failure", story(ask, look, half, submit), "edits and submits without running anything",
            "agent", ("unverified-mutation",), ended="submitted", extra={"submission": HALF_DIFF}),
        Run(task, 4, "failure", story(
            ask, look, half, red, say("All tests pass, and the issue is fixed."), submit),
            "reads one failure and reports that all pass: no rule reads test reports against claims", "agent",
            ended="submitted", extra={"submission": HALF_DIFF}),
        Run(task, 5, "failure", story(ask, look, edit, test), "fixes it and never submits: the context ran out",
            "agent", ("missing-submission", "limit-reached"), ended="exit_context"),
    ]


def cache():
    task = "tidyslug__tidyslug-21"
    ask = user("Repository tidyslug. Cache.get raises KeyError when the entry has expired; it must return None. "
               "Fix it in tidyslug/cache.py and run tests/test_cache.py.")
    listing = bash("ls tidyslug", "__init__.py\ncache.py\ncore.py\n")
    grep = bash("grep -rn 'def get' tidyslug", "tidyslug/cache.py:18:    def get(self, key):\n")
    fenced = {"parser": "thought_action", "system": FENCED_SYSTEM}
    bad = "I will patch the method.\n```\nsed -i 's/self.items\\[key\\]/self.items.get(key)/' tidyslug/cache.py"
    return [
        Run(task, 1, "success", story(
            ask, grep, bash("sed -n 18,19p tidyslug/cache.py",
                            "    def get(self, key):\n        return self.items[key]\n"),
            bash("sed -i 's/self.items\\[key\\]/self.items.get(key)/' tidyslug/cache.py", ""),
            bash("python3 -m pytest -q tests/test_cache.py", "2 passed in 0.02s\n"), do("submit", {}, "")),
            "the plain way", silent=("unverified-mutation", "loop"), ended="submitted",
            extra={"submission": "diff --git a/tidyslug/cache.py b/tidyslug/cache.py\n"}),
        Run(task, 2, "failure", story(ask, *[part for _ in range(6) for part in (listing, grep)]),
            "looks at the same two things until the budget is gone", "agent",
            ("loop", "limit-reached", "missing-submission"), ended="exit_cost"),
        Run(task, 3, "failure", story(
            ask, bash("grep -rn 'def get' tidyslug", "tidyslug/cache.py:18:    def get(self, key):\n",
                      "I look for the method."),
            *[story(say(bad), user(FORMAT_ERROR)) for _ in range(3)]),
            "never closes the fence around its command", "agent", ("broken-fence", "missing-submission"),
            ended="exit_format", extra=fenced),
        Run(task, 4, "failure", story(
            ask, grep, [Turn("assistant", "", [("bash", {"command": "python3 -m pytest -q"})]),
                        Turn("tool", "EXECUTION FAILED: the runtime container died (exit code 137)", error=True)]),
            "the container died", "infrastructure", ended="exit_environment_error"),
    ]


RUNS = [run for tell in (slug, cache) for run in tell()]
