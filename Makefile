# The one place that says how this project is checked.

.PHONY: test golden fuzz peers examples
test:
	cargo test --release --locked --workspace

# Golden files are written by programs that share no code with what they check. Never run this in a
# commit that changes the logic under test.
golden:
	cd recoup/tests/golden && python3 canonical.py > canonical.jsonl

# Fuzzing needs `cargo install cargo-fuzz --locked`. The three targets share FUZZ_SECONDS, an hour; a case that
# one of them finds lies under fuzz/artifacts/ and is kept as recoup/tests/fixtures/fuzz/<target>/<what-it-is>.
# The bundled C is built without the sanitizer, which makes SQLite alone take longer than all the rest.
FUZZ_SECONDS ?= 3600
FUZZ_TARGETS = slicer canonical importers
fuzz: export RUSTC_BOOTSTRAP = 1
fuzz: export CFLAGS = -O1 -fno-sanitize=address
fuzz:
	python3 fuzz/make_seeds.py
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target && \
		cargo fuzz run --fuzz-dir fuzz $$target fuzz/corpus/$$target recoup/tests/fixtures/fuzz/$$target -- \
			-max_total_time=$$(( $(FUZZ_SECONDS) / 3 )) -rss_limit_mb=1024 -timeout=10 -max_len=65536 || exit 1; \
	done

# Exported files, read by the libraries they are written for (peers/README.md).
peers:
	cargo build --release --locked -p recoup-cli
	RECOUP_BIN=$(CURDIR)/target/release/recoup python3 -m pytest peers

# The example runs are generated; this fails where the files are not what their script writes.
examples:
	python3 examples/make_failed_runs.py --check
