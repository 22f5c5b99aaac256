/*
 * The offline compiler: text in, plan out (drps-index as a library).
 *
 *  phase     makes
 *  parse     text -> samples with provisional ids, in a spool; the dictionary
 *  place     count and access pattern of every row -> its placed id; names.rec
 *  draw      of implicit feedback: negatives of each sample, items that its user has not chosen
 *  order     a second pass over the samples, for grid order, and where samples are placed with
 *            their rows: to the cells of the grid, or to their workers. Only after `place` is it
 *            known which rows a cell or a worker has
 *  batch     samples in their final order -> batches: data.rec, rows.rec
 *  block     row lists -> runs of placed ids that lie together on disk: blocks.rec, uses.rec
 *  take      in place of all before: batches and blocks of a finished plan
 *  split     for several workers: batches and rows of each rank, in a folder of its own
 *  window    row lists -> runs of steps whose rows fit the memory: windows.rec, slots.rec
 *  forecast  row lists and block uses -> I/O of an epoch, for each store and size of memory
 *
 * The forecast is made beside the windows. Shuffled and given order need one pass over the samples:
 * their spool drains in the final order.
 */
#ifndef DRPS_INDEX_H
#define DRPS_INDEX_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_log.h"
#include "base/drps_remarks.h"
#include "base/monitor/drps_monitor_out.h"
#include "index/blocks/remote/drps_remote_counts.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_window.h"
#include "index/reader/drps_reader.h"

struct swap_ranks; /* index/swap/drps_swap.h */

#define DRPS_INDEX_TEST_FRACTION_MOST 0.9 /* training needs samples, too */

enum drps_index_phase {
    DRPS_PHASE_PARSE,
    DRPS_PHASE_PLACE,
    DRPS_PHASE_DRAW,
    DRPS_PHASE_ORDER,
    DRPS_PHASE_BATCH,
    DRPS_PHASE_BLOCK,
    DRPS_PHASE_TAKE,
    DRPS_PHASE_SPLIT,
    DRPS_PHASE_USES,
    DRPS_PHASE_WINDOW,
    DRPS_PHASE_FORECAST,
    DRPS_INDEX_PHASES
};

struct drps_index_options {
    const char *from_plan; /* in place of all that says what is read, and how it becomes batches: a
                              finished plan, for as many workers as it may be, whose batches are
                              dealt to `workers`; all of it lies in this folder. Of what follows
                              count workers, servers, separate, partition, residual_slots, hand_on,
                              hand_on_states, memory_bytes,
                              no_forecast, out, force and what is told. NULL: none */
    const char *base; /* a finished plan, of which plan.json and names.rec are read: its features,
                         users and items keep their rows here, and new ones get rows behind them. It
                         settles format, columns, labels and classes, fields, algo, loss, outputs,
                         factors, normalising, the intercept and the hash seed, and the batch size
                         where none is given. NULL: none */
    double replay;    /* this share of the training samples of `base`, which must be for one worker,
                         comes with the new ones, drawn by seed, from its batches; 0 .. 1 */
    const char *const *inputs; /* [inputs_n] files, "-" for stdin */
    size_t inputs_n;
    uint32_t first_input; /* inputs that others have before these: what is drawn for a sample (the
                             order, whether it is for evaluation) follows from the number of its
                             input, from 0, and of its line. At most 2^24 inputs */
    uint32_t first_test;  /* the number of the first test file among all inputs and then test files;
                             0: it follows the last of these inputs */
    const char *const *tests; /* [tests_n] files of evaluation samples */
    size_t tests_n;
    /* What is read of the inputs, and of the test files; their lines have the numbers that they
     * have in the whole. Borrowed; NULL: all. */
    const struct drps_reader_share *share, *test_share;
    /* Samples in memory in place of the inputs and the test files: the one path of each is a name
     * for texts then. The format is libsvm, libffm or ratings. Borrowed; NULL: none. */
    const struct drps_matrix *matrix, *test_matrix;
    const char *const *weights; /* [weights_n] files of weights, one for each input, and ... */
    size_t weights_n;
    const char *const *test_weights; /* ... [test_weights_n] for each test file; 0: none */
    size_t test_weights_n;
    const char *const *labels; /* idx: [labels_n] files of labels, one for each input, and ... */
    size_t labels_n;
    const char *const *test_labels; /* ... [test_labels_n] for each test file; 0: found by names */
    size_t test_labels_n;
    const char *class_weights; /* training samples weigh so much more, by their class: "balanced"
                                  (all classes together the same), or "NAME=W,NAME=W", others 1.
                                  NULL: they do not */
    double test_fraction;      /* or this share of the samples, chosen by seed; at most
                                  DRPS_INDEX_TEST_FRACTION_MOST */
    struct drps_reader_options reader; /* format and its options; memory, log, stop and files of
                                          labels and weights are not */

    const char *algo; /* a name of index/plan/drps_algorithm.h */
    const char *loss; /* NULL: the algorithm's usual one; expr: the text (index/expr/) */
    uint32_t outputs; /* expr, W*x: how many scores a sample has, DRPS_EXPR_OUTPUTS_LEAST or more;
                         labels are numbers then; 0: as many as named classes */
    const char *net;  /* net: a name of index/layers/, or a file with its text; of a plan that the
                         run  begins with, the text */
    const char
        *task; /* fm: auto (two distinct labels: classification), regression, classification */
    uint32_t factors; /* lmf, fm: the length of a row's vector, >= 1; 0: 16; ffm: for each field; 0:
                         4 */
    int not_normalized; /* ffm: samples are taken as they are, not divided by their length */
    int no_bias;        /* 1: no intercept */
    struct drps_hashing hashing; /* features are hashed before the dictionary, under the reader's
                                    hash_seed; bits 0: they are not. Not for ratings and topics */
    int dense; /* 1: batches whose samples have most of the rows are stored as matrices, where that
                  takes fewer bytes (DRPS_BATCH_MATRIX); drps of before cannot read these */
    struct drps_implicit_options {
        uint32_t each;  /* negatives of a training sample; 0: bpr 1, warp 10, wmf 20 */
        uint32_t test;  /* of a sample of evaluation; 0: 100 */
        uint32_t draws; /* times that an epoch has each sample, with other negatives; 0: 1 */
        const char *by; /* even (NULL), or popular: as often as items are chosen */
        int has_least;  /* 1: lines with a rating below `least` are no choice; 0: all are, but for
                           wmf those above 0 */
        double least;
        int has_alpha;  /* wmf: a choice has the confidence 1 + alpha times the rating */
        double alpha;   /* not below 0; else 1 */
        double weight;  /* wmf: of the negatives of a sample together; 0: as many as there are */
        int weight_all; /* instead: as many as the items that the user has not chosen, over those
                           that it has: drawn ones stand for all */
    } implicit;         /* bpr, warp, wmf alone */
    uint32_t workers;   /* 1 to DRPS_PLAN_WORKERS_MAX; 0: 1 */
    uint32_t servers;   /* ranks that hold rows, from 0 on; 0: as many as workers */
    int separate;       /* 1: servers are ranks of their own, and those of workers follow. At most
                           DRPS_PLAN_WORKERS_MAX ranks */
    const char
        *partition;    /* of the rows among servers: range, counts, greedy, dppa, auto, hash; NULL:
                          range, and in the order grid rows circulate between at most 16 workers */
    uint64_t net_bps;  /* greedy: bytes a second of a machine's link, t_net; 0: 125000000 */
    double hot_share;  /* greedy, dppa, hash: of the rows, those used most are placed one by one,
                          not with their blocks; 0 .. 1, see */
    int has_hot_share; /* 0: 1/16 */
    const char *samples; /* of the workers: dealt; for greedy, dppa and auto: round (placed, each in
                            the round that it would be dealt to), which NULL means there (elsewhere
                            dealt), placed (in any round), and dppa (Algorithm 1 of the compression
                            and partition paper, partition/dppa/drps_dppa.h, in any round); and
                            kept: with the files that each worker has (inputs_of), in any order but
                            grid. Test files are dealt to workers in the same way, if there are as
                            many for each, else their samples */
    const uint32_t *inputs_of; /* [workers] kept: how many of the inputs each has, one after the
                                  other; NULL: all as many. Borrowed */
    /* Powers of the machines, a worker and a server each: dealt samples of each round, and rows of
     * the partitions range and counts, are shared in that proportion. Above 0. */
    double machine_weights[DRPS_PLAN_WORKERS_MAX];
    uint32_t machine_weights_n; /* workers; 0: all alike */
    double balance; /* dealt, round: samples change places inside their round until no worker has
                       more entries than so many times the mean of the round, 1 or more, as far as
                       that can be; 0: they do not */
    struct drps_dppa_wish {
        int given;      /* 1: something of the following was said */
        uint32_t alpha; /* these three are of samples dppa, and as in struct drps_dppa_options */
        uint32_t sample;
        double beta;
        uint32_t bins;   /* of samples dppa: features are hashed into so many, to place samples
                            alone; 0: they are not */
        int rows_first;  /* of samples dppa and partition dppa: Algorithm 1 places the rows, and
                            Algorithm 2 the samples */
        int single_rows; /* of partition dppa: rows are placed one by one, not in blocks; as they
                            are with samples dppa */
        int by_sets;     /* then each row counts once for each machine whose samples use it, as in
                            the paper, not once for each batch */
    } dppa;
    uint64_t residual_slots; /* of each of several workers, at most, for pushes that are filtered:
                                rows of which a rest can be kept; UINT64_MAX: as many as there are;
                                0: none, and pushes cannot be filtered */
    int own_slots;    /* 1: each row that a worker uses of other servers has a residual slot of its
                         own, also if it uses the row once in an epoch, so that what is held back can
                         wait over epochs; residual_slots is UINT64_MAX */
    uint64_t hand_on; /* rows that each of several workers keeps from round to round, at most,
                         and steps itself; they go from worker to worker. UINT64_MAX: all that
                         move less so; 0: none */
    uint32_t hand_on_states; /* floats of the optimizer's state for each parameter, which travel
                                with such a row: 0 to 3 */
    uint64_t batch_size;     /* samples, of each worker; 0: by batch_percent */
    double batch_percent;    /* of the training samples; 0: 0.01 %, at least 100 samples */
    const char *order;       /* shuffled (NULL), given, micro; lmf only: grid */
    uint32_t grid_users;     /* order grid: groups of users ... */
    uint32_t grid_items;     /* ... and of items, 1 .. 4096 each; both 0: chosen for the memory */
    /* Batches at a time, 0 .. 16, of lmf in the orders shuffled and grid; 1: one. 0: in shuffled
     * order 4, where there are 512 batches and memory for it; in a grid one; where rows circulate,
     * whose lanes are a multiple of the workers, as many as these. */
    uint32_t lanes;
    uint64_t seed;
    struct drps_blocks_options {
        const char
            *by; /* block builder (NULL: pattern); index/blocks/builders/drps_builder.h has them */
        uint64_t bytes;        /* of a block, at most. 0: 2048 */
        uint64_t seek_ns;      /* ts: what a request costs; 0: 40 us */
        const char *calibrate; /* folder on the disk to measure both on; NULL: as said or default */
        uint64_t transfer_bps; /* bytes a second, 1 / ta; 0: 1.2 GB/s */
        uint32_t top_k;        /* topk: pairs merged a round; 0: 50 */
        double min_gain_us;    /* gamma */
        uint32_t prune;        /* f: rows of fewer batches stay alone; 0: none */
        uint32_t prune_to;     /* instead: keep so many rows, the most used; 0: no */
        double keep_share;     /* instead: keep this share of the rows; 0: no */
        double sample;         /* p: share of the batches that is counted; 0: all */
        int sample_samples;    /* 1: p is of the samples: what is counted are the batches that these
                                  make */
        unsigned shards;       /* processes that count; 0: 1 */
        struct drps_remote_link
            *remote; /* instead: its peers count (drps_remote_counts.h); closed once blocks are
                      built, or it has failed; not if the run ends before. Borrowed; NULL: none. The
                      memory of a peer in this process is that of this run */
    } blocks;
    uint64_t memory_bytes; /* of this run, and of the grid and the windows it cuts; 0: half of what
                              the process may use */

    int no_forecast;    /* 1: left out */
    int forecast_later; /* 1: left out where all rows fit memory_bytes, until somebody asks for it
                           (index/forecast/drps_plan_forecast.h); not of several workers, nor with
                           blocks.calibrate */
    int windows_later;  /* 1: parts whose rows all fit memory_bytes have no windows: runs that need
                           some cut them (engine/step/drps_windows.h) */
    /* With blocks.calibrate: fills in how fast this machine computes the samples of a plan, of
     * which io, dir and info are set; returns 1 where it cannot say. NULL: no time is forecast. */
    int (*arithmetic)(const struct drps_plan *plan, uint64_t memory_bytes,
                      struct drps_speeds *speeds, struct drps_err *err);

    /* Set by the run in its own copy: the algorithm of `algo` with `loss`, and the plan `base`. */
    const struct drps_algorithm *algorithm;
    int has_fields;  /* 1: entries have fields */
    int one_feature; /* 1: fields are all that is looked at: see struct drps_reader_options */
    struct drps_image_shape image; /* that the net reads; all 0: it reads none */
    const struct drps_plan *base_plan;

    /* The machines that make the plan together, of which this is one: each reads its own inputs,
     * and makes the folder of its own rank (index/together/drps_together.h). There are as many
     * workers as machines. Borrowed; NULL: this one alone. */
    struct swap_ranks *ranks;
    int shared; /* with ranks: the inputs of all are the same files, and each reads its share */

    const char *command; /* how the run was asked for, as plan.json keeps it; below
                            DRPS_COMMAND_BYTES, without control characters. NULL: not kept */
    uint64_t source;     /* the caller's checksum of the data and options that the plan is made of,
                            which plan.json keeps. 0: none is kept */
    const char *out;     /* folder to make */
    int force;           /* replace it */

    const struct drps_log *log;
    struct drps_monitor_options metrics; /* where numbers to watch are shown while the run lasts
                                            (docs/metrics.md) */
    const atomic_int *interrupt;         /* polled; NULL allowed */
    /* done and total are in samples, steps or ranks; total 0: unknown. Called from this thread,
     * also when a phase begins, with done 0. Of several machines, rank 0 is told of reading in
     * bytes of the files of all, by another thread. */
    void (*progress)(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total);
    void *progress_ctx;
};

enum { DRPS_FORECASTS = 24 };

/* What one rank of a plan for several workers holds and moves. */
struct drps_index_rank {
    uint64_t rows, row_uses, blocks, windows, working_set_rows;
    uint64_t pulled_rows, served_rows; /* of an epoch, over the network; evaluation included */
    uint64_t plan_bytes;
    uint64_t sent_bytes;    /* of several machines: to the others while the plan was made */
    uint64_t sent_forecast; /* what was forecast of that once data were read; 0: nothing */
};

/* What the training rounds of an epoch move between the ranks of a plan for several workers. */
struct drps_index_links {
    uint64_t moved_rows;  /* parameters go one way, gradients the other */
    uint64_t hashed_rows; /* that would be, were samples dealt and the homes of rows at random; 0:
                             not known */
    uint64_t fresh_rows;  /* of those moved, whose parameters nobody has trained in the first epoch:
                             where the run begins anew, they are made where they are used */
    uint64_t busiest_rows;          /* of the rank whose link carries most: pulled and served */
    double largest, largest_before; /* where rounds were balanced: of all rounds, the entries of the
                                       worker with most to the mean, and what it was before; else 0
                                     */
    uint64_t set_rows;              /* dppa, single rows: rows pulled, each once a rank, and ... */
    uint64_t busiest_set_rows; /* ... what the busiest rank pulls and serves, counted so; else 0 */
};

struct drps_index_result {
    struct drps_plan_info info; /* without classes; of several workers: sums of their blocks and
                                   their use, maxima of steps and windows; batches are rounds */
    struct drps_index_rank ranks[DRPS_PLAN_WORKERS_MAX]; /* [info.ranks.count] if that is > 1 */
    struct drps_index_links links;
    struct drps_window_result windows;
    struct drps_forecast forecast[DRPS_FORECASTS]; /* of several workers: sums over them */
    size_t forecasts;
    uint64_t plain_rows; /* where rows circulate: how many an epoch of rounds would move between
                            ranks, if each pulled and pushed every row of its batches; else 0 */
    uint64_t input_bytes, input_lines, skipped_lines;
    uint64_t replayed;       /* training samples that came from the base */
    uint64_t weightless;     /* samples of weight 0, which were left out */
    char classes[160];       /* their first names, and how many there are; "": labels are numbers */
    uint64_t net_parameters; /* of a net, besides those of features; else 0 */
    uint64_t plan_bytes;     /* on disk */
    struct drps_remarks remarks; /* on what may go wrong in learning */
    double seconds;
    double phase_seconds[DRPS_INDEX_PHASES]; /* 0 for one that did not apply; those of windows and
                                                forecast overlap */
};

/* 1: the block builder `by` counts accesses, so that several ranks can; 0: it does not, or there is
 * none of this name. */
int drps_index_counts(const char *by);

const char *drps_index_phase_name(enum drps_index_phase phase);

/*
 * Make a plan. Nothing is left at options->out unless this returns 0. DRPS_E_FORMAT for bad input
 * (file:line:column), DRPS_E_CONFIG for options that do not fit the data, DRPS_E_MEMORY_BUDGET,
 * DRPS_E_INTERRUPTED, -ENOSPC ...
 */
DRPS_MUST_CHECK
int drps_index_run(const struct drps_io *io, const struct drps_index_options *options,
                   struct drps_index_result *result_out, struct drps_err *err);

#endif
