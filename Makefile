# The one place that says how this project is checked.

.PHONY: test golden
test:
	cargo test --release --locked --workspace

# Golden files are written by programs that share no code with what they check. Never run this in a
# commit that changes the logic under test.
golden:
	cd recoup/tests/golden && python3 canonical.py > canonical.jsonl
