/* What --help of drps-index says of its options. */
#include "api/settings/drps_index_keys.h"

#include "api/settings/drps_metrics_keys.h"
#include "api/settings/drps_reader_settings.h"

/* clang-format off */
const struct argp_option drps_index_table[] = {
    {NULL, 0, NULL, 0, "Result and model:", 1},
    {"output", 'o', "PLAN", 0, "Folder to make (required)", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace PLAN if it exists", 1},
    {"algo", KEY_ALGO, "NAME", 0, "Model: lir (linear regression), lor (logistic), mlr (softmax), svm, fm and ffm (factorization machines), lmf (ratings), topic; of implicit feedback bpr, warp, wmf; expr, whose loss --loss writes out; or net, whose layers --net names, and the nets mlp, wide-deep, deepfm, dlrm, dcn, lstm, lenet, alexnet (required)", 1},
    {"factors", KEY_FACTORS, "K", 0, "Factors a row, for lmf, bpr, warp, wmf and fm: the length of its vector (default 16); for ffm for each field (default 4); for topic how many topics, 2 to 1024 (default 16); for a net that is built in the length of its embeddings (default 16; of lstm 200, and of its layers, too)", 1},
    {"rank", KEY_RANK, "R", OPTION_HIDDEN, NULL, 1},
    {"task", KEY_TASK, "NAME", 0,
     "For fm, ffm, nets and expr: auto (default; two distinct labels mean classification), regression, classification", 1},
    {"loss", KEY_LOSS, "NAME", 0,
     "squared, logistic, hinge, squared-hinge, softmax (default: the model's usual one); for expr an "
     "expression, such as 'cross_entropy(y, softmax(W*x))'", 1},
    {"outputs", KEY_OUTPUTS, "J", 0,
     "For expr: W*x has J scores, 2 to 65535, and labels are numbers (default: a score for each class)", 1},
    {"net", KEY_LAYERS, "FILE", 0,
     "For net: a text of its layers (drps-index(1), NETS), or the name of a net that is built in", 1},
    {"no-bias", KEY_NO_BIAS, NULL, 0, "No intercept", 1},
    {"dense", KEY_DENSE, NULL, 0,
     "Batches whose samples have nearly all features are stored as matrices, in fewer bytes; the "
     "model is the same",
     1},
    {"no-normalize", KEY_NO_NORMALIZE, NULL, 0, "For ffm: take samples as they are, not divided by their length", 1},

    {"base", KEY_BASE, "PLAN", 0,
     "Go on from a finished plan: its features keep their rows, those that only DATA have get rows "
     "behind them, and batches are of DATA alone; model, format, columns and labels are those of PLAN", 1},
    {"replay", KEY_REPLAY, "P", 0,
     "With --base: train on this share of its training samples, too (0.1 or 10%; at most 0.9; default 0)", 1},

    {NULL, 0, NULL, 0, "Input:", 2},
    READER_OPTIONS(2, "default auto", "label, target, y or click; 1 without a header",
                   "what the first lines say"),
    READER_LEARN_OPTIONS(2),
    LABEL_OPTIONS(2),
    WEIGHT_OPTIONS(2),
    {"hash-seed", KEY_HASH_SEED, "N", 0, "Seed of the keys of string names, and of --hash-bits (default 0)", 2},
    {"hash-bits", KEY_HASH_BITS, "B", 0,
     "Hash features into 2^B bins, 1 to 30, in place of a row for each: bounds the rows and the "
     "memory of the dictionary; features of a sample in one bin add up (default: no hashing)", 2},
    {"hash-kind", KEY_HASH_KIND, "NAME", 0,
     "signed (default: each feature with a sign of its own), or oph: one-permutation hashing with "
     "densification, for sets, whose values are all 1; needs --hash-bits 2 or more", 2},
    {"hash-bins", KEY_HASH_BINS, "K", 0,
     "For --hash-kind oph: each sample becomes K features, each one of 2^B / K (a power of two to "
     "1024; default 256)", 2},
    SEQUENCE_OPTION(2, "64"),
    {"test", KEY_TEST, "FILE", 0, "Test samples, which are not trained on; may be given several times", 2},
    {"test-labels", KEY_TEST_LABELS, "FILE", 0,
     "idx: labels of test samples, as --labels: one FILE for each --test", 2},
    {"test-weights", KEY_TEST_WEIGHTS, "FILE", 0,
     "Weights of test samples, as --weights: one FILE for each --test", 2},
    {"class-weights", KEY_CLASS_WEIGHTS, "WHAT", 0,
     "Weights of training samples by their class, times their own: balanced (each class the same "
     "together), or NAME=W,NAME=W (default: 1)", 2},
    {"test-fraction", KEY_TEST_FRACTION, "P", 0,
     "Take this share of the samples as test samples (0.1 or 10%; default 0)", 2},

    {NULL, 0, NULL, 0, "Batches:", 3},
    {"batch-size", KEY_BATCH_SIZE, "B", 0,
     "Samples a batch of each worker, or a share as P% (default 0.01%, at least 100)", 3},
    {"order", KEY_ORDER, "NAME", 0,
     "Order of samples: shuffled (default), given, micro: by rare features in common, or, for lmf, "
     "grid: by groups of users and items", 3},
    {"grid", KEY_GRID, "U,I", 0,
     "Groups of users and of items, or one number for both, for --order grid (1 to 4096; default: "
     "chosen for the memory)", 3},
    {"lanes", KEY_LANES, "N", 0,
     "Batches that share no row side by side, for ratings: work for as many threads (1 to 16; "
     "default 4 where batches are many; with --order grid as many as --workers)", 3},
    {"seed", KEY_SEED, "N", 0, "Seed of the shuffle and of the test split (default 1)", 3},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of this run, and of the grid and windows it cuts (default: half of the memory)", 3},
    {"no-forecast", KEY_NO_FORECAST, NULL, 0,
     "Leave out what an epoch would move, which takes longest where many blocks are used", 3},

    {NULL, 0, NULL, 0, "Implicit feedback, for bpr, warp and wmf: lines say which items a user has chosen:", 4},
    {"positive-from", KEY_POSITIVE_FROM, "R", 0,
     "Lines with a rating below R are no choice, and are left out (default: all lines are; for wmf "
     "those with a rating above 0)", 4},
    {"negatives", KEY_NEGATIVES, "HOW", 0,
     "Items that a user has not chosen are drawn even (default), or popular: as often as they are "
     "chosen", 4},
    {"negatives-per", KEY_NEGATIVES_PER, "K", 0,
     "Drawn for each training sample (1 to 4096; default: bpr 1, warp 10, wmf 20)", 4},
    {"negative-draws", KEY_NEGATIVE_DRAWS, "D", 0,
     "An epoch has each training sample D times, with other negatives each time (1 to 1000; default 1)", 4},
    {"test-negatives", KEY_TEST_NEGATIVES, "M", 0,
     "Drawn for each test sample, which is placed among them (1 to 4096; default 100)", 4},
    {"alpha", KEY_ALPHA, "A", 0, "For wmf: a choice has the confidence 1 + A times its rating (default 1)", 4},
    {"negative-weight", KEY_NEGATIVE_WEIGHT, "W", 0,
     "For wmf: weight of the negatives of a sample together (default: --negatives-per, 1 each), or all: "
     "they stand for all items that the user has not chosen", 4},

    {NULL, 0, NULL, 0, "Training on several machines:", 5},
    {"workers", KEY_WORKERS, "N", 0,
     "Make a plan for N machines: a worker and a server each (default 1)", 5},
    {"servers", KEY_SERVERS, "M", 0,
     "The first M machines alone hold rows; where M is more than N, those beyond hold rows alone "
     "(default: as --workers)", 5},
    {"separate", KEY_SEPARATE, NULL, 0,
     "The M machines of --servers hold rows alone, and N others train", 5},
    {"from-plan", KEY_FROM_PLAN, "PLAN", 0,
     "In place of DATA: deal the batches of a finished plan to --workers machines; with -o, --force, "
     "--servers, --separate, --partition, --net-mbs, --hot-rows, --dppa, --residuals, --hand-on, --hand-on-for, "
     "--link, --memory and --no-forecast alone", 5},
    {"partition", KEY_PARTITION, "NAME", 0,
     "Which rows each of the machines holds: auto (default: each row with who uses it most, and no link above "
     "1.05 of the average; but with --order grid ranges of rows circulate, between at most 16), range (runs "
     "of neighbouring rows that share memory and accesses evenly; default with --from-plan), counts (runs with as many accesses alone), greedy (the "
     "paper's), dppa (least traffic); to compare with, hash", 5},
    {"net-mbs", KEY_NET, "R", 0,
     "MB/s of each machine's link, which --partition greedy weighs against the disk (default 125: 1 Gbit/s)", 5},
    {"hot-rows", KEY_HOT_ROWS, "P", 0,
     "greedy, dppa, hash: this share of the rows, those used most, is placed row by row, the others with their "
     "blocks (default 6.25%)", 5},
    {"samples", KEY_SAMPLES, "HOW", 0,
     "Which samples each of the machines trains on: round (placed with the rows that they use, each in "
     "the round that it would be dealt to, so that the same is learned; default for --partition auto, "
     "greedy and dppa), placed (in any round), dealt in turn, kept (each its own files, as many for each, one after the other; default where several machines make the plan), or dppa (the partition paper's Algorithm 1; held in memory)", 5},
    {"machine-weights", KEY_MACHINE_WEIGHTS, "W,W...", 0,
     "Machines of unequal power: each gets this share of every round's samples, dealt, and of the rows, with "
     "--partition range (default then) or counts; one number for each of --workers (default: all alike)", 5},
    {"balance", KEY_BALANCE, "R", 0,
     "Exchange samples between the machines of a round until none has more than R times the mean of "
     "their entries, such as 1.03; the same is learned (default: they stay)", 5},
    {"dppa", KEY_DPPA, "LIST", 0,
     "How dppa places, as NAME=VALUE,...: for --samples dppa alpha=N|auto, beta=B, sample=N|n/k, bins=N, "
     "first=samples|rows; for --partition dppa traffic=batches|sets", 5},
    {"link", KEY_LINK, "SPEED", 0,
     "Speed of each machine's link to the network, to say whether the machines can be faster than one "
     "(default 1Gbit); the plan is the same", 5},
    {"residuals", KEY_RESIDUALS, "N", 0,
     "Let drps-train shorten gradients (--push-values, --push-filter, --push-top) and parameters "
     "(--pull-values, --pull-filter) on their way: each worker keeps what was not sent, or a copy, of "
     "N rows at a time, or of 'all' that it uses again in an epoch, or of 'each' that it uses, so that it can keep "
     "gradients over epochs (--push-flush); N rows of memory for each worker", 5},
    {"hand-on", KEY_HAND_ON, "N", 0,
     "A row that one worker alone uses in several rounds stays with it, and goes from there to the "
     "next: a worker keeps N rows at a time, or all that move less so", 5},
    {"hand-on-for", KEY_HAND_ON_FOR, "NAME", 0,
     "The optimizer, whose state travels with a row: sgd, adagrad (default), ftrl or adam", 5},

    {NULL, 0, NULL, 0, "Blocks, for drps-train --store rocksdb, leveldb or file:", 6},
    {"blocks", KEY_BLOCKS, "NAME", 0,
     "Block builder: pattern (default: pages of rows with one access pattern), auto (merges what "
     "batches use together), topk and pairwise (the paper's merging, of the rows used most; greedy is pairwise), "
     "none (one row a block); to compare with, pages by id, frequency, or random", 6},
    {"block-size", KEY_BLOCK_BYTES, "SIZE", 0, "Bytes a block at most (default 2K)", 6},
    {"seek-us", KEY_SEEK, "T", 0, "What a disk request costs beside its bytes (default 40)", 6},
    {"transfer-mbs", KEY_TRANSFER, "R", 0, "MB/s of long requests (default 1200)", 6},
    {"calibrate", KEY_CALIBRATE, "DIR", 0, "Measure --seek-us and --transfer-mbs on the disk of this folder, and arithmetic: the forecast then has "
     "seconds, and drps-train the limit they set", 6},
    {"topk", KEY_TOP_K, "K", 0, "topk: pairs merged a round (default 50)", 6},
    {"min-gain", KEY_MIN_GAIN, "US", 0, "Merge only what saves more an epoch (default 0)", 6},
    {"prune", KEY_PRUNE, "F", 0, "Rows that fewer batches use stay alone (default: see --prune-to)", 6},
    {"prune-to", KEY_PRUNE_TO, "N", 0,
     "All rows but the N most used stay alone; or a share of them, such as 10% (default: as memory and time allow)", 6},
    {"sample", KEY_SAMPLE, "P", 0, "Count this share of the batches (default: all)", 6},
    {"sample-samples", KEY_SAMPLE_SAMPLES, "P", 0,
     "Instead: count the batches that this share of the samples makes (the paper's 1%)", 6},
    {"shards", KEY_SHARDS, "N", 0, "Processes that count accesses, each a share of the batches (default 1)", 6},

    {NULL, 0, NULL, 0, "On several machines, each of which is a worker and a server:", 7},
    {"peers", KEY_PEERS, "FILE", 0,
     "Each reads its own DATA, and makes the folder of its rank in PLAN, as one machine would with "
     "all DATA: FILE has \"host:port [public key]\" of each, a line a machine, as for drps-train. "
     "With --blocks auto, topk, pairwise or greedy the first reads DATA and makes PLAN, and others "
     "only count what batches use", 7},
    {"peer-rank", KEY_PEER_RANK, "R", 0,
     "Which line this process is, from 0 (default: as mpirun, srun or an indexed Kubernetes job "
     "say)", 7},
    {"local", KEY_LOCAL, "N", 0,
     "In place of --peers: N processes on this machine, each of which reads its share of DATA", 7},
    {"shared", KEY_SHARED, NULL, 0,
     "With --peers: DATA are the same files on all machines, and each reads its share of them", 7},
    {"keys", KEY_KEYS, "DIR", 0,
     "This machine's keys (drps-train --make-keys); needed beyond one machine", 7},
    {"insecure", KEY_INSECURE, NULL, 0, "Go without keys: in a network where all are trusted", 7},
    {"transport", KEY_TRANSPORT, "NAME", 0,
     "zmq (default): --peers; or mpi: the ranks that mpirun or srun has started", 7},
    {"timeout", KEY_TIMEOUT, "S", 0, "Seconds to wait for the others to start (default 600)", 7},
    {"silence", KEY_SILENCE, "S", 0,
     "Seconds for which a link may be cut; who is not heard of for somewhat more than twice that "
     "is dead (default 5)", 7},

    {NULL, 0, NULL, 0, "Numbers to watch, while it runs (drps-top shows them):", 8},
    METRICS_OPTIONS(8, ""),
    {0},
};
/* clang-format on */
