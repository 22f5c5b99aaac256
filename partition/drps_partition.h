/*
 * Placement: which machine holds which rows, and which machine trains on which samples.
 *
 * Inputs are plain arrays, in memory. The order of things:
 *
 *   samples  --drps_samples_place()-->   owner of each sample
 *            --drps_samples_batches()--> each machine's batches, one by one
 *   batches  --drps_units_new/add/finish()--> units: who touches each how often, its bytes and I/O
 *   units    --drps_rows_place()-->      owner of each unit, every machine's load
 *            --drps_rows_renumber()-->   new row ids: a contiguous range a machine
 *
 * partition/drps_homes.h places rows one by one instead, from a stream of their uses;
 * partition/dppa/drps_dppa.h has the compression and partition paper's way with samples.
 *
 * A *unit* is a run of rows that stay together: a block, or one hot row. Letters: U units, W
 * machines, R rows (features), N samples, T touches.
 *
 * Cost (DRPS, section 5, Eq. 4-6, with the disk added as in its Algorithm 2): machine i owns the
 * units V_i; its worker's batches touch rows of unit p a_pi times, all workers' batches a_p times.
 *
 *   load_i = sum over V_i of io_p                          disk
 *          + net * sum over p not in V_i of a_pi           rows that its worker pulls elsewhere
 *          + net * sum over p in V_i of (a_p - a_pi)       rows that it serves to others
 *
 * Remote rows, an epoch: the sum over all units of a_p - a_p,owner. No placement of rows can have
 * less than the *affinity bound*, the sum of a_p - max_i a_pi; it depends on the samples'
 * placement.
 *
 * Everything is deterministic: same input, options and seed, same result.
 */
#ifndef DRPS_PARTITION_H
#define DRPS_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

enum { DRPS_MACHINES_MAX = 65536 };

/* ---- samples ----------------------------------------------------------------------------------
 */

/* Borrowed arrays; sample s has the distinct features features[starts[s]] .. [starts[s + 1] - 1].
 */
struct drps_sample_set {
    size_t n;                 /* N */
    uint32_t features_n;      /* R: ids are below that */
    const size_t *starts;     /* [N + 1], starts[0] = 0 */
    const uint32_t *features; /* [starts[N]] */
};

struct drps_samples_options {
    /*
     * hash   at random
     * range  as they come
     * auto   start from ranges of min-hashes, then four passes that move each sample to the machine
     *        that already has its features; `hash` if that leaves no fewer remote rows
     */
    const char *algo;
    uint32_t machines;   /* W, 1 .. DRPS_MACHINES_MAX */
    uint32_t batch_size; /* samples, >= 1: `auto` compares the remote rows of such batches */
    int by_entries;      /* 0: balance the number of samples; 1: of their features */
    uint64_t seed;
};

/* Returns 0, or -EINVAL for a set that contradicts the above, DRPS_E_CONFIG for too many samples.
 */
DRPS_MUST_CHECK
int drps_sample_set_check(const struct drps_sample_set *set, struct drps_err *err);

/*
 * owner_out [N], caller-owned: the machine of each sample. No machine gets more than 1.02 times the
 * average weight (1 a sample, or its features), or the average and the heaviest sample, whichever
 * is more. Returns 0 or
 *   DRPS_E_CONFIG  unknown algorithm, or numbers out of range; the text says which
 *   -ENOMEM        `auto` needs some 24 bytes an entry (starts[N])
 */
DRPS_MUST_CHECK
int drps_samples_place(const struct drps_sample_set *set, const struct drps_samples_options *o,
                       uint32_t *owner_out, struct drps_err *err);

/* One batch of `machine`: its n distinct rows, unsorted, borrowed until return. 0 or an error,
 * which ends the walk. */
typedef int (*drps_batch_visit)(void *ctx, uint32_t machine, const uint32_t *rows, size_t n,
                                struct drps_err *err);

/*
 * Walk through the batches of a placement: machine after machine, its samples shuffled by seed and
 * cut into batches of batch_size. Returns 0, -ENOMEM, or what visit() returned.
 */
DRPS_MUST_CHECK
int drps_samples_batches(const struct drps_sample_set *set, const uint32_t *owner,
                         uint32_t machines, uint32_t batch_size, uint64_t seed,
                         drps_batch_visit visit, void *ctx, struct drps_err *err);

/*
 * Hash features into bins (the hashing trick; the paper places samples and rows after it): every id
 * becomes one of `bins`, ids of a sample that meet in a bin become one.
 * starts_out [N + 1] and features_out [set->starts[N]] are caller-owned. Returns 0, or -EINVAL when
 * bins is 0.
 */
DRPS_MUST_CHECK
int drps_samples_hash_features(const struct drps_sample_set *set, uint32_t bins, uint64_t seed,
                               size_t *starts_out, uint32_t *features_out, struct drps_err *err);

/* ---- samples, streamed ------------------------------------------------------------------------
 */

typedef int (*drps_sample_visit)(void *ctx, const uint32_t *features, size_t n,
                                 struct drps_err *err);

/* Samples that are somewhere else: walk() visits all n of them, in the same order every time, their
 * features distinct and borrowed, and returns 0, its own error, or what visit() returned. */
struct drps_sample_stream {
    uint64_t n;
    int (*walk)(void *ctx, drps_sample_visit visit, void *visit_ctx, struct drps_err *err);
    void *ctx;
};

struct drps_stream_options {
    uint32_t features_n; /* ids from that on are unknown, and ignored */
    uint32_t machines;   /* W, 1 .. DRPS_MACHINES_MAX */
    uint64_t batch_size; /* samples, >= 1 */
    uint64_t round; /* training samples: so many, one after another, are dealt among all machines
                       evenly, to one sample, and their entries to 1.1 times the average where
                       samples are short beside that; 0: all */
    uint64_t seed;
    uint64_t memory_bytes;
};

/*
 * `auto` for samples that do not fit memory, in six passes over the training samples and two over
 * those held out, which follow. No machine gets more than 1.02 times the average number of training
 * samples, nor of those held out, or the average and one; their entries differ as little, except
 * where the limit on samples forbids it.
 *
 * owners           [training->n], [held_out->n] caller-owned
 * least_out        features of fewer samples did not count: 2, or more where memory is short
 * Memory: 2 bytes a sample, 16 a feature, 8 for each machine that has samples of a feature, and 8 a
 * round.
 * Returns 0 or
 *   DRPS_E_CONFIG         numbers out of range
 *   DRPS_E_MEMORY_BUDGET  not enough for the first two
 *   -ENOMEM, or what a walk returned
 */
DRPS_MUST_CHECK
int drps_streams_place(const struct drps_sample_stream *training,
                       const struct drps_sample_stream *held_out,
                       const struct drps_stream_options *o, uint16_t *training_owner,
                       uint16_t *held_out_owner, uint32_t *least_out, struct drps_err *err);

/* ---- units ------------------------------------------------------------------------------------
 */

/* Batches of `machine` touch rows of the unit `count` times: a_pi. */
struct drps_touch {
    uint32_t machine;
    uint32_t count; /* >= 1 */
};

/* What is to be placed. Arrays made by drps_units_finish() are own; a caller's own are borrowed. */
struct drps_units {
    size_t n;          /* U */
    uint32_t machines; /* W */
    double row_net_s;  /* seconds to move one row to another machine and back, >= 0 */
    uint32_t *first;   /* [U + 1]: unit u has rows first[u] .. first[u + 1] - 1 */
    uint64_t *bytes;   /* [U] */
    double *io_s;      /* [U] seconds an epoch that its machine's disk needs for it, >= 0 */
    uint8_t *hot;      /* [U] 1: one often used row */
    size_t *starts;    /* [U + 1], starts[0] = 0 */
    struct drps_touch *touches; /* [starts[U]]; of a unit by rising machine */
};

struct drps_unit_costs {
    uint64_t row_bytes; /* >= 1 */
    double seek_s;      /* one I/O, ts in Eq. 1 */
    double byte_s;      /* to read and write one byte, ta */
    double row_net_s;   /* as in struct drps_units */
    uint32_t hot_block; /* hot rows that lie in a block together, of whose seek each costs its
                           share; 0: 1 */
};

struct drps_units_maker; /* opaque: units being counted; own, drps_units_maker_free() it */

/*
 * Begin to count. Rows 0 .. R - 1 are cut into blocks first[0 .. blocks] (borrowed until return).
 * The rows used most, at most `hot_share` of all, become units of one row, so that they need not be
 * on one machine: what a block holds of them is taken out of it, and what is left of the block
 * between them is a unit each.
 *
 * uses  [R] batches that touch each row (any measure of use); borrowed until return
 * Returns 0, -EINVAL (first[] does not rise from 0, hot_share not in 0 .. 1, costs, machines) or
 * -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_units_new(const uint32_t *first, size_t blocks, const uint32_t *uses, double hot_share,
                   const struct drps_unit_costs *costs, uint32_t machines,
                   struct drps_units_maker **maker_out, struct drps_err *err);

/* Count one batch; its rows are distinct, in any order. Machines come in rising order: all batches
 * of one, then of the next (-EINVAL otherwise, and for a row out of range). A drps_batch_visit().
 */
DRPS_MUST_CHECK
int drps_units_add(void *maker, uint32_t machine, const uint32_t *rows, size_t n,
                   struct drps_err *err);

/* The counted units: *units_out is own, drps_units_destroy() it. I/O by Eq. 1: batches that touch
 * the unit * (seek + bytes * byte time); of a hot row's block the seek is shared, as all batches
 * use nearly all of it. Returns 0 or -ENOMEM. */
DRPS_MUST_CHECK
int drps_units_finish(struct drps_units_maker *maker, struct drps_units *units_out,
                      struct drps_err *err);

void drps_units_maker_free(struct drps_units_maker *maker);
void drps_units_destroy(struct drps_units *units);

/* Touches in all (sum of a_p), and the least remote rows that any placement of these units has. */
uint64_t drps_units_touches(const struct drps_units *units);
uint64_t drps_units_affinity_bound(const struct drps_units *units);

/* ---- rows -------------------------------------------------------------------------------------
 */

struct drps_rows_options {
    /*
     * hash    at random
     * range   contiguous runs of equal bytes
     * greedy  DRPS, Algorithms 2 and 3
     * dppa    Algorithm 2 of the compression and partition paper: the network only
     */
    const char *algo;
    uint64_t seed; /* hash */
    int by_sets;   /* dppa: traffic as the paper counts it: a unit, which is one row, once for the
                      machine that pulls it and once for the one that serves it, however often that
                      is. 0: each time (a_pi) */
};

struct drps_machine_load {
    double disk_s, net_s; /* seconds an epoch; the load is their sum */
    uint64_t bytes;
    uint64_t pulled; /* rows an epoch that its worker gets from other machines */
    uint64_t served; /* rows an epoch that it sends to other machines' workers */
};

/* A placement; own arrays, drps_placement_destroy() it. */
struct drps_placement {
    size_t units;
    uint32_t machines;
    uint32_t *owner;                /* [U] */
    struct drps_machine_load *load; /* [W] */
    double max_s, average_s;        /* of the loads */
    uint64_t max_bytes, remote;     /* remote: sum of pulled, which is the sum of served */
};

/*
 * Place every unit on one machine. Returns 0 or
 *   DRPS_E_CONFIG  unknown algorithm
 *   -EINVAL        units that contradict the comments above; the text names the unit
 *   -ENOMEM
 */
DRPS_MUST_CHECK
int drps_rows_place(const struct drps_units *units, const struct drps_rows_options *o,
                    struct drps_placement *placement_out, struct drps_err *err);
void drps_placement_destroy(struct drps_placement *placement);

/* Largest load over the average; 1 when all are 0. */
double drps_placement_imbalance(const struct drps_placement *placement);

/*
 * Placement as a renumbering. Machine m gets the rows machine_first_out[m] .. [m + 1] - 1: its hot
 * units first, then the others, each group in the old order, units whole.
 *
 * new_first_out      [U] caller-owned: row r of unit u becomes new_first_out[u] + r - first[u]
 * machine_first_out  [W + 1] caller-owned
 * Returns 0 or -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_rows_renumber(const struct drps_units *units, const uint32_t *owner,
                       uint32_t *new_first_out, uint32_t *machine_first_out, struct drps_err *err);

#endif
