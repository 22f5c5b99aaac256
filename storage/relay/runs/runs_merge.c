/* Merging: some neighbouring runs become one in their place, a section after the other, window by
 * window and of each the oldest run's first. */
#include "storage/relay/runs/runs_internal.h"

enum { MOST = 16 }; /* runs at a time */

/* Runs first .. first + n - 1 are to be merged. */
struct range {
    uint32_t first, n;
};

/* The level with the most runs; levels fall from the oldest run to the youngest one. */
static struct range find_level(const struct drps_runs *r)
{
    struct range best = {0};
    for (uint32_t i = 1, n; i < r->n; i += n) {
        for (n = 1; i + n < r->n && r->runs[i + n].level == r->runs[i].level;)
            n++;
        if (n > best.n) best = (struct range){i, n};
    }
    return best;
}

/* The older half of a level. Where no level has two runs, the two youngest. */
static struct range choose(const struct drps_runs *r)
{
    const struct range level = find_level(r);
    if (level.n < 2) return (struct range){r->n - 2, 2};
    const uint32_t half = level.n / 2 < 2 ? 2 : level.n / 2;
    return (struct range){level.first, half < MOST ? half : MOST};
}

static uint32_t level_of(const struct drps_runs *r, const struct range *m)
{
    const uint32_t oldest = r->runs[m->first].level;
    return r->runs[m->first + m->n - 1].level == oldest ? oldest + 1 : oldest;
}

/* The run whose next section comes first; of several the oldest one. */
static uint32_t next_of(const uint64_t *windows, const struct range *m)
{
    uint32_t best = m->first;
    for (uint32_t i = m->first + 1; i < m->first + m->n; i++)
        if (windows[i] < windows[best]) best = i;
    return best;
}

/* Ask for the chunks that are needed first, one of each run at least. */
static void ask_ahead(struct drps_runs *r, const struct range *m)
{
    for (uint32_t i = m->first; i < m->first + m->n; i++)
        if (r->runs[i].first == DRPS_RUNS_NONE && drps_runs_can_ask(r, i, 0)) drps_runs_ask(r, i);
    while (r->extra < r->config.ahead) {
        const uint32_t i = next_of(r->asks, m);
        if (!drps_runs_can_ask(r, i, r->config.ahead)) return;
        drps_runs_ask(r, i);
    }
}

/* The rest of the section that run i is at goes to the new run. */
static int move_section(struct drps_runs *r, uint32_t i, int *left_out, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    int rc = run->left ? 0 : drps_runs_open_section(r, i, err);
    if (rc < 0) return rc;
    uint64_t bytes = run->left * r->config.row_bytes;
    rc = drps_runs_put_header(r, &r->writer, run->window, run->left, err);
    run->left = 0;
    r->merged_bytes += bytes;
    while (bytes && rc == 0) {
        const char *at;
        size_t now;
        rc = drps_runs_peek(r, i, &at, &now, err);
        if (now > bytes) now = (size_t)bytes;
        if (rc == 0) rc = drps_runs_put_bytes(r, &r->writer, at, now, err);
        if (rc == 0) rc = drps_runs_skip(r, i, now, err);
        bytes -= now;
    }
    return rc == 0 ? drps_runs_end_section(r, i, left_out, err) : rc;
}

int drps_runs_merge(struct drps_runs *r, struct drps_err *err)
{
    struct range m = choose(r);
    int rc = 0;
    drps_runs_begin_out(r, level_of(r, &m));
    while (m.n && rc == 0) {
        int left = 0;
        ask_ahead(r, &m);
        rc = move_section(r, next_of(r->needs, &m), &left, err);
        m.n -= (uint32_t)left;
    }
    return rc == 0 ? drps_runs_end_out(r, m.first, err) : rc;
}

int drps_runs_begin(struct drps_runs *r, struct drps_err *err)
{
    int rc = 0;
    while (rc == 0 && drps_runs_live(r) == r->config.runs)
        rc = drps_runs_merge(r, err);
    drps_runs_begin_out(r, 0);
    return rc;
}
