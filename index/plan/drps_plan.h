/*
 * The plan: what drps-index writes and drps-train runs.
 *
 *   plan.json     what the plan is: algorithm, counts, tables, forecast, files with checksums
 *   data.rec      bodies of the batches: training steps 0 .. batches - 1, then evaluation steps
 *   rows.rec      their row lists, same numbers
 *   names.rec     dictionary: feature keys (and strings) to placed ids, sorted by key
 *   blocks.rec    boundaries of the parameter index blocks in placed ids
 *   uses.rec      per step: the blocks it touches and the step that needs each next
 *   windows.rec   per window: its steps, rows, and how far away each is used next and was used last
 *   slots.rec     per step: the slots of its rows in the step's window
 *
 * A *step* is one batch: T training steps, then E evaluation steps, make an epoch of T + E.
 *
 * In a plan for several workers, plan.json and names.rec are of all, and the folder rank-r is a
 * plan, too: of what rank r runs. A step there is a *round*; rows are those of the server's range,
 * numbered from 0; rows.rec lists those that any worker's batch of the round touches; data.rec has
 * the bodies of the worker's own batches; shares.rec and positions.rec (drps_round.h) say which
 * rows go from server to worker. A rank without rows has empty lists, and one without samples
 * batches of none. Where pushes can be filtered, residuals.rec (drps_residuals.h) says where the
 * worker keeps what is held back. Where rows are handed on, handed.rec and lent.rec
 * (drps_handed.h) say what worker and server do with them.
 *
 * In a plan for several workers that has lanes, ranges of rows circulate instead
 * (index/ranks/drps_circulation.h). A part has no shares.rec and no positions.rec then, and its
 * rows are all that come to its rank, numbered in placed order; its steps are batches, and steps
 * that hand rows over (drps_batch.h).
 */
#ifndef DRPS_INDEX_PLAN_PLAN_H
#define DRPS_INDEX_PLAN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/folder/drps_stage.h"
#include "index/classes/drps_classes.h"
#include "index/hashing/drps_hashing.h"
#include "index/layers/drps_layers.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_plan_files.h"
#include "index/price/drps_speeds.h"

enum { DRPS_PLAN_VERSION = 4, DRPS_PLAN_TABLES = 4, DRPS_PLAN_NAME_BYTES = 32 };
enum { DRPS_PLAN_WORKERS_MAX = 1024, DRPS_PLAN_ID_BYTES = 17, DRPS_PLAN_PATH_BYTES = 4096 };
/* The most groups of users or items that a grid has. */
enum { DRPS_GRID_GROUPS_MAX = 4096 };
/* Bytes for the name of a csv label column, with its final zero. */
enum { DRPS_PLAN_COLUMN_BYTES = 256 };
#define DRPS_PLAN_WHOLE UINT32_MAX
/* The most ranges of placed ids that a part holds: the intercept, the rank's own, and one for each
 * lane of others. */
enum { DRPS_PLAN_RANGES = 18 };
/* The most cells of a grid where rows circulate: as many ranges are on their way at a time. */
enum { DRPS_PLAN_CIRCULATING_CELLS = 8 };

/* The folder of a plan, for drps_stage_begin(). */
extern const struct drps_stage_kind drps_plan_kind;

/* A named range of placed ids: "bias" (the intercept, one row), "w", "wv", "user", "item";
 * "rows": users and items mixed by placement. */
#define DRPS_PLAN_BIAS "bias"
#define DRPS_PLAN_NET "net"
struct drps_table {
    char name[DRPS_PLAN_NAME_BYTES];
    uint64_t first, rows;
};

struct drps_row_range {
    uint64_t first, rows; /* placed ids */
};

/* What a plan for several ranks says of rows that are handed on (drps_handed.h): an epoch's,
 * counted once for each batch. Of the whole: sums, and of slots the most. */
struct drps_plan_handed {
    uint64_t slots;  /* of the part's worker, at least 1; 0: no rows are handed on */
    uint64_t states; /* floats of the optimizer's state for each parameter, as counted: of adam,
                        which has one a row besides, 3 */
    /* Rows of the worker's batches that it has itself, so that it neither pulls nor pushes them; of
     * these, rows that servers send, that it returns to them, and that it hands on; and rows that
     * other workers hand on to it. */
    uint64_t used, taken, returned, handed, arrived;
    uint64_t away, given, regained; /* the same of the server's rows: used, taken, returned */
};

/* What a plan, or a model, of a net that reads sequences says of them. All 0: it reads none. */
struct drps_plan_sequences {
    uint32_t most; /* samples of a sequence, at most; in each batch they are whole */
    int lines;     /* 1: each line of text is one; 0: text runs on over line ends */
};

/* What samples weigh. All 0: each weighs 1. */
struct drps_plan_weights {
    double sum, test_sum; /* of training samples, and of those of evaluation */
    double most;          /* of a training sample */
};

/* What a plan of implicit feedback says of negatives: items that were drawn against those that
 * users have chosen. All 0: the plan has none. */
struct drps_plan_negatives {
    uint32_t each;     /* of a training sample, at most: fewer where a user has chosen nearly all */
    uint32_t test;     /* of a sample of evaluation, at most */
    uint32_t draws;    /* times that an epoch has each chosen item, with other negatives each */
    int by_popularity; /* 1: as often as items are chosen; 0: evenly */
    uint64_t items;    /* that there are to be drawn */
    double alpha;      /* wmf: labels are 1 + alpha times the rating */
    double weight;     /* wmf: of all negatives of a sample together; 0: as many as there are
                           items that its user has not chosen, for each that it has */
    uint64_t few;      /* samples left out, whose user has chosen all items: training, and ... */
    uint64_t test_few; /* ... evaluation */
    uint64_t test_new; /* samples of evaluation left out, whose user or item training has not */
    uint64_t below;    /* lines left out, whose rating is too small to be a choice */
};

/* What a plan for several ranks says of them. */
struct drps_plan_ranks {
    uint32_t count;                 /* of ranks; 1: none of what follows is in plan.json */
    uint32_t workers;               /* ranks that have samples: first_worker and up */
    uint32_t servers;               /* ranks that have rows: 0 and up */
    uint32_t first_worker;          /* 0, or servers: then no rank has both */
    uint32_t rank;                  /* whose part this is; DRPS_PLAN_WHOLE: all of it */
    char whole[DRPS_PLAN_ID_BYTES]; /* id of the whole plan */
    uint64_t round_samples;         /* of the largest round, all workers; 1 rank: of a batch */
    uint64_t first_row;             /* placed id of the server's row 0 */
    uint64_t max_round_rows;        /* that the server opens; 1 rank: of a batch */
    uint64_t max_round_uses;        /* the same rows, counted for each batch that has them */
    /* An epoch's rows over the network: those that this rank's worker pulls from other ranks, and
     * that its server lends to them, in training and in evaluation rounds. Training rows go both
     * directions. Of the whole: sums. */
    uint64_t pulled_rows, eval_pulled_rows, served_rows, eval_served_rows;
    uint64_t residual_slots;  /* of a part whose traffic can be filtered: its worker's
                                 (drps_residuals.h); of the whole the most; 0: there are none */
    int own_slots;            /* 1: each row of a worker's batches that other servers have has a
                                 residual slot of its own */
    uint64_t published_slots; /* the same of its server (codec/drps_published.h); 0: as an earlier
                                 version has made it, or there are no residual slots */
    struct drps_plan_handed handed;
    /* Of a part whose rows circulate: row 0 and up of its store, in placed order; of the numbers
     * before, rows that arrive are pulled, and those that depart are served, with the optimizer's
     * state, or without it in evaluation. That with first_row is the rank's own. */
    struct drps_row_range held[DRPS_PLAN_RANGES];
    size_t held_n;
    uint64_t max_range_rows; /* of the largest range that is handed over, by any rank */
};

/* Ranks of so many workers and servers: beside each other from rank 0 on, or separate, the servers
 * first. At least one each. */
static inline struct drps_plan_ranks drps_plan_ranks_of(uint32_t workers, uint32_t servers,
                                                        int separate)
{
    const uint32_t first = separate ? servers : 0, end = first + workers;
    return (struct drps_plan_ranks){.count = servers > end ? servers : end,
                                    .workers = workers,
                                    .servers = servers,
                                    .first_worker = first,
                                    .rank = DRPS_PLAN_WHOLE};
}

/* 1: the rank has samples. */
static inline int drps_rank_trains(const struct drps_plan_ranks *ranks, uint32_t rank)
{
    return rank >= ranks->first_worker && rank - ranks->first_worker < ranks->workers;
}

/* 1: the rank has rows. */
static inline int drps_rank_serves(const struct drps_plan_ranks *ranks, uint32_t rank)
{
    return rank < ranks->servers;
}

/* 1: every rank has both samples and rows. */
static inline int drps_ranks_are_alike(const struct drps_plan_ranks *ranks)
{
    return ranks->count == ranks->workers && ranks->count == ranks->servers;
}

/* Writes "5 workers", or, where ranks differ, "5 workers and 2 servers on 5 ranks". Returns text.
 */
enum { DRPS_PLAN_RANKS_TEXT_BYTES = 80 };
const char *drps_plan_ranks_text(const struct drps_plan_ranks *ranks,
                                 char text[DRPS_PLAN_RANKS_TEXT_BYTES]);

/* Add a part's numbers to those of the whole. */
void drps_plan_handed_add(struct drps_plan_handed *sum, const struct drps_plan_handed *part);

/* Numbers of plan.json that execution needs. In the part of a rank, samples, entries and the maxima
 * of batches are those of all, so that all ranks choose alike. */
struct drps_plan_info {
    char id[DRPS_PLAN_ID_BYTES];     /* hex hash of the plan's content */
    char algo[DRPS_PLAN_NAME_BYTES]; /* a name of drps_algorithm.h, as is the loss */
    char loss[DRPS_PLAN_NAME_BYTES];
    char expression[DRPS_EXPR_TEXT]; /* the loss as a text; "": it is none */
    char net[DRPS_LAYERS_TEXT];      /* a net as a text; "": it is none */
    uint32_t outputs; /* scores of a sample whose label is a number; 0: one, or that of classes */
    char format[DRPS_PLAN_NAME_BYTES];
    char order[DRPS_PLAN_NAME_BYTES]; /* shuffled, given, grid, micro */
    char blocks_by[DRPS_PLAN_NAME_BYTES];
    uint32_t factors, dim; /* dim is 1 + factors, with fields 1 + factors * field_count; the
                              outputs, or the number of classes */
    uint32_t field_count;  /* of entries: each field is below it; 0: entries have no fields. Rows
                              have factors for fields but of implicit feedback, where these are
                              roles: drps_plan_row_fields() */
    int numbers; /* 1: samples have numbers by place, as many as fields, and entries have no
                    fields; of nets that read no feature */
    struct drps_plan_negatives negatives;
    struct drps_plan_sequences sequences;
    int normalized; /* samples are divided by their length; of field-aware models */
    int classification;
    const struct drps_classes *classes; /* of labels; of an open plan its own, else borrowed; NULL:
                                           labels are numbers */
    float label_negative,
        label_positive; /* the input's two labels; stored as -1 and +1 (classification) */
    double label_mean;  /* of training labels as stored, each times its weight */
    double ones; /* which share of training's entries has the value 1, of hashed features 1 or
                    -1; 0, too, where an older drps-index has not counted them */
    struct drps_plan_weights weights;
    struct drps_speeds speeds; /* of the machine that made the plan, if it was measured */
    /* Mean losses of the score that is best for all training samples (drps_constant.h); NaN: there
     * is none, or an older drps-index has not counted it. */
    double constant_loss, test_constant_loss;
    uint64_t seed, hash_seed;
    uint64_t grid_users, grid_items; /* order grid: groups of each; else 0 */
    uint64_t lanes; /* 2 or more: training batches are marked with strata and lanes; 0: not */
    uint64_t samples, test_samples; /* training, evaluation */
    uint64_t rows, nnz, test_nnz;   /* rows include the intercept */
    uint64_t test_unseen; /* test entries whose feature training never touches (left out) */
    uint64_t batch_size, batches, eval_batches;
    uint64_t max_batch_samples, max_batch_rows, max_batch_nnz, max_body_bytes;
    /* The row size that blocks and windows were cut for: dim floats with one optimizer state. */
    uint64_t row_bytes;
    uint64_t block_bytes; /* target of the block builder */
    uint64_t blocks, max_block_rows, max_step_blocks;
    uint64_t seek_ns, transfer_bps; /* what the builder took a request to cost, and a byte */
    uint64_t row_uses;              /* sum over an epoch's steps of their rows; these five are 0 in
                                       a plan of before they were known */
    uint64_t block_uses, block_use_rows; /* of their blocks; of all rows of these blocks */
    uint64_t runs, run_rows; /* requests, and rows read, when nothing is kept in memory and a step's
                                blocks are read in runs, through gaps of a seek's worth */
    uint64_t max_step_block_rows; /* of all blocks of a step together; 0: an older drps-index */
    uint64_t windows, window_budget_bytes;
    uint64_t windows_later; /* 1: all rows fit the memory of drps-index, and the plan has no windows:
                               a run that needs some cuts them */
    uint64_t working_set_rows; /* most rows of two neighbouring windows */
    uint64_t max_window_rows;  /* this and the next three: 0 in a plan of before they were known */
    /* Sums over an epoch's windows; moved: they leave, some to be held in memory by a run. */
    uint64_t window_rows, window_rows_kept, window_rows_moved;
    uint64_t memory_bytes;         /* the memory limit of drps-index */
    struct drps_hashing hashing;   /* of features, under hash_seed: keys of names.rec are bins */
    int string_names;              /* features are strings: names.rec holds them */
    char base[DRPS_PLAN_ID_BYTES]; /* id of the plan that this one goes on from, whose rows have
                                      their numbers here; "": none */
    uint64_t base_rows; /* that it has; some of them may be in no batch. Others follow behind */
    size_t tables_n;
    struct drps_table tables[DRPS_PLAN_TABLES];
    size_t fields_n; /* string names: field prefixes; there, too, where such names are hashed */
    char label_column[DRPS_PLAN_COLUMN_BYTES]; /* csv; "" in other plans, and where not known */
    char separator;                            /* of csv, as given; 0 if it was not */
    int headless;                              /* csv has no header: columns are numbers */
    struct drps_plan_ranks ranks;
    const char *command; /* how drps-index was asked for it; of an open plan its own, else borrowed;
                            NULL: not known. The id does not depend on it */
    uint64_t source;     /* drps_index_options.source; the id does not depend on it either */
};

struct drps_plan {
    const struct drps_io *io; /* borrowed */
    char *dir;                /* own */
    struct drps_plan_info info;
    char **fields;                /* own: [info.fields_n] */
    struct drps_classes *classes; /* own: info.classes */
    void *json;                   /* own: the whole manifest, a json_t object */
};

/* Returns how many of the plan's samples the worker of a rank has in an epoch, about: each has as
 * many as the others. */
static inline uint64_t drps_plan_own_samples(const struct drps_plan_info *info, uint64_t samples)
{
    if (info->ranks.count > 1 && !drps_rank_trains(&info->ranks, info->ranks.rank)) return 0;
    return info->ranks.workers > 1 ? samples / info->ranks.workers : samples;
}

/* Returns what so many of an epoch's training samples weigh: all of them exactly, fewer in the
 * mean.
 */
double drps_plan_weight_of(const struct drps_plan_info *info, uint64_t samples);

/* Returns `hash`, changed by the text that the loss is: plans that differ in it alone are not the
 * same. */
uint64_t drps_plan_hash_text(const struct drps_plan_info *info, uint64_t hash);

/* Open and check plan.json; drps_plan_close() it. DRPS_E_NOT_FOUND: the folder holds no plan;
 * DRPS_E_VERSION; DRPS_E_CORRUPT names what does not fit. */
DRPS_MUST_CHECK
int drps_plan_open(const struct drps_io *io, const char *dir, struct drps_plan **plan_out,
                   struct drps_err *err);
void drps_plan_close(struct drps_plan *plan); /* NULL-safe */

/* Open the part of one rank of the plan in `dir`. DRPS_E_NOT_FOUND: it is not there;
 * DRPS_E_CORRUPT: what is there is another rank's. */
DRPS_MUST_CHECK
int drps_plan_open_rank(const struct drps_io *io, const char *dir, uint32_t rank,
                        struct drps_plan **plan_out, struct drps_err *err);

/* The folder of a rank's part; DRPS_E_CONFIG: the path is too long. */
DRPS_MUST_CHECK
int drps_plan_rank_dir(const char *dir, uint32_t rank, char out[DRPS_PLAN_PATH_BYTES],
                       struct drps_err *err);

/* A plan for one worker, one for several, and the part of one of these: in rounds, or with rows
 * that circulate. */
enum drps_plan_shape {
    DRPS_PLAN_ONE = 1,
    DRPS_PLAN_ALL = 2,
    DRPS_PLAN_PART = 4,
    DRPS_PLAN_CIRCULATING = 8
};
enum drps_plan_shape drps_plan_shape(const struct drps_plan_info *info);

/* 1: it is for several workers, between which ranges of rows circulate. */
int drps_plan_circulates(const struct drps_plan_info *info);

/* Floats that an epoch's training rounds move between ranks, of a whole plan; with `hands_on`, if
 * rows are handed on with so many floats of state for each parameter. */
uint64_t drps_plan_moved_values(const struct drps_plan_info *info, int hands_on, uint64_t states);

/* The optimizer that has so many floats of state for each parameter, 0 to 2. */
const char *drps_plan_states_name(uint64_t states);

/* Which of the part's rows are the rank's own, as a range of the store's row numbers; of other
 * plans all rows. */
struct drps_row_range drps_plan_own_rows(const struct drps_plan_info *info);

/* The placed id of row `row` of a part whose rows circulate. */
uint64_t drps_plan_placed_id(const struct drps_plan_ranks *ranks, uint64_t row);

/* The files of a plan beside plan.json, in the order in which plan.json lists them. */
struct drps_plan_file_type {
    const char *name;
    uint32_t kind;
    unsigned shapes; /* that have the file */
    int per_step;    /* it has a record for each step */
};
enum { DRPS_PLAN_FILES = 14 };
extern const struct drps_plan_file_type drps_plan_files[DRPS_PLAN_FILES];

/* 1: such a plan has this file. */
int drps_plan_has_file(const struct drps_plan_info *info, size_t file);

/* Returns 0 where labels are numbers, 1 where they are -1 and +1, else how many named classes there
 * are. */
int drps_plan_label_classes(const struct drps_plan_info *info);

/* 1: rows are those of a matrix: a sample has several scores, and a gradient is a sum of outer
 * products. */
int drps_plan_is_matrix(const struct drps_plan_info *info);

/* Returns the entry of the plan's algorithm, with its loss where that is a text; NULL: it is
 * unknown. */
const struct drps_algorithm *drps_plan_algorithm(const struct drps_plan_info *info);

/* The net of a plan that has one, with its widths. DRPS_E_CONFIG: its text is none. */
DRPS_MUST_CHECK
int drps_plan_layers(const struct drps_plan_info *info, struct drps_layers *out,
                     struct drps_err *err);

/* 1: the data calls features by names, of fields; 0: by numbers. */
int drps_plan_reads_names(const struct drps_plan_info *info);

/* Returns the fields that entries have, and the numbers of a sample by place; 0: they have none. */
uint32_t drps_plan_entry_fields(const struct drps_plan_info *info);
uint32_t drps_plan_numbers_each(const struct drps_plan_info *info);

/* Returns the fields that a row has factors for; 0: it has the same for all. */
uint32_t drps_plan_row_fields(const struct drps_plan_info *info);

/* Returns how many rows every batch has, before those of its entries: rows 0, 1, ..., which no
 * entry has. One is the intercept's; a net has more, and its parameters lie in them one after
 * another. 0: there are none. */
uint32_t drps_plan_common_rows(const struct drps_plan_info *info);
uint32_t drps_tables_common_rows(const struct drps_table *tables, size_t n);

/* Returns how many of these `common` rows, or any first rows of the plan, a rank's part has: its
 * first ones. */
uint32_t drps_plan_own_common_rows(const struct drps_plan_info *part, uint32_t common);

/* Users and items have numbers among each other: the tables behind the intercept become one,
 * "rows", with all rows that info counts. One table stays what it is. */
void drps_plan_mix_tables(struct drps_plan_info *info);

/* Tables must follow on each other, from row 0 on; *rows_out is how many they have. `path` is that
 * of the manifest, for the message. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_tables_check(const struct drps_table *tables, size_t n, const char *path,
                      uint64_t *rows_out, struct drps_err *err);

/* A loss that is a text, and its number of outputs, as plan.json, model.json and checkpoints have
 * them: two members that may be missing ("" and 0 then). `manifest` is a json_t object, `path` its
 * file, for the message. DRPS_E_CORRUPT. What it says is not checked. */
DRPS_MUST_CHECK
int drps_plan_get_expression(const void *manifest, const char *path, char text_out[DRPS_EXPR_TEXT],
                             uint32_t *outputs_out, struct drps_err *err);

/* Write both, where there is such a loss; `manifest` is a json_t **, as drps_manifest_put() takes
 * it.
 */
void drps_plan_put_expression(void *manifest, const char *text, uint32_t outputs);

/* A net as a text, as plan.json, model.json and checkpoints have it: a member that may be missing
 * (""). `manifest` is as above. DRPS_E_CORRUPT. What it says is not checked. */
DRPS_MUST_CHECK
int drps_plan_get_net(const void *manifest, const char *path, char text_out[DRPS_LAYERS_TEXT],
                      struct drps_err *err);
void drps_plan_put_net(void *manifest, const char *text);

/* The lengths of sequences, as plan.json and model.json have them: a member that may be missing.
 * `manifest` is as above. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_plan_get_sequences(const void *manifest, const char *path, struct drps_plan_sequences *out,
                            struct drps_err *err);
void drps_plan_put_sequences(void *manifest, const struct drps_plan_sequences *s);

/* Check that sequences are there where the net (n is 0: there is none) reads them, that entries of
 * so many fields mark them, and that the format is tokens then. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_plan_check_sequences(const struct drps_plan_sequences *s, const struct drps_layers *net,
                              uint32_t fields, const char *format, const char *path,
                              struct drps_err *err);

/* The columns of csv data that are no features, as plan.json and model.json have them: three
 * members that may be missing. `manifest` is a json_t object, `path` its file, for the message.
 * DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_plan_get_columns(const void *manifest, const char *path,
                          char label_out[DRPS_PLAN_COLUMN_BYTES], char *separator_out,
                          int *headless_out, struct drps_err *err);

/* DRPS_E_CORRUPT: a decoded batch does not fit the numbers of its plan. */
struct drps_batch;
DRPS_MUST_CHECK
int drps_plan_check_batch(const struct drps_plan_info *info, const struct drps_batch *b,
                          struct drps_err *err);
/* DRPS_E_CORRUPT: a row list [n], increasing, has a row that the plan does not have, or does
 * not begin with rows 0 .. common - 1. */
DRPS_MUST_CHECK
int drps_plan_check_list(const struct drps_plan_info *info, const uint32_t *ids, size_t n,
                         uint32_t common, struct drps_err *err);

/* Open one of the plan's record files, whose kind must be this; drps_recfile_close() it. */
DRPS_MUST_CHECK
int drps_plan_file(const struct drps_plan *plan, const char *name, uint32_t kind,
                   struct drps_recfile **f_out, struct drps_err *err);

/* Gets the bytes of a file, one piece after another; ends the reading by a negative code. */
typedef int (*drps_plan_bytes)(void *ctx, const void *data, size_t n, struct drps_err *err);

/*
 * Read one of the plan's files whole, in pieces of a MiB, which `visit` gets (NULL: nobody).
 * DRPS_E_CORRUPT, once all of it was visited, unless its size and checksum are those that plan.json
 * has of it.
 */
DRPS_MUST_CHECK
int drps_plan_read_file(const struct drps_plan *plan, const char *name, drps_plan_bytes visit,
                        void *ctx, struct drps_err *err);

/* What plan.json says of one of the plan's files. DRPS_E_CORRUPT: it does not list it. */
DRPS_MUST_CHECK
int drps_plan_listed(const struct drps_plan *plan, const char *name, uint64_t *bytes_out,
                     uint64_t *sum_out, struct drps_err *err);

/* Read the boundaries of blocks: block b has the rows first_out[b] to first_out[b + 1] - 1;
 * first_out [blocks + 1], free() it. */
DRPS_MUST_CHECK
int drps_plan_blocks(const struct drps_plan *plan, uint32_t **first_out, struct drps_err *err);

/* Save blocks.rec from boundaries first[0 .. blocks], first[0] = 0. */
DRPS_MUST_CHECK
int drps_blocks_write(const struct drps_io *io, const char *dir, const uint32_t *first,
                      size_t blocks, struct drps_err *err);

/* Make a hash of the named files of dir: their sizes and bytes. */
DRPS_MUST_CHECK
int drps_plan_hash(const struct drps_io *io, const char *dir, const char *const *names, size_t n,
                   uint64_t *hash_out, struct drps_err *err);

/* Write plan.json into dir: info, the files found there with their checksums, and `forecast`
 * (json_t, borrowed, may be NULL). The id is a hash of the files; that of a whole plan for several
 * workers is info->ranks.whole. */
DRPS_MUST_CHECK
int drps_plan_save(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                   char *const *fields, void *forecast, struct drps_err *err);

#endif
