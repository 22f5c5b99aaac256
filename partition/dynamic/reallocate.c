/*
 * Algorithm 4: moves from the machine with the largest load to the one with the smallest.
 *
 * Machine i needs a_pi of unit p, all machines need a_p. If p goes from machine M to m, the
 * difference of their loads falls by 2 v: v is a_p where a load is what is needed of the machine's
 * units, and a_p - a_pM - a_pm where it is what crosses the network, as p's part of the load of M
 * is a_p - a_pM before and a_pM after, and that of m is a_pm before and a_p - a_pm after. All other
 * loads stay. So p* is the unit of M whose v is nearest to half of the difference. Units of M are
 * kept in the order of a_p - a_pM (or a_p), which does not depend on m. v is at most that, and less
 * by at most the largest of all a_pi: the search goes from the middle to both sides, until no unit
 * can be better.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "partition/drps_partition.h"
#include "partition/dynamic/drps_dynamic.h"
#include "partition/dynamic/ordered.h"

struct move {
    uint32_t unit, from, to;
};

struct reallocating {
    const struct drps_demands *d;
    const struct drps_reallocate_options *o;
    uint32_t *owner;            /* [U] borrowed */
    double *total;              /* own [U] a_p */
    double *load;               /* own [W] */
    double most;                /* the largest a_pi where it counts, or 0 */
    struct drps_ordered by_key; /* units that are not pruned; not with `plain` */
    struct move *tried;         /* own: moves that have not paid yet */
    size_t tried_n, tried_cap;
};

/* a_pi */
static double need(const struct drps_demands *d, size_t unit, uint32_t machine)
{
    size_t from = d->starts[unit], to = d->starts[unit + 1];
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (d->demand[middle].machine < machine)
            from = middle + 1;
        else
            to = middle;
    }
    return from < d->starts[unit + 1] && d->demand[from].machine == machine ? d->demand[from].amount
                                                                            : 0;
}

static double total_of(const struct drps_demands *d, size_t unit)
{
    double sum = 0;
    for (size_t t = d->starts[unit]; t < d->starts[unit + 1]; t++)
        sum += d->demand[t].amount;
    return sum;
}

void drps_dynamic_loads(const struct drps_demands *d, const uint32_t *owner,
                        enum drps_dynamic_load what, double *load_out)
{
    for (uint32_t m = 0; m < d->machines; m++)
        load_out[m] = 0;
    for (size_t u = 0; u < d->n; u++)
        for (size_t t = d->starts[u]; t < d->starts[u + 1]; t++) {
            const struct drps_demand *need = &d->demand[t];
            if (what == DRPS_LOAD_NETWORK && need->machine == owner[u]) continue;
            load_out[owner[u]] += need->amount;
            if (what == DRPS_LOAD_NETWORK) load_out[need->machine] += need->amount;
        }
}

int drps_dynamic_uneven(const double *load, uint32_t machines, double threshold)
{
    double least = load[0], most = load[0];
    for (uint32_t m = 1; m < machines; m++) {
        least = fmin(least, load[m]);
        most = fmax(most, load[m]);
    }
    return most - least > threshold;
}

/* ---- Checks ---- */

static int check_options(const struct drps_reallocate_options *o, struct drps_err *err)
{
    if (o->load != DRPS_LOAD_NETWORK && o->load != DRPS_LOAD_HELD)
        return drps_err_set(err, DRPS_E_CONFIG, "reallocation: load %d is not known", (int)o->load);
    if (!(o->rounds >= 0) || !isfinite(o->rounds))
        return drps_err_set(err, DRPS_E_CONFIG, "reallocation for %g rounds: 0 or more", o->rounds);
    return 0;
}

static int check_unit(const struct drps_demands *d, const uint32_t *owner, size_t u,
                      struct drps_err *err)
{
    if (owner[u] >= d->machines)
        return drps_err_set(err, -EINVAL, "unit %zu is on machine %" PRIu32 ", there are %" PRIu32,
                            u, owner[u], d->machines);
    if (d->starts[u + 1] < d->starts[u])
        return drps_err_set(err, -EINVAL, "demands of unit %zu end before they start", u);
    for (size_t t = d->starts[u]; t < d->starts[u + 1]; t++) {
        const struct drps_demand *one = &d->demand[t];
        if (one->machine >= d->machines ||
            (t > d->starts[u] && one->machine <= d->demand[t - 1].machine))
            return drps_err_set(err, -EINVAL,
                                "demands of unit %zu: machine %" PRIu32
                                " does not rise, or there is none",
                                u, one->machine);
        if (!(one->amount >= 0) || !isfinite(one->amount))
            return drps_err_set(err, -EINVAL, "unit %zu: machine %" PRIu32 " needs %g of it", u,
                                one->machine, one->amount);
    }
    return 0;
}

static int check(const struct drps_demands *d, const struct drps_reallocate_options *o,
                 const uint32_t *owner, struct drps_err *err)
{
    if (!d->machines || d->machines > DRPS_MACHINES_MAX || d->n >= UINT32_MAX)
        return drps_err_set(err, -EINVAL, "demands of %zu units and %" PRIu32 " machines", d->n,
                            d->machines);
    if (d->starts[0] != 0) return drps_err_set(err, -EINVAL, "demands do not start at 0");
    int rc = check_options(o, err);
    for (size_t u = 0; u < d->n && rc == 0; u++)
        rc = check_unit(d, owner, u, err);
    double sum = 0;
    for (size_t t = 0; rc == 0 && t < d->starts[d->n]; t++)
        sum += 4 * d->demand[t].amount;
    if (rc == 0 && !isfinite(sum)) rc = drps_err_set(err, -EINVAL, "demands are too large to add");
    return rc;
}

/* ---- The unit that evens loads best ---- */

static double key_of(const struct reallocating *r, uint32_t unit)
{
    if (r->o->load == DRPS_LOAD_HELD) return r->total[unit];
    return r->total[unit] - need(r->d, unit, r->owner[unit]);
}

static double difference_after(const struct reallocating *r, uint32_t unit, uint32_t to, double gap)
{
    double v = key_of(r, unit);
    if (r->o->load == DRPS_LOAD_NETWORK) v -= need(r->d, unit, to);
    return fabs(gap - 2 * v);
}

/* The best unit yet. */
struct found {
    uint32_t unit;
    double difference;
};

static void consider(struct found *best, const struct reallocating *r, uint32_t unit, uint32_t to,
                     double gap)
{
    const double difference = difference_after(r, unit, to, gap);
    if (difference < best->difference || (difference == best->difference && unit < best->unit))
        *best = (struct found){unit, difference};
}

static struct found find_plain(const struct reallocating *r, uint32_t from, uint32_t to, double gap)
{
    struct found best = {DRPS_ORDERED_NONE, INFINITY};
    for (uint32_t u = 0; u < r->d->n; u++)
        if (r->owner[u] == from && r->d->size[u]) consider(&best, r, u, to, gap);
    return best;
}

/* Rounding keeps the order of what is rounded, so the two limits hold to the last bit. */
static struct found find_ordered(const struct reallocating *r, uint32_t from, uint32_t to,
                                 double gap)
{
    const struct drps_ordered *o = &r->by_key;
    struct found best = {DRPS_ORDERED_NONE, INFINITY};
    uint32_t above = drps_ordered_from(o, from, gap / 2, 0);
    uint32_t below = drps_ordered_before(o, from, gap / 2, 0);
    while (above != DRPS_ORDERED_NONE || below != DRPS_ORDERED_NONE) {
        if (above != DRPS_ORDERED_NONE && 2 * (o->key[above] - r->most) - gap > best.difference)
            above = DRPS_ORDERED_NONE;
        if (above != DRPS_ORDERED_NONE) {
            consider(&best, r, above, to, gap);
            above = drps_ordered_from(o, from, o->key[above], above + 1);
        }
        if (below != DRPS_ORDERED_NONE && gap - 2 * o->key[below] > best.difference)
            below = DRPS_ORDERED_NONE;
        if (below != DRPS_ORDERED_NONE) {
            consider(&best, r, below, to, gap);
            below = drps_ordered_before(o, from, o->key[below], below);
        }
    }
    return best;
}

/* ---- Moves ---- */

/* What a unit adds to the load of its owner, more than if it were elsewhere. */
static double effect(const struct reallocating *r, uint32_t unit, uint32_t machine)
{
    if (r->o->load == DRPS_LOAD_HELD) return r->total[unit];
    return r->total[unit] - 2 * need(r->d, unit, machine);
}

static void make_move(struct reallocating *r, uint32_t unit, uint32_t to)
{
    const uint32_t from = r->owner[unit];
    r->load[from] -= effect(r, unit, from);
    r->load[to] += effect(r, unit, to);
    if (!r->o->plain) drps_ordered_remove(&r->by_key, from, unit);
    r->owner[unit] = to;
    if (!r->o->plain) drps_ordered_insert(&r->by_key, to, unit, key_of(r, unit));
}

static double largest_after(const struct reallocating *r, uint32_t unit, uint32_t to)
{
    const uint32_t from = r->owner[unit];
    double largest = fmax(r->load[from] - effect(r, unit, from), r->load[to] + effect(r, unit, to));
    for (uint32_t m = 0; m < r->d->machines; m++)
        if (m != from && m != to) largest = fmax(largest, r->load[m]);
    return largest;
}

static void find_machines(const struct reallocating *r, uint32_t *most_out, uint32_t *least_out)
{
    *most_out = *least_out = 0;
    for (uint32_t m = 1; m < r->d->machines; m++) {
        if (r->load[m] > r->load[*most_out]) *most_out = m;
        if (r->load[m] < r->load[*least_out]) *least_out = m;
    }
}

/* Moves until no move pays, nor `ahead` of them together. */
static int move_all(struct reallocating *r, uint64_t *moves_out)
{
    const double rounds = r->o->rounds > 0 ? r->o->rounds : 1;
    uint32_t from, to;
    double paid_load = INFINITY; /* the largest load when a move last paid */
    double unpaid = 0;           /* parameters moved since */
    int rc = 0;
    find_machines(r, &from, &to);
    paid_load = r->load[from];
    while (!r->o->most_moves || *moves_out + r->tried_n < r->o->most_moves) {
        const double gap = r->load[from] - r->load[to];
        if (from == to) break;
        const struct found best =
            r->o->plain ? find_plain(r, from, to, gap) : find_ordered(r, from, to, gap);
        if (best.unit == DRPS_ORDERED_NONE) break;
        const double largest = largest_after(r, best.unit, to);
        unpaid += r->d->size[best.unit];
        if (rounds * (paid_load - largest) >= unpaid) {
            *moves_out += r->tried_n + 1;
            r->tried_n = 0;
            unpaid = 0;
            paid_load = largest;
        } else {
            if (r->tried_n >= r->o->ahead) break;
            rc = drps_array_reserve(&r->tried, &r->tried_cap, r->tried_n + 1, sizeof(*r->tried));
            if (rc < 0) return rc;
            r->tried[r->tried_n++] = (struct move){best.unit, from, to};
        }
        make_move(r, best.unit, to);
        find_machines(r, &from, &to);
    }
    while (r->tried_n) {
        r->tried_n--;
        make_move(r, r->tried[r->tried_n].unit, r->tried[r->tried_n].from);
    }
    return 0;
}

static int prepare(struct reallocating *r)
{
    const struct drps_demands *d = r->d;
    r->total = drps_array_new(d->n, sizeof(*r->total));
    r->load = drps_array_new(d->machines, sizeof(*r->load));
    if (!r->total || !r->load) return -ENOMEM;
    for (size_t u = 0; u < d->n; u++)
        r->total[u] = total_of(d, u);
    drps_dynamic_loads(d, r->owner, r->o->load, r->load);
    if (r->o->plain) return 0;
    for (size_t t = 0; r->o->load == DRPS_LOAD_NETWORK && t < d->starts[d->n]; t++)
        r->most = fmax(r->most, d->demand[t].amount);
    const int rc = drps_ordered_init(&r->by_key, d->n, d->machines);
    for (uint32_t u = 0; u < d->n && rc == 0; u++)
        if (d->size[u]) drps_ordered_insert(&r->by_key, r->owner[u], u, key_of(r, u));
    return rc;
}

static double largest_load(const struct reallocating *r)
{
    uint32_t most, least;
    find_machines(r, &most, &least);
    return r->load[most];
}

int drps_reallocate(const struct drps_demands *d, const struct drps_reallocate_options *o,
                    uint32_t *owner, struct drps_reallocation *out, struct drps_err *err)
{
    struct reallocating r = {.d = d, .o = o, .owner = owner};
    *out = (struct drps_reallocation){0};
    int rc = check(d, o, owner, err);
    if (rc < 0) return rc;
    uint32_t *old = drps_array_new(d->n, sizeof(*old));
    rc = old ? prepare(&r) : -ENOMEM;
    if (rc == 0) {
        if (d->n) memcpy(old, owner, d->n * sizeof(*old));
        out->before = largest_load(&r);
        rc = move_all(&r, &out->moves);
        if (rc < 0) memcpy(owner, old, d->n * sizeof(*old));
    }
    if (rc == 0) {
        for (size_t u = 0; u < d->n; u++)
            if (owner[u] != old[u]) out->moved += d->size[u];
        drps_dynamic_loads(d, owner, o->load, r.load); /* without the rounding of many moves */
        out->after = largest_load(&r);
    } else {
        *out = (struct drps_reallocation){0};
        drps_err_set(err, rc, "reallocation of %zu units", d->n);
    }
    drps_ordered_destroy(&r.by_key);
    free(r.total);
    free(r.load);
    free(r.tried);
    free(old);
    return rc;
}
