/* Placing rows: checks, the algorithm by its name, and the load of every machine. */
#include "partition/problem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

static int place_hash(const struct problem *p, uint32_t *owner)
{
    for (size_t u = 0; u < p->units->n; u++)
        owner[u] = (uint32_t)(drps_rng_at(p->seed, u) % p->units->machines);
    return 0;
}

static int place_range(const struct problem *p, uint32_t *owner)
{
    const struct drps_units *units = p->units;
    double all = 0, before = 0;
    for (size_t u = 0; u < units->n; u++)
        all += (double)units->bytes[u];
    for (size_t u = 0; u < units->n; u++) {
        double middle = before + (double)units->bytes[u] / 2;
        uint32_t machine = all > 0 ? (uint32_t)(middle / all * units->machines) : 0;
        owner[u] = machine < units->machines ? machine : units->machines - 1;
        before += (double)units->bytes[u];
    }
    return 0;
}

static const struct algorithm {
    const char *name;
    int (*place)(const struct problem *p, uint32_t *owner);
} algorithms[] = {{"greedy", drps_place_greedy},
                  {"dppa", drps_place_dppa},
                  {"range", place_range},
                  {"hash", place_hash}};

static const struct algorithm *find_algorithm(const char *name)
{
    for (size_t i = 0; name && i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
        if (strcmp(algorithms[i].name, name) == 0) return &algorithms[i];
    return NULL;
}

static int check_unit(const struct drps_units *units, size_t u, struct drps_err *err)
{
    if (!(units->io_s[u] >= 0) || !isfinite(units->io_s[u]))
        return drps_err_set(err, -EINVAL, "unit %zu: I/O of %g seconds", u, units->io_s[u]);
    if (units->starts[u + 1] < units->starts[u])
        return drps_err_set(err, -EINVAL, "unit %zu: its touches end before they begin", u);
    for (size_t t = units->starts[u]; t < units->starts[u + 1]; t++) {
        if (units->touches[t].machine >= units->machines)
            return drps_err_set(err, -EINVAL, "unit %zu: touched by machine %u of %u", u,
                                units->touches[t].machine, units->machines);
        if (t > units->starts[u] && units->touches[t].machine <= units->touches[t - 1].machine)
            return drps_err_set(err, -EINVAL, "unit %zu: machines of its touches do not rise", u);
    }
    return 0;
}

static int check_units(const struct drps_units *units, struct drps_err *err)
{
    if (units->machines < 1 || units->machines > DRPS_MACHINES_MAX)
        return drps_err_set(err, -EINVAL, "%u machines; 1 to %d are possible", units->machines,
                            DRPS_MACHINES_MAX);
    if (!(units->row_net_s >= 0) || !isfinite(units->row_net_s))
        return drps_err_set(err, -EINVAL, "a row takes %g seconds on the network",
                            units->row_net_s);
    if (units->n > UINT32_MAX) return drps_err_set(err, -EINVAL, "%zu units", units->n);
    int rc = 0;
    for (size_t u = 0; u < units->n && rc == 0; u++)
        rc = check_unit(units, u, err);
    return rc;
}

static int problem_init(struct problem *p, const struct drps_units *units,
                        const struct drps_rows_options *o)
{
    *p = (struct problem){.units = units, .seed = o->seed, .by_sets = o->by_sets};
    p->total = calloc(units->n + 1, sizeof(*p->total));
    if (!p->total) return -ENOMEM;
    for (size_t u = 0; u < units->n; u++)
        for (size_t t = units->starts[u]; t < units->starts[u + 1]; t++)
            p->total[u] += units->touches[t].count;
    return 0;
}

/* Every machine's load, straight from the formula in drps_partition.h. */
static void count_loads(const struct problem *p, struct drps_placement *out)
{
    const struct drps_units *units = p->units;
    for (size_t u = 0; u < units->n; u++) {
        struct drps_machine_load *owner = &out->load[out->owner[u]];
        owner->disk_s += units->io_s[u];
        owner->bytes += units->bytes[u];
        for (size_t t = units->starts[u]; t < units->starts[u + 1]; t++) {
            const struct drps_touch *touch = &units->touches[t];
            if (touch->machine == out->owner[u]) continue;
            owner->served += touch->count;
            out->load[touch->machine].pulled += touch->count;
        }
    }
    double sum = 0;
    for (uint32_t m = 0; m < units->machines; m++) {
        struct drps_machine_load *l = &out->load[m];
        l->net_s = units->row_net_s * ((double)l->pulled + (double)l->served);
        out->remote += l->pulled;
        sum += l->disk_s + l->net_s;
        if (l->disk_s + l->net_s > out->max_s) out->max_s = l->disk_s + l->net_s;
        if (l->bytes > out->max_bytes) out->max_bytes = l->bytes;
    }
    out->average_s = sum / units->machines;
}

int drps_rows_place(const struct drps_units *units, const struct drps_rows_options *o,
                    struct drps_placement *out, struct drps_err *err)
{
    struct problem p;
    const struct algorithm *algorithm = find_algorithm(o->algo);
    *out = (struct drps_placement){0};
    if (!algorithm)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "rows are placed by greedy, dppa, range or hash, not by '%s'",
                            o->algo ? o->algo : "");
    int rc = check_units(units, err);
    if (rc < 0) return rc;
    out->units = units->n;
    out->machines = units->machines;
    out->owner = calloc(units->n + 1, sizeof(*out->owner));
    out->load = calloc(units->machines, sizeof(*out->load));
    rc = problem_init(&p, units, o);
    if (!out->owner || !out->load) rc = -ENOMEM;
    if (rc == 0) rc = algorithm->place(&p, out->owner);
    if (rc == 0) {
        count_loads(&p, out);
    } else {
        drps_placement_destroy(out);
        drps_err_set(err, rc, "no memory to place %zu units on %u machines", units->n,
                     units->machines);
    }
    free(p.total);
    return rc;
}

void drps_placement_destroy(struct drps_placement *p)
{
    free(p->owner);
    free(p->load);
    *p = (struct drps_placement){0};
}

double drps_placement_imbalance(const struct drps_placement *p)
{
    return p->average_s > 0 ? p->max_s / p->average_s : 1;
}
