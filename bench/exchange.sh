#!/usr/bin/env bash
# What replicas exchange: time and bytes to a held-out loss for each way, with all links and with a tenth of them broken in each round.
#   bench/exchange.sh [--quick] [DATA]
# Eight hosts, 20 News Groups; what it needs, its environment and what is printed: bench/papers/orpheus.sh.
figure=exchange
. "$(dirname "${BASH_SOURCE[0]}")/papers/orpheus.sh"
ways <<'TEXT'
servers: --exchange servers
the whole matrix: --exchange dense
sparse rows: --exchange rows
vectors: --exchange vectors
25 of 100, jmcss: --exchange vectors --sv-count 25
25 of 100, random: --exchange vectors --sv-count 25 --sv-rule random
25 of 100, projected: --exchange vectors --sv-count 25 --sv-rule project
to 4 at random: --exchange vectors --exchange-to 4
to 4 at random, averaged every 10 rounds: --exchange vectors --exchange-to 4 --average 10
25 to 4, averaged every 10 rounds: --exchange vectors --sv-count 25 --exchange-to 4 --average 10
vectors, ssp 4: --exchange vectors --sync ssp --staleness 4
vectors, wsp: --exchange vectors --sync wsp
vectors, a tenth broken: --exchange vectors --exchange-loss .1
to 4 at random, a tenth broken: --exchange vectors --exchange-to 4 --exchange-loss .1
25 to 4, averaged every 10 rounds, a tenth broken: --exchange vectors --sv-count 25 --exchange-to 4 --average 10 --exchange-loss .1
TEXT
