/*
 * The machine that has most for its share gives a sample to another one, those with least first,
 * and takes a shorter one for it: the pair after which the two are most alike. Each exchange makes
 * the larger of the two smaller, so that it ends.
 */
#include "partition/drps_balance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "partition/order.h"

struct balancing {
    const uint32_t *entries;
    uint16_t *owner;
    size_t n;
    const double *share;
    uint32_t machines;
    struct keyed *order; /* own [2 n]: samples by rising entries; the upper half is scratch */
    double *load;        /* own [machines]: entries for a share of 1 */
};

static double share_of(const double *share, uint32_t machines, uint32_t m)
{
    return share ? share[m] : 1.0 / machines;
}

static void count_loads(const uint32_t *entries, const uint16_t *owner, size_t n,
                        const double *share, uint32_t machines, double *load)
{
    for (uint32_t m = 0; m < machines; m++)
        load[m] = 0;
    for (size_t i = 0; i < n; i++)
        load[owner[i]] += entries[i];
    for (uint32_t m = 0; m < machines; m++)
        load[m] /= share_of(share, machines, m);
}

static uint32_t heaviest(const double *load, uint32_t machines)
{
    uint32_t most = 0;
    for (uint32_t m = 1; m < machines; m++)
        if (load[m] > load[most]) most = m;
    return most;
}

/* A pair to exchange. */
struct pair {
    size_t give, take;
    double error; /* how far it is from what would make both alike; INFINITY: there is none */
};

/* The best pair of `from`, which gives the longer sample, and `to`: for samples of `from` by rising
 * entries, the one of `to` that comes nearest rises, too. */
static struct pair best_pair(const struct balancing *b, uint32_t from, uint32_t to)
{
    const double mine = share_of(b->share, b->machines, from);
    const double theirs = share_of(b->share, b->machines, to);
    const double wanted = (b->load[from] - b->load[to]) * mine * theirs / (mine + theirs);
    /* With all of that, `to` would be where `from` was; the rest is for rounding. */
    const double most = (b->load[from] - b->load[to]) * theirs * (1 - 1e-9);
    struct pair best = {.error = INFINITY};
    size_t last = SIZE_MAX, k = 0;
    for (size_t i = 0; i < b->n; i++) {
        const size_t a = b->order[i].item;
        if (b->owner[a] != from) continue;
        for (; k < b->n && (double)b->entries[b->order[k].item] <= b->entries[a] - wanted; k++)
            if (b->owner[b->order[k].item] == to) last = k;
        size_t next = k; /* the first of `to` that is longer than that */
        while (next < b->n && b->owner[b->order[next].item] != to)
            next++;
        const size_t near[2] = {last, next < b->n ? next : SIZE_MAX};
        for (int side = 0; side < 2; side++) {
            if (near[side] == SIZE_MAX) continue;
            const size_t c = b->order[near[side]].item;
            const double moved = (double)b->entries[a] - (double)b->entries[c];
            const double error = fabs(moved - wanted);
            if (!(moved > 0) || !(moved < most) || !(error < best.error)) continue;
            best = (struct pair){a, c, error};
        }
    }
    return best;
}

static void exchange(struct balancing *b, const struct pair *p)
{
    const uint16_t from = b->owner[p->give], to = b->owner[p->take];
    const double moved = (double)b->entries[p->give] - (double)b->entries[p->take];
    b->owner[p->give] = to;
    b->owner[p->take] = from;
    b->load[from] -= moved / share_of(b->share, b->machines, from);
    b->load[to] += moved / share_of(b->share, b->machines, to);
}

/* The machine with the least load above `above`, of equal ones the first beyond `after`; the number
 * of machines: none. */
static uint32_t next_lightest(const struct balancing *b, double above, uint32_t after)
{
    uint32_t found = b->machines;
    for (uint32_t m = 0; m < b->machines; m++) {
        const int later = b->load[m] > above || (b->load[m] == above && m > after);
        if (later && (found == b->machines || b->load[m] < b->load[found])) found = m;
    }
    return found;
}

/* One exchange of the machine with most. Returns 0 if none makes it better. */
static int improve(struct balancing *b, uint32_t from)
{
    uint32_t to = next_lightest(b, -INFINITY, 0);
    while (to < b->machines && b->load[to] < b->load[from]) {
        const struct pair pair = best_pair(b, from, to);
        if (pair.error < INFINITY) {
            exchange(b, &pair);
            return 1;
        }
        to = next_lightest(b, b->load[to], to);
    }
    return 0;
}

int drps_round_balance(const uint32_t *entries, uint16_t *owner, size_t n, const double *share,
                       uint32_t machines, double most, struct drps_largest *largest_out,
                       struct drps_err *err)
{
    struct balancing b = {.entries = entries,
                          .owner = owner,
                          .n = n,
                          .share = share,
                          .machines = machines,
                          .order = drps_array_new(n, 2 * sizeof(*b.order)),
                          .load = calloc(machines, sizeof(*b.load))};
    double all = 0;
    int rc = b.order && b.load
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to balance a round of %zu samples", n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        b.order[i] = (struct keyed){entries[i], (uint32_t)i};
        all += entries[i];
    }
    if (rc == 0) {
        drps_keyed_sort(b.order, b.order + n, n);
        count_loads(entries, owner, n, share, machines, b.load);
        uint32_t m = heaviest(b.load, machines);
        *largest_out = (struct drps_largest){.before = all > 0 ? b.load[m] / all : 1};
        while (b.load[m] > most * all && improve(&b, m))
            m = heaviest(b.load, machines);
        largest_out->after = all > 0 ? b.load[m] / all : 1;
    }
    free(b.order);
    free(b.load);
    return rc;
}
