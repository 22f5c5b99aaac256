/*
 * "Accelerating Distributed Machine Learning with Model Compression and Graph Partition", Figure 8:
 * what machines move in each epoch of a dense net's training, with and without pruning.
 *
 *   bench_dynamic DATA LAYERS KEY=VALUE... MODEL...
 *
 * DATA: libsvm, features 1 to the first of LAYERS, labels 0, 1, ... LAYERS: 784:128:64:10, a relu
 * after each but the last. MODEL: the net after each epoch (`bag 128`, relu, `full 64`, ...,
 * `full classes`), as drps-train writes it. As in the paper training itself is not distributed:
 * with the parameters of an epoch's model, it is computed which units each sample's own step would
 * change, and what that moves between machines.
 *
 * METHOD: random; fixed, by Algorithms 1 and 2 before the first epoch; mgp, METIS anew each epoch,
 * and mgp-matched, which names its parts so that less moves; from the fixed placement on: homes,
 * drps's own placement anew each epoch; printed, Algorithms 3 and 4; network, the same with loads
 * by Eq. (1); counted, Algorithm 4 once an epoch with what machines used in the last one.
 *
 * The keys, below, have defaults. Lines have tabs between their cells:
 *   net EPOCH pruned-% accuracy-% changed-%         of samples looked at; of the units by a sample
 *   moves MACHINES METHOD EPOCH uses sets busiest moved
 *                                    parameters used on another machine, each once a round and
 *                                    machine; each once an epoch and machine; the sum of the
 *                                    rounds' largest loads; moved to another machine
 *   guess MACHINES METHOD EPOCH found-% right-% seconds
 *                                    of what the samples changed, how much was foreseen; of what
 *                                    was foreseen, how much was changed; seconds of the processor
 *                                    for both algorithms
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "bench/data.h"
#include "bench/papers/dense.h"
#include "bench/papers/metis.h"
#include "partition/dppa/drps_dppa.h"
#include "partition/dynamic/drps_dynamic.h"

enum { SEED = 1 };

/* ---- Settings ---- */

struct settings {
    double machines, samples, batch; /* samples of all machines in a round */
    double unit;                     /* parameters of a unit at most */
    double recent, nearest, least;   /* Algorithm 3: the cache's samples, r, c */
    double eps;                      /* a change above that counts */
    double lr;                       /* of one sample's own step */
    double prune;                    /* share of the weights pruned at the end; 0: none */
    double uneven;                   /* the trigger, of the mean load */
    double ahead;                    /* Algorithm 4 of `counted` */
    double rounds;                   /* Algorithm 4 of `network` */
    double printed_f;                /* 1: f of Algorithm 3 as printed */
};

static void read_setting(struct settings *s, const char *text)
{
    const struct {
        const char *name;
        double *value;
    } keys[] = {
        {"machines", &s->machines},
        {"samples", &s->samples},
        {"batch", &s->batch},
        {"unit", &s->unit},
        {"recent", &s->recent},
        {"nearest", &s->nearest},
        {"least", &s->least},
        {"eps", &s->eps},
        {"lr", &s->lr},
        {"prune", &s->prune},
        {"uneven", &s->uneven},
        {"ahead", &s->ahead},
        {"rounds", &s->rounds},
        {"printed-f", &s->printed_f},
    };
    const size_t name = strcspn(text, "=");
    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
        if (strlen(keys[k].name) == name && strncmp(keys[k].name, text, name) == 0) {
            *keys[k].value = strtod(text + name + 1, NULL);
            return;
        }
    fprintf(stderr, "bench_dynamic: '%s' is no setting\n", text);
    exit(2);
}

/* ---- Placements ---- */

/* A method, and where it has put samples and units. */
struct method {
    const char *name;
    uint32_t *samples, *units;  /* own */
    struct drps_recent *recent; /* own; NULL: Algorithm 3 is not asked */
    uint32_t *counts; /* own [units][machines] rounds of an epoch; NULL: they do not count */
    struct drps_reallocate_options how;
    struct drps_correlation_options correlation;
    int once;
};

/* One row a unit: Algorithms 1 and 2 of the paper. */
static void place_dppa(const struct drps_sample_set *set, uint32_t machines, uint32_t batch,
                       uint32_t *samples, uint32_t *units_out)
{
    const struct drps_dppa_options o = {.machines = machines, .alpha = 1, .seed = SEED};
    const struct drps_rows_options rows = {.algo = "dppa"};
    const struct drps_unit_costs costs = {.row_bytes = 1, .row_net_s = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_dppa_report report;
    struct drps_units_maker *maker;
    struct drps_units units;
    struct drps_placement placement;
    uint32_t *first = must(drps_array_new((size_t)set->features_n + 1, sizeof(*first)));
    uint32_t *uses = must(calloc((size_t)set->features_n + 1, sizeof(*uses)));
    for (uint32_t r = 0; r <= set->features_n; r++)
        first[r] = r;
    ok(drps_dppa_samples(set, &o, samples, &report, &err), &err);
    ok(drps_units_new(first, set->features_n, uses, 0, &costs, machines, &maker, &err), &err);
    ok(drps_samples_batches(set, samples, machines, batch, SEED, drps_units_add, maker, &err),
       &err);
    ok(drps_units_finish(maker, &units, &err), &err);
    ok(drps_rows_place(&units, &rows, &placement, &err), &err);
    memcpy(units_out, placement.owner, units.n * sizeof(*units_out));
    drps_placement_destroy(&placement);
    drps_units_destroy(&units);
    drps_units_maker_free(maker);
    free(first);
    free(uses);
}

/* Parts get the numbers with which most parameters stay where they are, the largest shares first:
 * kinder to a partitioner than the paper, which takes its numbers as they come. */
static void match_parts(const uint32_t *size, size_t units, uint32_t machines, const uint32_t *was,
                        uint32_t *samples, size_t n, uint32_t *is)
{
    uint64_t *shared = must(calloc((size_t)machines * machines, sizeof(*shared)));
    uint32_t *name = must(drps_array_new(machines, sizeof(*name)));
    uint8_t *taken = must(calloc(machines, 1));
    for (uint32_t m = 0; m < machines; m++)
        name[m] = machines;
    for (size_t u = 0; u < units; u++)
        shared[is[u] * machines + was[u]] += size[u];
    for (uint32_t turn = 0; turn < machines; turn++) {
        uint32_t part = machines, home = 0;
        for (uint32_t i = 0; i < machines; i++)
            for (uint32_t k = 0; k < machines; k++)
                if (name[i] == machines && !taken[k] &&
                    (part == machines || shared[i * machines + k] > shared[part * machines + home]))
                    part = i, home = k;
        name[part] = home;
        taken[home] = 1;
    }
    for (size_t u = 0; u < units; u++)
        is[u] = name[is[u]];
    for (size_t s = 0; s < n; s++)
        samples[s] = name[samples[s]];
    free(shared);
    free(name);
    free(taken);
}

/* ---- Rounds ---- */

/* One number of machines, and one way through the epochs: with pruning or without. */
struct cluster {
    const struct settings *o;
    const struct dense_samples *s;
    const struct dense_changes *c;
    const uint32_t *size; /* [units] parameters not pruned */
    size_t units;
    uint32_t machines, epoch, epochs;
    uint64_t *used;      /* own [units] the round in which a machine used it last */
    uint32_t *in_set;    /* own [units][machines] the turn in which the machine pulled it last */
    double *load, *held; /* own [machines] */
    uint64_t round;      /* counts the rounds of machines */
    uint32_t turn;       /* counts the epochs of methods */
    int no_metis;        /* this build has none */
};

struct epoch_sums {
    double uses, sets, busiest, moved, seconds;
    uint64_t foreseen, right, used;
};

/* Samples of a round: of each machine its next ones, in an order that differs from epoch to epoch.
 */
struct dealing {
    size_t *order, *starts; /* own: samples by machine; [machines + 1] */
    size_t each, rounds;
};

static struct dealing deal(const struct cluster *k, const uint32_t *owner)
{
    struct dealing d = {.each = (size_t)k->o->batch / k->machines};
    d.order = must(drps_array_new(k->s->n, sizeof(*d.order)));
    d.starts = must(calloc((size_t)k->machines + 2, sizeof(*d.starts)));
    for (size_t s = 0; s < k->s->n; s++)
        d.starts[owner[s] + 2]++;
    for (uint32_t m = 1; m <= k->machines; m++)
        d.starts[m + 1] += d.starts[m];
    for (size_t s = 0; s < k->s->n; s++)
        d.order[d.starts[owner[s] + 1]++] = s;
    for (uint32_t m = 0; m < k->machines; m++) {
        const size_t n = d.starts[m + 1] - d.starts[m];
        for (size_t i = n; i > 1; i--) {
            size_t *a = &d.order[d.starts[m]];
            const size_t j = drps_rng_at(SEED + k->epoch * k->machines + m, i) % i, t = a[i - 1];
            a[i - 1] = a[j];
            a[j] = t;
        }
        if ((n + d.each - 1) / d.each > d.rounds) d.rounds = (n + d.each - 1) / d.each;
    }
    return d;
}

static size_t end_of(const struct dealing *d, uint32_t m, size_t round)
{
    const size_t to = d->starts[m] + (round + 1) * d->each;
    return to < d->starts[m + 1] ? to : d->starts[m + 1];
}

/* Counts a round's traffic: k->load by Eq. (1), k->held as Algorithm 4 prints it. */
static void count_round(struct cluster *k, const struct dealing *d, size_t round,
                        struct method *way, struct epoch_sums *sums)
{
    const uint32_t *owner = way->units;
    double most = 0;
    for (uint32_t m = 0; m < k->machines; m++)
        k->load[m] = k->held[m] = 0;
    for (uint32_t m = 0; m < k->machines; m++) {
        k->round++;
        for (size_t i = d->starts[m] + round * d->each; i < end_of(d, m, round); i++)
            for (size_t e = k->c->starts[d->order[i]]; e < k->c->starts[d->order[i] + 1]; e++) {
                const uint32_t u = k->c->units[e];
                k->held[owner[u]] += k->size[u];
                if (k->used[u] == k->round) continue; /* once a round for all of its samples */
                k->used[u] = k->round;
                if (way->counts) way->counts[(size_t)u * k->machines + m]++;
                if (owner[u] == m) continue;
                sums->uses += k->size[u];
                if (k->in_set[(size_t)u * k->machines + m] != k->turn) sums->sets += k->size[u];
                k->in_set[(size_t)u * k->machines + m] = k->turn;
                k->load[m] += k->size[u];
                k->load[owner[u]] += k->size[u];
            }
    }
    for (uint32_t m = 0; m < k->machines; m++)
        most = fmax(most, k->load[m]);
    sums->busiest += most;
}

static void remember_round(struct cluster *k, const struct dealing *d, size_t round,
                           struct drps_recent *recent)
{
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t m = 0; m < k->machines; m++)
        for (size_t i = d->starts[m] + round * d->each; i < end_of(d, m, round); i++) {
            const size_t s = d->order[i], from = k->c->starts[s];
            ok(drps_recent_add(recent, s, &k->s->x[s * k->s->width], &k->c->units[from],
                               k->c->starts[s + 1] - from, &err),
               &err);
        }
}

/* How good the estimate was: edges that are foreseen, and those that come. */
static void judge(const struct cluster *k, const struct drps_correlation *c, const size_t *batch,
                  struct epoch_sums *sums)
{
    for (size_t d = 0; d < c->n; d++) {
        size_t e = c->starts[d];
        for (size_t a = k->c->starts[batch[d]]; a < k->c->starts[batch[d] + 1]; a++) {
            while (e < c->starts[d + 1] && c->unit[e] < k->c->units[a])
                e++;
            sums->right += e < c->starts[d + 1] && c->unit[e] == k->c->units[a];
        }
        sums->foreseen += c->starts[d + 1] - c->starts[d];
        sums->used += k->c->starts[batch[d] + 1] - k->c->starts[batch[d]];
    }
}

static void reallocate(struct cluster *k, const struct dealing *d, size_t round, struct method *way,
                       struct epoch_sums *sums)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_correlation c;
    struct drps_demands demands;
    struct drps_reallocation done;
    const size_t width = k->s->width;
    size_t n = 0;
    size_t *batch = must(drps_array_new(k->s->n, sizeof(*batch)));
    uint32_t *owner = must(drps_array_new(k->s->n, sizeof(*owner)));
    for (uint32_t m = 0; m < k->machines; m++)
        for (size_t i = d->starts[m] + round * d->each; i < end_of(d, m, round); i++) {
            owner[n] = m;
            batch[n++] = d->order[i];
        }
    float *x = must(drps_array_new(n, width * sizeof(*x)));
    for (size_t i = 0; i < n; i++)
        memcpy(&x[i * width], &k->s->x[batch[i] * width], width * sizeof(*x));
    const clock_t start = clock();
    ok(drps_correlation_new(way->recent, x, n, &way->correlation, &c, &err), &err);
    ok(drps_demands_new(&c, owner, k->size, k->machines, way->once, &demands, &err), &err);
    ok(drps_reallocate(&demands, &way->how, way->units, &done, &err), &err);
    sums->seconds += (double)(clock() - start) / CLOCKS_PER_SEC;
    sums->moved += (double)done.moved;
    judge(k, &c, batch, sums);
    drps_demands_destroy(&demands);
    drps_correlation_destroy(&c);
    free(x);
    free(batch);
    free(owner);
}

/* Algorithm 4 with what machines used in the last epoch in place of an estimate; returns what
 * moved. */
static double reallocate_counted(const struct cluster *k, struct method *way)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_demands d = {.n = k->units, .machines = k->machines, .size = k->size};
    struct drps_reallocation done;
    size_t n = 0;
    d.starts = must(drps_array_new(k->units + 1, sizeof(*d.starts)));
    d.demand = must(drps_array_new(k->units * k->machines, sizeof(*d.demand)));
    for (size_t u = 0; u < k->units; u++) {
        d.starts[u] = n;
        for (uint32_t m = 0; m < k->machines; m++) {
            uint32_t *count = &way->counts[u * k->machines + m];
            if (*count && k->size[u])
                d.demand[n++] = (struct drps_demand){m, (double)*count * k->size[u]};
            *count = 0;
        }
    }
    d.starts[k->units] = n;
    ok(drps_reallocate(&d, &way->how, way->units, &done, &err), &err);
    drps_demands_destroy(&d);
    return (double)done.moved;
}

/* Homes by what machines used in the last epoch, whatever that moves: the fewest uses elsewhere
 * that any placement of units would have had then, but for the balance of links. */
static double place_homes(const struct cluster *k, struct method *way)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_homes_options o = {.machines = k->machines};
    struct drps_units units = {.n = k->units, .machines = k->machines};
    uint16_t *home = must(calloc(k->units, sizeof(*home)));
    struct drps_home_load *load = must(drps_array_new(k->machines, sizeof(*load)));
    double moved = 0;
    units.starts = must(drps_array_new(k->units + 1, sizeof(*units.starts)));
    units.touches = must(drps_array_new(k->units * k->machines, sizeof(*units.touches)));
    units.starts[0] = 0;
    for (size_t u = 0; u < k->units; u++) {
        size_t n = units.starts[u];
        for (uint32_t m = 0; m < k->machines; m++) {
            uint32_t *count = &way->counts[u * k->machines + m];
            if (*count) units.touches[n++] = (struct drps_touch){m, *count};
            *count = 0;
        }
        units.starts[u + 1] = n;
    }
    const struct drps_row_stream stream = {(uint32_t)k->units, data_walk_rows, &units};
    ok(drps_homes_place(&stream, &o, home, load, &err), &err);
    for (size_t u = 0; u < k->units; u++) {
        if (units.starts[u] == units.starts[u + 1] || way->units[u] == home[u]) continue;
        moved += k->size[u];
        way->units[u] = home[u];
    }
    drps_units_destroy(&units);
    free(home);
    free(load);
    return moved;
}

static void run_epoch(struct cluster *k, struct method *way, struct epoch_sums *sums)
{
    struct dealing d = deal(k, way->samples);
    k->turn++;
    for (size_t round = 0; round < d.rounds; round++) {
        count_round(k, &d, round, way, sums);
        if (!way->recent) continue;
        remember_round(k, &d, round, way->recent);
        const double *load = way->how.load == DRPS_LOAD_HELD ? k->held : k->load;
        double mean = 0;
        for (uint32_t m = 0; m < k->machines; m++)
            mean += load[m] / k->machines;
        if (round + 1 < d.rounds && drps_dynamic_uneven(load, k->machines, k->o->uneven * mean))
            reallocate(k, &d, round + 1, way, sums);
    }
    free(d.order);
    free(d.starts);
}

/* ---- Methods ---- */

enum { RANDOM, FIXED, MGP, MATCHED, HOMES, PRINTED, NETWORK, COUNTED, METHODS };

static struct method method_new(const char *name, size_t samples, size_t units)
{
    return (struct method){.name = name,
                           .samples = must(calloc(samples, sizeof(uint32_t))),
                           .units = must(calloc(units, sizeof(uint32_t)))};
}

static void make_dynamic(struct method *way, const struct cluster *k)
{
    const struct drps_recent_options o = {
        .width = k->s->width, .units = (uint32_t)k->units, .samples = (uint32_t)k->o->recent};
    struct drps_err err = DRPS_ERR_INIT;
    ok(drps_recent_new(&o, &way->recent, &err), &err);
    way->correlation = (struct drps_correlation_options){
        .nearest = (uint32_t)k->o->nearest, .least = k->o->least, .printed = k->o->printed_f > 0};
}

/* Before the first epoch: the fixed and the dynamic ones begin alike. */
static void begin(struct method *way, const struct cluster *k, const struct drps_sample_set *set)
{
    static const char *const names[METHODS] = {"random", "fixed",   "mgp",     "mgp-matched",
                                               "homes",  "printed", "network", "counted"};
    for (int i = 0; i < METHODS; i++)
        way[i] = method_new(names[i], k->s->n, k->units);
    for (size_t s = 0; s < k->s->n; s++)
        way[RANDOM].samples[s] = (uint32_t)(s % k->machines);
    for (size_t u = 0; u < k->units; u++)
        way[RANDOM].units[u] = (uint32_t)(drps_rng_at(SEED, u) % k->machines);
    place_dppa(set, k->machines, (uint32_t)k->o->batch / k->machines, way[FIXED].samples,
               way[FIXED].units);
    for (int i = HOMES; i <= COUNTED; i++) {
        memcpy(way[i].samples, way[FIXED].samples, k->s->n * sizeof(uint32_t));
        memcpy(way[i].units, way[FIXED].units, k->units * sizeof(uint32_t));
        if (i == PRINTED || i == NETWORK)
            make_dynamic(&way[i], k);
        else
            way[i].counts = must(calloc(k->units * k->machines, sizeof(uint32_t)));
    }
    way[PRINTED].how.load = DRPS_LOAD_HELD;
    way[NETWORK].once = 1;
    way[NETWORK].how.rounds = k->o->rounds;
    way[COUNTED].how.ahead = (uint32_t)k->o->ahead;
}

/* How many parameters are elsewhere than they were. The first placement is free, for all. */
static double moved_since(const struct cluster *k, const uint32_t *was, const uint32_t *is)
{
    double moved = 0;
    for (size_t u = 0; u < k->units && k->epoch > 1; u++)
        if (is[u] != was[u]) moved += k->size[u];
    return moved;
}

/* After pruning the graph is partitioned again; what was elsewhere moves. Returns 0 if this build
 * cannot. */
static int repartition(struct method *way, const struct cluster *k,
                       const struct drps_sample_set *set, struct epoch_sums *sums)
{
    uint32_t *was = must(drps_array_new(2 * k->units, sizeof(*was)));
    uint32_t *was_matched = was + k->units;
    memcpy(was, way[MGP].units, k->units * sizeof(*was));
    memcpy(was_matched, way[MATCHED].units, k->units * sizeof(*was));
    const int can = metis_place(set, k->size, k->machines, way[MGP].samples, way[MGP].units);
    if (can) {
        memcpy(way[MATCHED].samples, way[MGP].samples, k->s->n * sizeof(*was));
        memcpy(way[MATCHED].units, way[MGP].units, k->units * sizeof(*was));
        if (k->epoch > 1)
            match_parts(k->size, k->units, k->machines, was_matched, way[MATCHED].samples, k->s->n,
                        way[MATCHED].units);
        sums[MGP].moved = moved_since(k, was, way[MGP].units);
        sums[MATCHED].moved = moved_since(k, was_matched, way[MATCHED].units);
    }
    free(was);
    return can;
}

static void print_epoch(const struct cluster *k, const struct method *way,
                        const struct epoch_sums *sums)
{
    printf("moves\t%u\t%s\t%u\t%.0f\t%.0f\t%.0f\t%.0f\n", (unsigned)k->machines, way->name,
           (unsigned)k->epoch, sums->uses, sums->sets, sums->busiest, sums->moved);
    if (way->recent)
        printf("guess\t%u\t%s\t%u\t%.1f\t%.1f\t%.1f\n", (unsigned)k->machines, way->name,
               (unsigned)k->epoch, sums->used ? 100 * (double)sums->right / (double)sums->used : 0,
               sums->foreseen ? 100 * (double)sums->right / (double)sums->foreseen : 0,
               sums->seconds);
    fflush(stdout);
}

static void one_epoch(struct cluster *k, struct method *way)
{
    struct drps_sample_set set = {k->s->n, (uint32_t)k->units, k->c->starts, k->c->units};
    struct epoch_sums sums[METHODS] = {0};
    if (k->epoch == 1) begin(way, k, &set);
    if (!k->no_metis) k->no_metis = !repartition(way, k, &set, sums);
    if (k->epoch > 1) sums[COUNTED].moved = reallocate_counted(k, &way[COUNTED]);
    if (k->epoch > 1) sums[HOMES].moved = place_homes(k, &way[HOMES]);
    for (int i = 0; i < METHODS; i++) {
        if ((i == MGP || i == MATCHED) && k->no_metis) continue;
        run_epoch(k, &way[i], &sums[i]);
        print_epoch(k, &way[i], &sums[i]);
    }
}

int main(int argc, char **argv)
{
    struct settings o = {.machines = 16,
                         .samples = 4800,
                         .batch = 160,
                         .unit = 28,
                         .recent = 960,
                         .nearest = 10,
                         .least = .3,
                         .eps = 1e-5,
                         .lr = .001,
                         .uneven = .1,
                         .ahead = 32,
                         .rounds = 1};
    int first_model = 3;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_dynamic DATA LAYERS KEY=VALUE... MODEL...\n");
        return 2;
    }
    while (first_model < argc && strchr(argv[first_model], '='))
        read_setting(&o, argv[first_model++]);
    struct dense net = dense_of(argv[2]);
    struct dense_samples s = dense_samples_read(argv[1], net.width[0], (size_t)o.samples);
    const size_t units = drps_dynamic_cut(net.runs, net.neurons, (uint32_t)o.unit, NULL);
    if (!s.n || !units || o.machines < 1 || o.batch < o.machines) {
        fprintf(stderr, "bench_dynamic: %zu samples, %zu units, %g machines, batches of %g\n", s.n,
                units, o.machines, o.batch);
        return 2;
    }
    uint32_t *first = must(drps_array_new(units + 1, sizeof(*first)));
    uint32_t *size = must(drps_array_new(units, sizeof(*size)));
    struct dense_changes c = {0};
    struct cluster k = {.o = &o,
                        .s = &s,
                        .c = &c,
                        .size = size,
                        .units = units,
                        .machines = (uint32_t)o.machines,
                        .epochs = (uint32_t)(argc - first_model)};
    struct method way[METHODS] = {0};
    k.used = must(calloc(units, sizeof(*k.used)));
    k.in_set = must(calloc(units * k.machines, sizeof(*k.in_set)));
    k.load = must(drps_array_new(k.machines, sizeof(*k.load)));
    k.held = must(drps_array_new(k.machines, sizeof(*k.held)));
    drps_dynamic_cut(net.runs, net.neurons, (uint32_t)o.unit, first);
    for (int i = first_model; i < argc; i++) {
        k.epoch = (uint32_t)(i - first_model + 1);
        dense_load(&net, argv[i], &s);
        /* Gradually: Zhu and Gupta (2017), Eq. 1; the first epoch has the whole net. */
        const double left = 1 - (k.epochs > 1 ? (double)(k.epoch - 1) / (k.epochs - 1) : 0);
        const double pruned = dense_prune(&net, o.prune * (1 - left * left * left));
        drps_dynamic_sizes(first, units, net.pruned, size);
        const double right =
            dense_changes_find(&net, &s, (float)o.lr, (float)o.eps, first, units, &c);
        printf("net\t%u\t%.1f\t%.2f\t%.1f\n", (unsigned)k.epoch, pruned, right,
               100 * (double)c.starts[s.n] / ((double)s.n * (double)units));
        one_epoch(&k, way);
    }
    for (int i = 0; i < METHODS; i++) {
        free(way[i].samples);
        free(way[i].units);
        drps_recent_free(way[i].recent);
        free(way[i].counts);
    }
    dense_free(&net);
    free(first);
    free(size);
    dense_changes_free(&c);
    free(k.used);
    free(k.in_set);
    free(k.load);
    free(k.held);
    dense_samples_free(&s);
    return 0;
}
