/*
 * Co-placement of samples that do not fit memory: the algorithm of samples_auto.c in passes over a
 * stream of them. What stays in memory is what is known of features, and each sample's owner.
 *
 *   pass 1      how many samples have a feature
 *   pass 2      a histogram of samples' min-hashes
 *   pass 3      start: equal shares of the histogram, in the order of its bins
 *   pass 4 - 6  every sample leaves its machine and joins the one with the best score; five more
 *               such passes would bring -1 to 4 % fewer rows from elsewhere, measured on four sets
 *
 * Where samples stay in their round, each round has limits of its own in passes 4 to 6: its samples
 * leave their machines one by one, and join others as if none of it were placed.
 *
 * Held-out samples follow: each joins the best machine once, and changes no score.
 */
#include "partition/drps_partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "partition/affinity.h"
#include "partition/samples.h"

enum { BIN_BITS = 16, BINS = 1 << BIN_BITS, MOVES = 3 };

/* Samples, or entries. */
struct load {
    uint64_t all, heaviest; /* of one sample */
    uint64_t cap;           /* of a machine */
    uint64_t *on;           /* own [W] */
};

struct streaming {
    const struct drps_stream_options *o;
    struct affinity affinity; /* own */
    struct load samples, entries;
    uint64_t *bin; /* own [BINS]: samples in bins before this one, counting on */
    uint64_t training_samples;
    uint64_t *round_entries;                 /* own [rounds] */
    uint64_t round;                          /* while samples move: o->round */
    uint64_t coming_samples, coming_entries; /* of the round: after the sample at hand */
    uint16_t *owner;                         /* borrowed: of the stream at hand */
    uint64_t at;                             /* the sample at hand */
};

/* A machine may have the average and a little more, or one sample more than the average. */
static void load_limit(struct load *l, uint32_t machines)
{
    const uint64_t even = l->all / machines;
    const uint64_t limit = (uint64_t)((double)l->all / machines * (1 + SAMPLES_SLACK));
    l->cap = limit > even + l->heaviest ? limit : even + l->heaviest;
    memset(l->on, 0, machines * sizeof(*l->on));
}

static void load_measure(struct streaming *st, size_t entries)
{
    st->samples.all++;
    st->samples.heaviest = 1;
    st->entries.all += entries;
    if (entries > st->entries.heaviest) st->entries.heaviest = entries;
}

/* Every machine is without samples of this round, and has room for its part of them, which may have
 * somewhat more than their part of the entries. */
static void begin_round(struct streaming *st)
{
    const uint32_t machines = st->o->machines;
    const uint64_t left = st->training_samples - st->at;
    st->coming_samples = left < st->round ? left : st->round;
    st->coming_entries = st->round_entries[st->at / st->round];
    st->samples.cap = (st->coming_samples + machines - 1) / machines;
    st->entries.cap = (uint64_t)((double)st->coming_entries / machines * (1 + SAMPLES_ROUND_SLACK));
    memset(st->samples.on, 0, machines * sizeof(*st->samples.on));
    memset(st->entries.on, 0, machines * sizeof(*st->entries.on));
}

/* The entries that a machine has with a sample of so many more; of a round, those that it will have
 * when its other samples have come, if they are of average length. */
static uint64_t entries_with(const struct streaming *st, uint32_t machine, size_t entries)
{
    const uint64_t now = st->entries.on[machine] + entries;
    if (!st->round || !st->coming_samples) return now;
    const uint64_t others = st->samples.cap - st->samples.on[machine] - 1;
    return now +
           (uint64_t)((double)others * (double)st->coming_entries / (double)st->coming_samples);
}

static int has_room(const struct streaming *st, uint32_t machine, size_t entries)
{
    return st->samples.on[machine] < st->samples.cap &&
           entries_with(st, machine, entries) <= st->entries.cap;
}

static void put(struct streaming *st, size_t entries, uint32_t machine)
{
    st->owner[st->at++] = (uint16_t)machine;
    st->samples.on[machine]++;
    st->entries.on[machine] += entries;
}

/* ---- Passes ---- */

static int count_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct streaming *st = ctx;
    (void)err;                                                                /* cannot fail */
    if (st->o->round) st->round_entries[st->samples.all / st->o->round] += n; /* of sample `all` */
    load_measure(st, n);
    drps_affinity_prefetch(&st->affinity, features, n);
    drps_affinity_count(&st->affinity, features, n);
    return 0;
}

/* Mixed, because the more features a sample has, the smaller is its min-hash. Samples that have
 * none that counts go anywhere. */
static uint64_t *bin_of(const struct streaming *st, const uint32_t *features, size_t n)
{
    drps_affinity_prefetch(&st->affinity, features, n);
    uint64_t hash = drps_affinity_minhash(&st->affinity, features, n, st->o->seed);
    if (hash == UINT64_MAX) hash = st->at;
    return &st->bin[drps_mix64(hash) >> (64 - BIN_BITS)];
}

static int bin_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct streaming *st = ctx;
    (void)err; /* cannot fail */
    ++*bin_of(st, features, n);
    st->at++;
    return 0;
}

/* Turn the samples in each bin into those in the bins before it. */
static void sum_bins(struct streaming *st)
{
    uint64_t before = 0;
    for (size_t b = 0; b < BINS; b++) {
        const uint64_t here = st->bin[b];
        st->bin[b] = before;
        before += here;
    }
}

static int start_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct streaming *st = ctx;
    const uint64_t position = (*bin_of(st, features, n))++;
    const uint32_t machine =
        (uint32_t)((__uint128_t)position * st->o->machines / st->training_samples);
    (void)err; /* cannot fail */
    drps_affinity_add(&st->affinity, features, n, machine);
    put(st, n, machine);
    return 0;
}

/* The machine with the best score of those that have room; `home` where none has, and where no
 * other one is better. */
static uint32_t best_machine(struct streaming *st, const uint32_t *features, size_t n,
                             uint32_t home)
{
    const uint32_t machines = st->o->machines;
    double *score = st->affinity.score;
    int found = has_room(st, home, n);
    uint32_t best = home;
    for (uint32_t m = 0; m < machines; m++) {
        const double samples = (double)st->samples.on[m] / (double)st->samples.cap;
        const double entries = (double)st->entries.on[m] / (double)(st->entries.cap + 1);
        score[m] = -SAMPLES_FULLNESS * (samples > entries ? samples : entries);
    }
    drps_affinity_add_scores(&st->affinity, features, n,
                             (double)st->o->batch_size / (double)st->training_samples);
    for (uint32_t m = 0; m < machines; m++) {
        if ((found && !(score[m] > score[best])) || !has_room(st, m, n)) continue;
        found = 1;
        best = m;
    }
    return best;
}

/* Returns the machine that will have the fewest entries, among those with room for one more sample
 * of the round; there is one. */
static uint32_t lightest_machine(const struct streaming *st, size_t entries)
{
    uint32_t lightest = UINT32_MAX;
    for (uint32_t m = 0; m < st->o->machines; m++)
        if (st->samples.on[m] < st->samples.cap &&
            (lightest == UINT32_MAX ||
             entries_with(st, m, entries) < entries_with(st, lightest, entries)))
            lightest = m;
    return lightest;
}

static int move_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct streaming *st = ctx;
    const uint32_t home = st->owner[st->at];
    (void)err; /* cannot fail */
    drps_affinity_prefetch(&st->affinity, features, n);
    st->samples.on[home]--;
    st->entries.on[home] -= n;
    drps_affinity_drop(&st->affinity, features, n, home);
    const uint32_t machine = best_machine(st, features, n, home);
    drps_affinity_add(&st->affinity, features, n, machine);
    put(st, n, machine);
    return 0;
}

static int move_in_round(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct streaming *st = ctx;
    const uint32_t home = st->owner[st->at];
    (void)err; /* cannot fail */
    drps_affinity_prefetch(&st->affinity, features, n);
    if (st->at % st->round == 0) begin_round(st);
    st->coming_samples--;
    st->coming_entries -= n;
    drps_affinity_drop(&st->affinity, features, n, home);
    const uint32_t otherwise = has_room(st, home, n) ? home : lightest_machine(st, n);
    const uint32_t machine = best_machine(st, features, n, otherwise);
    drps_affinity_add(&st->affinity, features, n, machine);
    put(st, n, machine);
    return 0;
}

static int measure_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    (void)features, (void)err; /* cannot fail */
    load_measure(ctx, n);
    return 0;
}

static int follow_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct streaming *st = ctx;
    uint32_t least = 0; /* where the limit of entries leaves no room */
    (void)err;          /* cannot fail */
    for (uint32_t m = 1; m < st->o->machines; m++)
        if (st->samples.on[m] < st->samples.on[least]) least = m;
    put(st, n, best_machine(st, features, n, least));
    return 0;
}

/* ---- The whole ---- */

/* The least number of samples that a feature must have, so that all that counts fits. */
static int fit_memory(struct streaming *st, uint64_t fixed_bytes, uint32_t *least_out,
                      struct drps_err *err)
{
    const uint64_t memory = st->o->memory_bytes;
    uint32_t least = AFFINITY_LEAST_SAMPLES;
    if (fixed_bytes > memory)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "placing samples together takes %llu MiB at least, and has %llu MiB",
                            (unsigned long long)(fixed_bytes >> 20) + 1,
                            (unsigned long long)(memory >> 20));
    while (drps_affinity_held_bytes(&st->affinity, st->training_samples, least) >
           memory - fixed_bytes)
        least *= 2;
    *least_out = least;
    return 0;
}

static int pass(struct streaming *st, const struct drps_sample_stream *stream,
                drps_sample_visit visit, struct drps_err *err)
{
    st->at = 0;
    return stream->walk(stream->ctx, visit, st, err);
}

static int place_training(struct streaming *st, const struct drps_sample_stream *stream,
                          uint64_t fixed_bytes, uint32_t *least_out, struct drps_err *err)
{
    int rc = pass(st, stream, count_sample, err);
    if (rc == 0) rc = fit_memory(st, fixed_bytes, least_out, err);
    if (rc == 0 && drps_affinity_ready(&st->affinity, st->training_samples, *least_out) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory for what samples have features");
    load_limit(&st->samples, st->o->machines);
    load_limit(&st->entries, st->o->machines);
    if (rc == 0) rc = pass(st, stream, bin_sample, err);
    sum_bins(st);
    if (rc == 0) rc = pass(st, stream, start_sample, err);
    st->round = st->o->round;
    for (int i = 0; i < MOVES && rc == 0; i++)
        rc = pass(st, stream, st->round ? move_in_round : move_sample, err);
    st->round = 0;
    return rc;
}

static int place_held_out(struct streaming *st, const struct drps_sample_stream *stream,
                          struct drps_err *err)
{
    st->samples.all = st->samples.heaviest = st->entries.all = st->entries.heaviest = 0;
    int rc = pass(st, stream, measure_sample, err);
    load_limit(&st->samples, st->o->machines);
    load_limit(&st->entries, st->o->machines);
    return rc < 0 ? rc : pass(st, stream, follow_sample, err);
}

int drps_streams_place(const struct drps_sample_stream *training,
                       const struct drps_sample_stream *held_out,
                       const struct drps_stream_options *o, uint16_t *training_owner,
                       uint16_t *held_out_owner, uint32_t *least_out, struct drps_err *err)
{
    struct streaming st = {.o = o, .training_samples = training->n, .owner = training_owner};
    const uint64_t rounds = o->round ? training->n / o->round + 1 : 0;
    const uint64_t fixed = o->features_n * sizeof(*st.affinity.feature) + BINS * sizeof(*st.bin) +
                           rounds * sizeof(*st.round_entries) +
                           (training->n + held_out->n) * sizeof(*training_owner);
    if (o->machines < 1 || o->machines > DRPS_MACHINES_MAX || o->batch_size < 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u machines (1 to %d are possible), batches of %llu samples",
                            o->machines, DRPS_MACHINES_MAX, (unsigned long long)o->batch_size);
    st.samples.on = calloc(o->machines, sizeof(*st.samples.on));
    st.entries.on = calloc(o->machines, sizeof(*st.entries.on));
    st.bin = calloc(BINS, sizeof(*st.bin));
    st.round_entries = calloc((size_t)rounds + 1, sizeof(*st.round_entries));
    int rc = drps_affinity_begin(&st.affinity, o->features_n, o->machines);
    if (rc < 0 || !st.samples.on || !st.entries.on || !st.bin || !st.round_entries)
        rc = drps_err_set(err, -ENOMEM, "no memory to place samples of %u features", o->features_n);
    if (rc == 0) rc = place_training(&st, training, fixed, least_out, err);
    st.owner = held_out_owner;
    if (rc == 0) rc = place_held_out(&st, held_out, err);
    drps_affinity_free(&st.affinity);
    free(st.samples.on);
    free(st.entries.on);
    free(st.bin);
    free(st.round_entries);
    return rc;
}
