/* What --help of drps-train says of its options. */
#include "api/settings/drps_train_keys.h"

#include "api/settings/drps_metrics_keys.h"

const struct argp_option drps_train_table[] = {
    {NULL, 0, NULL, 0, "The model:", 1},
    {"output", 'o', "MODEL", 0, "Folder to make (required)", 1},
    {"force", KEY_FORCE, NULL, 0,
     "Replace MODEL if it exists, and with DATA MODEL.plan if drps-train has made it", 1},
    {"model-store", KEY_MODEL_STORE, "NAME", 0,
     "Database that the model is written as: rocksdb, leveldb (default: the first that this build "
     "has)",
     1},
    {"publish", KEY_PUBLISH, "FOLDER", 0,
     "In place of a plan: make the model of what an earlier run kept in FOLDER, because writing "
     "the model failed",
     1},
    {NULL, 0, NULL, 0, "Learning:", 2},
    {"from", KEY_FROM, "OLD", 0,
     "Begin with OLD, a model or a folder of checkpoints. A model gives its parameters, and the "
     "optimizer's state where its run has kept it (--keep-checkpoints). Features that OLD does not "
     "have begin anew",
     2},
    {"export-delta", KEY_EXPORT_DELTA, "FILE", 0,
     "With --from MODEL: write the rows that differ from those of that model, and new ones, as "
     "text. "
     "No tool of drps applies it: a line replaces the line of the same name, or is added",
     2},
    {"no-state", KEY_NO_STATE, NULL, 0,
     "With --from: take parameters alone, the optimizer begins anew", 2},
    {"epochs", KEY_EPOCHS, "E", 0,
     "Passes over the training samples (default 1; of lbfgs and its kind 100 at most)", 2},
    {"patience", KEY_PATIENCE, "P", 0,
     "Stop after P epochs without a better test loss and keep the best epoch's model (default: "
     "train all epochs and keep the last)",
     2},
    {"metric", KEY_METRIC, "NAME", 0,
     "With --patience: judge epochs by loss (default), auc, rmse or accuracy of test samples, or "
     "for bpr, warp and wmf by ndcg@10 or recall@10",
     2},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0,
     "sgd, adagrad (default), ftrl, adam, or for lir, lor and mlr a quasi-Newton method, which "
     "steps "
     "once "
     "a pass and ends by itself: lbfgs, or with a matrix of all parameters in memory bfgs, dfp, "
     "sr1, broyden",
     2},
    {"tolerance", KEY_TOLERANCE, "X", 0,
     "Quasi-Newton: end when the gradient's norm is X times that at the beginning (default 1e-5)",
     2},
    {"memory-pairs", KEY_MEMORY_PAIRS, "M", 0,
     "lbfgs: steps that it remembers, 1 to 32 (default 10): a row has 2 M + 6 times its parameters",
     2},
    {"lr", KEY_LR, "RATE", 0,
     "Learning rate (default: adagrad 0.05, for lor on categories 0.07, for fm and nets 0.01, for "
     "nets of sequences 0.08, for warp 0.03, for lmf, bpr, wmf, mlr, ffm and expr with W*x 0.1; "
     "ftrl 0.1; adam 0.001; sgd: by the size of a batch)",
     2},
    {"auto", KEY_AUTO, NULL, 0,
     "Choose the learning rate: before training, a share of the batches is trained with the usual "
     "one and with some that are larger and smaller, of which nothing stays",
     2},
    {"lr-decay", KEY_LR_DECAY, "NAME", 0,
     "sgd, adagrad, adam: rate of epoch e of E: constant (default), inverse: RATE / e, sqrt: RATE "
     "/ "
     "sqrt(e), cosine: RATE (1 + cos(pi (e - 1) / E)) / 2",
     2},
    {"batch-mean", KEY_BATCH_MEAN, NULL, 0,
     "Step with the mean of a batch's gradients, not their sum", 2},
    {"l1", KEY_L1, "X", 0,
     "L1 regularisation of weights and biases, or of codes of topics (default 0)", 2},
    {"l2", KEY_L2, "X", 0, "L2 regularisation (default 0, of topics 1)", 2},
    {"eps", KEY_EPS, "X", 0,
     "adagrad: added to the sum of squares (default 1e-8, for lor on categories 1, for lmf, bpr "
     "and warp 0.1, for wmf, ffm and nets of sequences 0.01); "
     "larger makes first steps smaller; adam: added to the root (default 1e-8)",
     2},
    {"beta1", KEY_BETA1, "X", 0,
     "adam: decay of the mean of a row's gradients, above 0 and below 1 (default 0.9)", 2},
    {"beta2", KEY_BETA2, "X", 0, "adam: decay of the mean of their squares (default 0.999)", 2},
    {"local-steps", KEY_LOCAL_STEPS, NULL, 0,
     "Step after every sample, on the batch's own copy of its rows", 2},
    {"seed", KEY_SEED, "N", 0, "Seed of the initial factors (default 1)", 2},
    {"init-scale", KEY_INIT_SCALE, "X", 0,
     "Factors start between -X and X (default 0.1 / sqrt(factors a row), for ffm 0.5 / "
     "sqrt(factors), for nets of sequences 1.4 / sqrt(factors)), and rows of drps-index "
     "--outputs",
     2},
    {NULL, 0, NULL, 0, "Memory and disk:", 3},
    {"store", KEY_STORE, "NAME", 0,
     "Where rows live: resident (all in memory), relay (in memory while a few batches need them, "
     "then on disk until the next that do), file, rocksdb or leveldb (blocks in such a store, the "
     "busy ones in memory), or auto (default): resident if all fit --memory, else relay",
     3},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 3},
    {"device", KEY_DEVICE, "NAME", 0,
     "What computes: cpu (default), cuda (a device, whose memory has the rows then), or auto: cuda "
     "where there is one that can",
     3},
    {"device-memory", KEY_DEVICE_MEMORY, "SIZE", 0,
     "Memory of the device, for rows and batches (default: nearly all that is free there)", 3},
    {"device-library", KEY_DEVICE_LIBRARY, "FILE", 0,
     "The kernels for the device, a file (default: those that are installed with drps)", 3},
    {"no-keep", KEY_NO_KEEP, NULL, 0,
     "Store resident: read the plan's batches in each epoch, also where they fit --memory", 3},
    {"threads", KEY_THREADS, "N", 0, "Threads that compute (default 1: reproducible bit for bit)",
     3},
    {"one-by-one", KEY_ONE_BY_ONE, NULL, 0,
     "A plan with lanes: one batch after another, each by all threads", 3},
    {"prefetch-steps", KEY_PREFETCH, "N", 0,
     "Stores of blocks: batches whose rows are in memory, the current one included (1 to 8, the "
     "default)",
     3},
    {"evict", KEY_EVICT, "RULE", 0,
     "Stores of blocks: which leave memory when it is full: farthest (default; used again last), "
     "clock, lru",
     3},
    {NULL, 0, NULL, 0, "Checkpoints, from which training goes on after a crash:", 4},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on from the newest checkpoint, with the options of the run that wrote it where none are "
     "given; begin anew where there is none",
     4},
    {"resume-round", KEY_RESUME_ROUND, "N", 0,
     "--resume after round N of the run, counted over its epochs, which checkpoints of vectors "
     "still cover",
     4},
    {"checkpoint-every", KEY_CHECKPOINT_EVERY, "TIME", 0,
     "Write one every so often: 30s, 5m, 2h, 1000b (batches), 1e (epochs), or never (default: 5m, "
     "or longer where they would take more than 1 % of the time)",
     4},
    {"checkpoint-dir", KEY_CHECKPOINT_DIR, "DIR", 0,
     "Where they lie, of all ranks (default: MODEL.checkpoint)", 4},
    {"checkpoint-rows", KEY_CHECKPOINT_ROWS, NULL, 0,
     "Write all rows at each. Otherwise files of rows that have not changed are those of the one "
     "before, and store relay writes only what is in memory and keeps what is on disk (not with "
     "--checkpoint-dir)",
     4},
    {"checkpoint-vectors", KEY_CHECKPOINT_VECTORS, NULL, 0,
     "With --exchange vectors, or without ranks for a model of several classes: log what is "
     "applied "
     "in each round, and write one when the logs are as large as the model; every TIME (default: "
     "10s) the log is made durable. Training goes on from any round that is covered",
     4},
    {"keep-checkpoints", KEY_KEEP_CHECKPOINTS, NULL, 0,
     "Leave them when the model is written, with one of the last epoch, so that more epochs can "
     "follow",
     4},
    {"on-failure", KEY_ON_FAILURE, "WHAT", 0,
     "When a rank, or the only process, is lost, or a disk is full: stop (default), or resume: "
     "start anew from the newest checkpoint, until three attempts in a row have come no further",
     4},
    {NULL, 0, NULL, 0, "A plan for several workers:", 5},
    {"local", KEY_LOCAL, "N", 0, "Run all N ranks on this machine, a process each", 5},
    {"peers", KEY_PEERS, "FILE", 0,
     "Run one rank; FILE has \"host:port [public key]\" of each, a line a rank", 5},
    {"rank", KEY_RANK, "R", 0,
     "Which rank this process is, from 0 (default: as mpirun, srun or an indexed Kubernetes job "
     "say)",
     5},
    {"keys", KEY_KEYS, "DIR", 0, "This rank's keys; needed beyond one machine", 5},
    {"make-keys", KEY_MAKE_KEYS, "DIR", 0, "Make a folder for --keys, and end", 5},
    {"insecure", KEY_INSECURE, NULL, 0, "Go without keys: in a network where all are trusted", 5},
    {"transport", KEY_TRANSPORT, "NAME", 0,
     "With --local: zmq (default), or inproc: threads of one process; without, mpi: one rank of "
     "those that mpirun or srun has started",
     5},
    {"sync", KEY_SYNC, "MODE", 0,
     "When a worker starts its next batch: bsp (default; all together, reproducible), asp (at "
     "once), ssp (at most --staleness ahead), wsp (when waiting costs more than stale parameters), "
     "wsp-literal",
     5},
    {"staleness", KEY_STALENESS, "S", 0,
     "ssp, wsp: batches that a worker may be ahead of the slowest (default: ssp 3; wsp 8 a "
     "worker, at least 1024). ssp with 0 is bsp, with inf asp",
     5},
    {"wsp-lambda", KEY_WSP_LAMBDA, "X", 0,
     "wsp: weight of waiting against staleness (default 1): the more, the less it waits", 5},
    {"wsp-ema", KEY_WSP_EMA, "X", 0,
     "wsp: weight of a worker's last batch in the time that is expected of its next (default 0.3; "
     "wsp-literal 1)",
     5},
    {"wsp-patience", KEY_WSP_PATIENCE, "X", 0,
     "wsp: a wait ends after 1 + X times what was expected (default 0.2; wsp-literal: no end)", 5},
    {"lr-stale", KEY_LR_STALE, "RULE", 0,
     "Other modes than bsp: the rate of a gradient is divided by how stale it is: by the batches "
     "of others that it lacks (batches), or by rounds of these (rounds); or not: same (default)",
     5},
    {"exchange", KEY_EXCHANGE, "WAY", 0,
     "Models of several classes or outputs: how gradients are exchanged: servers (default), or "
     "between ranks "
     "that each have all rows: vectors, with any --sync; under bsp rows, dense, or auto, the way "
     "of fewest bytes",
     5},
    {"net-exchange", KEY_NET_EXCHANGE, "WAY", 0,
     "bsp, of nets: how ranks exchange the net's own parameters: servers, which send them to all "
     "ranks in each round; sums: each rank has them, and ranks add up their gradients; vectors: "
     "as sums, but for full and lstm layers ranks send the vectors whose products gradients are, "
     "where these are fewer bytes; or auto (default): what takes less time, by the plan. The model is the same",
     5},
    {"sv-count", KEY_SV_COUNT, "C", 0,
     "With --exchange vectors: of the vectors of a batch C are sent, which stand for all", 5},
    {"sv-rule", KEY_SV_RULE, "RULE", 0,
     "Which: jmcss (default), those that the others say least of; random; or project, as jmcss, "
     "and "
     "what they cannot say is added to later batches",
     5},
    {"exchange-to", KEY_EXCHANGE_TO, "Q", 0,
     "With --exchange vectors: a round's vectors go to Q of the other ranks alone; ranks are "
     "averaged at the end of an epoch",
     5},
    {"exchange-rule", KEY_EXCHANGE_RULE, "RULE", 0,
     "To which ranks --exchange-to sends: random (default), robin (in turn) or fixed (always the "
     "same)",
     5},
    {"average", KEY_AVERAGE, "R", 0, "Where ranks' rows differ: average them every R rounds, too",
     5},
    {"rotate", KEY_ROTATE, "S", 0,
     "Where ranks' rows differ: every S rounds they move on to the next rank", 5},
    {"exchange-loss", KEY_EXCHANGE_LOSS, "SHARE", 0,
     "For experiments: in each round this share of the pairs of ranks cannot reach each other", 5},
    {"no-claim", KEY_NO_CLAIM, NULL, 0,
     "Other modes than bsp: no worker takes over batches of a slower one", 5},
    {"no-overlap", KEY_NO_OVERLAP, NULL, 0,
     "Parameters of a batch travel only when it is the batch's turn, not while the one before is "
     "computed; under bsp the model is the same",
     5},
    {"no-hand-on", KEY_NO_HAND_ON, NULL, 0,
     "bsp: rows go to their servers after each batch, also with a plan of drps-index --hand-on", 5},
    {"no-fresh", KEY_NO_FRESH, NULL, 0,
     "bsp: send parameters that nobody has trained, too, which workers make themselves in the "
     "first "
     "epoch; the model is the same",
     5},
    {"push-values", KEY_PUSH_VALUES, "BITS", 0,
     "Send the values of gradients with 8bit, 16bit or 32bit (default). What is rounded away, "
     "or not sent by --push-filter or --push-top, is kept and added to the row's next gradient; "
     "all of it is sent before an epoch's training ends. Needs a plan with --residuals",
     5},
    {"push-filter", KEY_PUSH_FILTER, "phi=X,d=X,p=X", 0,
     "Hold back values smaller than phi / (1 + d ln t) in a worker's batch t (default d: 0), "
     "or "
     "a share p of these (default: all); without phi a share p of all values",
     5},
    {"push-top", KEY_PUSH_TOP, "SHARE", 0,
     "Send of each message this share of the values at most (0.1 or 10%), the largest", 5},
    {"push-flush", KEY_PUSH_FLUSH, "N,BITS", 0,
     "What pushes keep back waits over epochs: all of it is sent in each Nth epoch (default 1) and "
     "in the "
     "last, or with 'last' there alone; with 8bit or 16bit in so many bits, and what these round "
     "away is kept. Needs a plan with --residuals each",
     5},
    {"pull-values", KEY_PULL_VALUES, "BITS", 0,
     "Send the values of parameters in training with 8bit (bsp), 16bit or 32bit (default), and "
     "under "
     "bsp only rows of which the worker does not have the same values still; servers keep all of "
     "them exact. Under bsp needs a plan with --residuals",
     5},
    {"pull-filter", KEY_PULL_FILTER, "psi=X,d=X,eps=X", 0,
     "bsp: a worker goes on with the values that it has of a row until one of them has changed by "
     "psi / (1 + d ln t) of itself in round t, or of eps if that is more (default d: 0, eps: 1)",
     5},
    {"filter-target", KEY_FILTER_TARGET, "SHARE", 0,
     "Choose filters of --push-... and --pull-... so that they change the loss by at most this "
     "share (0.5%): before training, up to an epoch is trained once without them and with three or "
     "four settings, of which nothing stays. Needs a plan with --residuals",
     5},
    {"pull-cached", KEY_PULL_CACHED, NULL, 0,
     "ssp: a worker uses its copies of other ranks' parameters, with its own gradients, as long as "
     "--staleness allows; with sgd or adagrad. Needs a plan with --residuals",
     5},
    {"timeout", KEY_TIMEOUT, "S", 0,
     "Seconds to wait for ranks to start, and for what a rank owes (default 600)", 5},
    {"silence", KEY_SILENCE, "S", 0,
     "Seconds for which a link may be cut; a rank that is not heard of for somewhat more than "
     "twice that is dead (default 5)",
     5},
    {"emulate", KEY_EMULATE, "TIMES", 0,
     "For measurements: training batches take at least as long as in TIMES: NAME:SECONDS[:SEED], "
     "where NAME is homogeneous, straggler, pauses or tail, or a file with a line of seconds for "
     "each rank",
     5},
    {NULL, 0, NULL, 0, "Numbers to watch, while it runs (drps-top shows them):", 6},
    METRICS_OPTIONS(6, "; with several ranks each has its own, NAME.rank-R.END for NAME.END"),
    {0},
};
