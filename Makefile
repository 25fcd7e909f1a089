# The one place that says how this project is checked.

.PHONY: test
test:
	cargo test --release --locked --workspace
