/*
 * Our placement: low load everywhere, then few remote rows.
 *
 * Three ways make a placement; each is brought below the limit of bytes, then repaired; of those
 * within 1 % of the least maximum, none above greedy's, the one with fewest remote rows is taken.
 *
 * - prices: every machine has a price for its time. A unit goes where its cost at those prices is
 *   least; machines above the average then get dearer, the others cheaper: multiplicative weights,
 *   80 rounds at most. Units follow their touches as long as loads allow.
 * - list scheduling: heaviest unit first, each to the machine that it leaves lowest (LPT with
 * marginal costs).
 * - greedy: the paper's.
 *
 * All loads here are held_cost() on top of base_s: the cost of a unit for the machine that holds
 * it, with the pulls that it saves, so that moving a unit changes two loads only.
 */
#include "partition/problem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "partition/order.h"

enum { ROUNDS = 80, PATIENCE = 10, REPAIRS = 8 };

#define STEP 0.5       /* of the first round's prices; falls as 1 / sqrt(round) */
#define EVEN 1.001     /* maximum over average at which rounds end */
#define GOOD 1.005     /* that at which nothing is repaired: it would cost remote rows */
#define TOLERANCE 1.01 /* maxima that near are taken for equal */

struct work {
    const struct problem *p;
    uint32_t *order; /* own [U] units, heaviest first */
    double *weight;  /* own [U] cost on a machine that does not touch it */
    double *load;    /* own [W] of the placement at hand */
    double *price;   /* own [W] */
    uint64_t *bytes; /* own [W] of the placement at hand */
    uint32_t *owner; /* own [U]: a placement in the making */
};

static void work_free(struct work *w)
{
    free(w->order);
    free(w->weight);
    free(w->load);
    free(w->price);
    free(w->bytes);
    free(w->owner);
}

static int work_init(struct work *w, const struct problem *p)
{
    size_t n = p->units->n, machines = p->units->machines;
    struct keyed *pairs = drps_array_new(n, 2 * sizeof(*pairs)); /* upper half: scratch */
    *w = (struct work){.p = p,
                       .order = drps_array_new(n, sizeof(*w->order)),
                       .weight = drps_array_new(n, sizeof(*w->weight)),
                       .load = drps_array_new(machines, sizeof(*w->load)),
                       .price = drps_array_new(machines, sizeof(*w->price)),
                       .bytes = drps_array_new(machines, sizeof(*w->bytes)),
                       .owner = drps_array_new(n, sizeof(*w->owner))};
    int rc =
        pairs && w->order && w->weight && w->load && w->price && w->bytes && w->owner ? 0 : -ENOMEM;
    for (size_t u = 0; rc == 0 && u < n; u++) {
        w->weight[u] = held_cost(p, u, 0);
        pairs[u] = (struct keyed){key_of(-w->weight[u]), (uint32_t)u};
    }
    if (rc == 0) drps_keyed_sort(pairs, pairs + n, n);
    for (size_t u = 0; rc == 0 && u < n; u++)
        w->order[u] = pairs[u].item;
    free(pairs);
    return rc;
}

static double largest(const double *load, uint32_t n)
{
    double most = load[0];
    for (uint32_t m = 1; m < n; m++)
        if (load[m] > most) most = load[m];
    return most;
}

static double average(const double *load, uint32_t n)
{
    double sum = 0;
    for (uint32_t m = 0; m < n; m++)
        sum += load[m];
    return sum / n;
}

/* The loads and bytes of a placement. */
static void count(struct work *w, const uint32_t *owner)
{
    const struct drps_units *units = w->p->units;
    memcpy(w->load, w->p->base_s, units->machines * sizeof(*w->load));
    memset(w->bytes, 0, units->machines * sizeof(*w->bytes));
    for (size_t u = 0; u < units->n; u++) {
        w->load[owner[u]] += held_cost(w->p, u, drps_touch_count(units, u, owner[u]));
        w->bytes[owner[u]] += units->bytes[u];
    }
}

/* Every unit to the machine where it costs least at the present prices; load follows. */
static void answer_prices(struct work *w, uint32_t *owner)
{
    const struct drps_units *units = w->p->units;
    double net = units->row_net_s;
    uint32_t cheapest = 0; /* of the machines that do not touch a unit it is the best */
    for (uint32_t m = 1; m < units->machines; m++)
        if (w->price[m] < w->price[cheapest]) cheapest = m;
    memcpy(w->load, w->p->base_s, units->machines * sizeof(*w->load));
    for (size_t u = 0; u < units->n; u++) {
        double best = w->price[cheapest] * w->weight[u], saved = 0;
        owner[u] = cheapest;
        for (size_t t = units->starts[u]; t < units->starts[u + 1]; t++) {
            double moved = net * units->touches[t].count;
            double cost = w->price[units->touches[t].machine] * (w->weight[u] - moved) - moved;
            if (cost >= best) continue;
            best = cost;
            saved = 2 * moved;
            owner[u] = units->touches[t].machine;
        }
        /* `cheapest` may touch the unit: then its own entry above was better than untouched */
        w->load[owner[u]] += w->weight[u] - saved;
    }
}

static void change_prices(struct work *w, double step)
{
    uint32_t n = w->p->units->machines;
    double mean_load = average(w->load, n);
    for (uint32_t m = 0; m < n; m++)
        w->price[m] *= exp(step * fmin(w->load[m] / mean_load - 1, 2));
    double mean_price = average(w->price, n);
    for (uint32_t m = 0; m < n; m++)
        w->price[m] /= mean_price;
}

static void place_by_prices(struct work *w, uint32_t *owner_out)
{
    uint32_t n = w->p->units->machines;
    double least = INFINITY;
    for (uint32_t m = 0; m < n; m++)
        w->price[m] = 1;
    for (int round = 0, since = 0; round < ROUNDS && since < PATIENCE; round++, since++) {
        answer_prices(w, w->owner);
        double most = largest(w->load, n), mean = average(w->load, n);
        if (most < least) {
            least = most;
            since = 0;
            memcpy(owner_out, w->owner, w->p->units->n * sizeof(*owner_out));
        }
        if (most <= EVEN * mean) break;
        change_prices(w, STEP / sqrt(1 + round));
    }
}

/* How unit u may go to another machine: the loads that hold it, where its bytes fit. */
struct choice {
    uint32_t lowest;    /* the machine that it leaves lowest; W: its bytes fit nowhere */
    double lowest_load; /* with the unit */
    uint32_t cheapest;  /* where it costs least, of machines that it leaves below `room`; W: none */
    double cheapest_cost;
};

static struct choice choose(const struct work *w, size_t u, uint32_t except, double room)
{
    const struct drps_units *units = w->p->units;
    struct choice c = {units->machines, INFINITY, units->machines, INFINITY};
    size_t t = units->starts[u];
    for (uint32_t m = 0; m < units->machines; m++) {
        double cost = w->weight[u];
        if (t < units->starts[u + 1] && units->touches[t].machine == m)
            cost -= 2 * units->row_net_s * units->touches[t++].count;
        if (m == except || w->bytes[m] + units->bytes[u] > w->p->bytes_max) continue;
        double load = w->load[m] + cost;
        if (load < c.lowest_load) {
            c.lowest_load = load;
            c.lowest = m;
        }
        if (load <= room && cost < c.cheapest_cost) {
            c.cheapest_cost = cost;
            c.cheapest = m;
        }
    }
    return c;
}

static void put(struct work *w, uint32_t *owner, size_t u, uint32_t m)
{
    owner[u] = m;
    w->load[m] += held_cost(w->p, u, drps_touch_count(w->p->units, u, m));
    w->bytes[m] += w->p->units->bytes[u];
}

static void move(struct work *w, uint32_t *owner, size_t u, uint32_t m)
{
    w->load[owner[u]] -= held_cost(w->p, u, drps_touch_count(w->p->units, u, owner[u]));
    w->bytes[owner[u]] -= w->p->units->bytes[u];
    put(w, owner, u, m);
}

static void place_by_list_scheduling(struct work *w, uint32_t *owner)
{
    const struct drps_units *units = w->p->units;
    memcpy(w->load, w->p->base_s, units->machines * sizeof(*w->load));
    memset(w->bytes, 0, units->machines * sizeof(*w->bytes));
    for (size_t k = 0; k < units->n; k++)
        put(w, owner, w->order[k], choose(w, w->order[k], units->machines, INFINITY).lowest);
}

/* The lightest units leave machines that hold more bytes than allowed. */
static void fit_bytes(struct work *w, uint32_t *owner)
{
    const struct drps_units *units = w->p->units;
    for (size_t k = units->n; k > 0; k--) {
        size_t u = w->order[k - 1];
        if (w->bytes[owner[u]] <= w->p->bytes_max) continue;
        move(w, owner, u, choose(w, u, owner[u], INFINITY).lowest);
    }
}

/* One pass, heaviest first: units of machines above the average go where they cost least without
 * bringing another one above it, or else to whoever ends up lowest, if that is lower than now. */
static void move_from_full(struct work *w, uint32_t *owner)
{
    const struct drps_units *units = w->p->units;
    double mean = average(w->load, units->machines);
    for (size_t k = 0; k < units->n; k++) {
        size_t u = w->order[k];
        uint32_t from = owner[u];
        if (w->load[from] <= mean || held_cost(w->p, u, drps_touch_count(units, u, from)) <= 0)
            continue;
        struct choice c = choose(w, u, from, mean);
        if (c.cheapest < units->machines)
            move(w, owner, u, c.cheapest);
        else if (c.lowest_load < w->load[from])
            move(w, owner, u, c.lowest);
    }
}

/* Make passes as long as the largest load falls by them. */
static void repair(struct work *w, uint32_t *owner)
{
    uint32_t n = w->p->units->machines;
    double before = INFINITY, now = largest(w->load, n);
    for (int pass = 0; pass < REPAIRS && now < before; pass++) {
        if (now <= GOOD * average(w->load, n)) break;
        before = now;
        move_from_full(w, owner);
        now = largest(w->load, n);
    }
}

static uint64_t rows_at_home(const struct drps_units *units, const uint32_t *owner)
{
    uint64_t sum = 0;
    for (size_t u = 0; u < units->n; u++)
        sum += drps_touch_count(units, u, owner[u]);
    return sum;
}

enum { BY_PRICES, BY_LIST_SCHEDULING, BY_GREEDY, WAYS };

struct candidate {
    uint32_t *owner; /* own [U] */
    double most;     /* largest load */
    uint64_t home;   /* touches that stay at home */
};

/* The best of the candidates; `bound`: the largest load that is allowed. */
static const struct candidate *best_of(const struct candidate *c, double bound)
{
    double least = INFINITY;
    const struct candidate *best = NULL;
    for (int i = 0; i < WAYS; i++)
        least = fmin(least, c[i].most);
    double limit = fmax(least, fmin(bound, TOLERANCE * least));
    for (int i = 0; i < WAYS; i++)
        if (c[i].most <= limit && (!best || c[i].home > best->home)) best = &c[i];
    return best;
}

int drps_place_auto(const struct problem *p, uint32_t *owner)
{
    struct work w;
    struct candidate c[WAYS] = {{0}};
    double bound = INFINITY;
    int rc = work_init(&w, p);
    for (int i = 0; i < WAYS && rc == 0; i++) {
        c[i].owner = drps_array_new(p->units->n, sizeof(*c[i].owner));
        if (!c[i].owner) rc = -ENOMEM;
        if (rc == 0 && i == BY_PRICES) place_by_prices(&w, c[i].owner);
        if (rc == 0 && i == BY_LIST_SCHEDULING) place_by_list_scheduling(&w, c[i].owner);
        if (rc == 0 && i == BY_GREEDY) rc = drps_place_greedy(p, c[i].owner);
        if (rc < 0) break;
        count(&w, c[i].owner);
        fit_bytes(&w, c[i].owner);
        if (i == BY_GREEDY) bound = largest(w.load, p->units->machines);
        repair(&w, c[i].owner);
        c[i].most = largest(w.load, p->units->machines);
        c[i].home = rows_at_home(p->units, c[i].owner);
    }
    if (rc == 0) memcpy(owner, best_of(c, bound)->owner, p->units->n * sizeof(*owner));
    for (int i = 0; i < WAYS; i++)
        free(c[i].owner);
    work_free(&w);
    return rc;
}
