"""llama.cpp's OpenAI-compatible server with one model: prints its address, and serves until its standard input closes."""

import sys

import xllamacpp


def main():
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.model_alias = {sys.argv[2]}
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    # Threads of one answer wait for each other by spinning, which a busy machine turns into minutes.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    # So small a model repeats itself without end otherwise.
    parameters.sampling.penalty_repeat = 1.3
    parameters.sampling.penalty_last_n = 256
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
