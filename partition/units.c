/*
 * Units from batches: blocks are cut at hot rows, then every batch is counted once.
 *
 * Machines come one after the other, so one counter a unit is enough: when a machine's batches are
 * through, its counters become touches (unit, machine, count) and return to 0.
 */
#include "partition/drps_partition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "partition/order.h"

struct unit_touch {
    uint32_t unit;
    struct drps_touch touch;
};

struct drps_units_maker {
    struct drps_unit_costs costs;
    uint32_t machines, machine; /* machine: whose batches are being counted */
    uint32_t rows;
    size_t n;
    uint32_t *first;    /* own [n + 1]; moves to the units */
    uint8_t *hot;       /* own [n]; moves to the units */
    uint32_t *unit;     /* own [rows]: the unit of a row */
    uint32_t *count;    /* own [n]: touches by `machine` so far */
    uint64_t *batch;    /* own [n]: the last batch that touched it, from 1 */
    uint32_t *access_n; /* own [n]: batches that touch it, AccNum */
    uint64_t batches;
    struct unit_touch *touches; /* own */
    size_t touches_n, touches_cap;
};

void drps_units_maker_free(struct drps_units_maker *m)
{
    if (!m) return;
    free(m->first);
    free(m->hot);
    free(m->unit);
    free(m->count);
    free(m->batch);
    free(m->access_n);
    free(m->touches);
    free(m);
}

void drps_units_destroy(struct drps_units *u)
{
    free(u->first);
    free(u->bytes);
    free(u->io_s);
    free(u->hot);
    free(u->starts);
    free(u->touches);
    *u = (struct drps_units){0};
}

/* The number of uses that a row must exceed to be hot: so many rows do that they are at most
 * `share` of all. */
static int hot_threshold(const uint32_t *uses, uint32_t rows, double share, uint32_t *above_out)
{
    struct keyed *pairs = drps_array_new(rows, 2 * sizeof(*pairs));
    if (!pairs) return -ENOMEM;
    for (uint32_t r = 0; r < rows; r++)
        pairs[r] = (struct keyed){.key = uses[r], .item = r};
    drps_keyed_sort(pairs, pairs + rows, rows);
    uint32_t most = (uint32_t)(share * rows);
    *above_out = most >= rows ? 0 : (uint32_t)pairs[rows - 1 - most].key;
    free(pairs);
    return 0;
}

/* Cut blocks at hot rows. Sets first, hot, unit and n. */
static void cut_units(struct drps_units_maker *m, const uint32_t *first, size_t blocks,
                      const uint32_t *uses, uint32_t above)
{
    m->n = 0;
    for (size_t b = 0; b < blocks; b++) {
        for (uint32_t r = first[b]; r < first[b + 1]; r++) {
            uint8_t hot = uses[r] > above;
            if (r == first[b] || hot || m->hot[m->n - 1]) {
                m->first[m->n] = r;
                m->hot[m->n++] = hot;
            }
            m->unit[r] = (uint32_t)(m->n - 1);
        }
    }
    m->first[m->n] = m->rows;
}

static int check_new(const uint32_t *first, size_t blocks, double hot_share,
                     const struct drps_unit_costs *c, uint32_t machines, struct drps_err *err)
{
    if (first[0] != 0)
        return drps_err_set(err, -EINVAL, "the first block begins at row %u", first[0]);
    for (size_t b = 0; b < blocks; b++)
        if (first[b + 1] <= first[b])
            return drps_err_set(err, -EINVAL, "block %zu: rows %u to %u are no run of rows", b,
                                first[b], first[b + 1]);
    if (!(hot_share >= 0 && hot_share <= 1))
        return drps_err_set(err, -EINVAL, "the share of hot rows is %g, not 0 to 1", hot_share);
    if (machines < 1 || machines > DRPS_MACHINES_MAX)
        return drps_err_set(err, -EINVAL, "%u machines; 1 to %d are possible", machines,
                            DRPS_MACHINES_MAX);
    if (c->row_bytes == 0 || !(c->seek_s >= 0) || !(c->byte_s >= 0) || !(c->row_net_s >= 0) ||
        !isfinite(c->seek_s + c->byte_s + c->row_net_s))
        return drps_err_set(err, -EINVAL,
                            "costs are rows of 1 byte or more and times of 0 or more");
    return 0;
}

int drps_units_new(const uint32_t *first, size_t blocks, const uint32_t *uses, double hot_share,
                   const struct drps_unit_costs *costs, uint32_t machines,
                   struct drps_units_maker **maker_out, struct drps_err *err)
{
    uint32_t above;
    *maker_out = NULL;
    int rc = check_new(first, blocks, hot_share, costs, machines, err);
    if (rc < 0) return rc;
    struct drps_units_maker *m = calloc(1, sizeof(*m));
    if (!m) return drps_err_set(err, -ENOMEM, "no memory to count units");
    *m = (struct drps_units_maker){.costs = *costs, .machines = machines, .rows = first[blocks]};
    m->first = drps_array_new((size_t)m->rows + 1, sizeof(*m->first));
    m->hot = drps_array_new(m->rows, sizeof(*m->hot));
    m->unit = drps_array_new(m->rows, sizeof(*m->unit));
    if (!m->first || !m->hot || !m->unit || hot_threshold(uses, m->rows, hot_share, &above) < 0) {
        drps_units_maker_free(m);
        return drps_err_set(err, -ENOMEM, "no memory for the units of %u rows", first[blocks]);
    }
    cut_units(m, first, blocks, uses, above);
    m->count = calloc(m->n + 1, sizeof(*m->count));
    m->batch = calloc(m->n + 1, sizeof(*m->batch));
    m->access_n = calloc(m->n + 1, sizeof(*m->access_n));
    if (!m->count || !m->batch || !m->access_n) {
        rc = drps_err_set(err, -ENOMEM, "no memory to count %zu units", m->n);
        drps_units_maker_free(m);
        return rc;
    }
    *maker_out = m;
    return 0;
}

/* All batches of m->machine are counted: its counters become touches. */
static int close_machine(struct drps_units_maker *m, struct drps_err *err)
{
    for (size_t u = 0; u < m->n; u++) {
        if (m->count[u] == 0) continue;
        if (drps_array_reserve(&m->touches, &m->touches_cap, m->touches_n + 1,
                               sizeof(*m->touches)) < 0)
            return drps_err_set(err, -ENOMEM, "no memory for %zu touches", m->touches_n + 1);
        m->touches[m->touches_n++] = (struct unit_touch){(uint32_t)u, {m->machine, m->count[u]}};
        m->count[u] = 0;
    }
    return 0;
}

int drps_units_add(void *maker, uint32_t machine, const uint32_t *rows, size_t n,
                   struct drps_err *err)
{
    struct drps_units_maker *m = maker;
    if (machine < m->machine || machine >= m->machines)
        return drps_err_set(err, -EINVAL, "a batch of machine %u after one of %u, of %u machines",
                            machine, m->machine, m->machines);
    int rc = machine > m->machine ? close_machine(m, err) : 0;
    if (rc < 0) return rc;
    m->machine = machine;
    m->batches++;
    for (size_t i = 0; i < n; i++) {
        if (rows[i] >= m->rows)
            return drps_err_set(err, -EINVAL, "a batch touches row %u of %u", rows[i], m->rows);
        uint32_t u = m->unit[rows[i]];
        m->count[u]++;
        if (m->batch[u] != m->batches) m->access_n[u]++;
        m->batch[u] = m->batches;
    }
    return 0;
}

/* touches grouped by unit; they come by rising machine, and stay so within a unit. */
static void group_touches(const struct drps_units_maker *m, struct drps_units *u)
{
    for (size_t t = 0; t < m->touches_n; t++)
        u->starts[m->touches[t].unit + 1]++;
    for (size_t p = 0; p < u->n; p++)
        u->starts[p + 1] += u->starts[p];
    for (size_t t = 0; t < m->touches_n; t++)
        u->touches[u->starts[m->touches[t].unit]++] = m->touches[t].touch;
    for (size_t p = u->n; p > 0; p--) /* each start had moved to its end */
        u->starts[p] = u->starts[p - 1];
    u->starts[0] = 0;
}

int drps_units_finish(struct drps_units_maker *m, struct drps_units *u, struct drps_err *err)
{
    *u = (struct drps_units){0};
    int rc = close_machine(m, err);
    if (rc < 0) return rc;
    *u = (struct drps_units){.n = m->n,
                             .machines = m->machines,
                             .row_net_s = m->costs.row_net_s,
                             .first = m->first,
                             .hot = m->hot,
                             .bytes = drps_array_new(m->n, sizeof(*u->bytes)),
                             .io_s = drps_array_new(m->n, sizeof(*u->io_s)),
                             .starts = calloc(m->n + 1, sizeof(*u->starts)),
                             .touches = drps_array_new(m->touches_n, sizeof(*u->touches))};
    m->first = NULL; /* moved */
    m->hot = NULL;
    if (!u->bytes || !u->io_s || !u->starts || !u->touches) {
        drps_units_destroy(u);
        return drps_err_set(err, -ENOMEM, "no memory for %zu units", m->n);
    }
    for (size_t p = 0; p < u->n; p++) {
        u->bytes[p] = (u->first[p + 1] - u->first[p]) * m->costs.row_bytes;
        const double seek_s =
            m->costs.seek_s / (u->hot[p] && m->costs.hot_block ? m->costs.hot_block : 1);
        u->io_s[p] = m->access_n[p] * (seek_s + (double)u->bytes[p] * m->costs.byte_s);
    }
    group_touches(m, u);
    return 0;
}

uint64_t drps_units_touches(const struct drps_units *u)
{
    uint64_t sum = 0;
    for (size_t t = 0; t < u->starts[u->n]; t++)
        sum += u->touches[t].count;
    return sum;
}

uint64_t drps_units_affinity_bound(const struct drps_units *u)
{
    uint64_t best = 0;
    for (size_t p = 0; p < u->n; p++) {
        uint32_t most = 0;
        for (size_t t = u->starts[p]; t < u->starts[p + 1]; t++)
            if (u->touches[t].count > most) most = u->touches[t].count;
        best += most;
    }
    return drps_units_touches(u) - best;
}
