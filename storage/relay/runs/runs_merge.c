/* Merging: some neighbouring runs become one in their place, a section after the other, window by
 * window and of each the oldest run's first. Meanwhile rows are taken from all of them. */
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

/* ---- Some sections ---- */

/* The input whose next section comes first; of several the oldest one. */
static uint32_t next_of(const struct drps_runs *r, const uint64_t *windows)
{
    const struct drps_runs_merging *m = &r->merging;
    uint32_t best = m->at + 1;
    for (uint32_t i = best + 1; i <= m->at + m->n; i++)
        if (windows[i] < windows[best]) best = i;
    return best;
}

/* Ask for the chunks that are needed first, one of each run at least. */
static void ask_ahead(struct drps_runs *r)
{
    const struct drps_runs_merging *m = &r->merging;
    for (uint32_t i = m->at + 1; i <= m->at + m->n; i++)
        if (r->runs[i].first == DRPS_RUNS_NONE && drps_runs_can_ask(r, i)) drps_runs_ask(r, i);
    for (uint32_t i = next_of(r, r->asks); drps_runs_can_ask(r, i); i = next_of(r, r->asks))
        drps_runs_ask(r, i);
}

/* The rest of the section that run i is at is merged. */
static int move_section(struct drps_runs *r, uint32_t i, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    int gone, rc = run->left ? 0 : drps_runs_open_section(r, i, err);
    if (rc < 0) return rc;
    uint64_t bytes = run->left * r->config.row_bytes;
    rc = drps_runs_put_header(r, &r->merger, run->window, run->left, err);
    run->left = 0;
    r->merged_bytes += bytes;
    while (bytes && rc == 0) {
        const char *at;
        size_t now;
        rc = drps_runs_peek(r, i, &at, &now, err);
        if (now > bytes) now = (size_t)bytes;
        if (rc == 0) rc = drps_runs_put_bytes(r, &r->merger, at, now, err);
        if (rc == 0) rc = drps_runs_skip(r, i, now, err);
        bytes -= now;
    }
    return rc == 0 ? drps_runs_end_section(r, i, &gone, err) : rc;
}

/* Whether the disk still reads what run i has left of its section, or the header of its next one.
 * Where there is no memory to ask for all of a section, merging has to wait for the rest. */
static int is_coming(const struct drps_runs *r, uint32_t i)
{
    const struct drps_run *run = &r->runs[i];
    uint64_t end = run->at + (run->left ? run->left * r->config.row_bytes : 1);
    int32_t b = run->first;
    if (b == DRPS_RUNS_NONE) return 1;
    for (; b != DRPS_RUNS_NONE && r->reads[b].there; b = r->reads[b].next) {
        const uint32_t bytes = r->map.bytes[r->reads[b].chunk];
        if (end <= bytes) return 0;
        end -= bytes;
    }
    return b != DRPS_RUNS_NONE;
}

/* Merge so many bytes, or all; where it may not wait for the disk, no more than was read. */
static int move(struct drps_runs *r, uint64_t bytes, int may_wait, struct drps_err *err)
{
    const uint64_t before = r->merged_bytes;
    int rc = 0;
    while (r->merging.n && r->merged_bytes - before < bytes && rc == 0) {
        ask_ahead(r);
        const uint32_t i = next_of(r, r->needs);
        if (!may_wait && is_coming(r, i)) break;
        rc = move_section(r, i, err);
    }
    r->turn = 0;
    return rc == 0 && !r->merging.n ? drps_runs_stop_merging(r, err) : rc;
}

/* ---- Beginning and ending ---- */

static void begin(struct drps_runs *r)
{
    const struct range m = choose(r);
    struct drps_run run;
    drps_run_init(&run);
    run.level = level_of(r, &m);
    if (run.level > DRPS_RUNS_LEVELS_MOST) run.level = DRPS_RUNS_LEVELS_MOST;
    r->merging = (struct drps_runs_merging){.at = m.first, .n = m.n};
    r->merger = (struct drps_runs_writer){.tail = DRPS_RUNS_NONE};
    drps_runs_insert(r, m.first, &run);
    drps_runs_count_extra(r);
    const uint64_t runs =
        r->config.runs > drps_runs_live(r) ? r->config.runs - drps_runs_live(r) : 0;
    r->merging.room = runs * r->config.run_bytes;
}

int drps_runs_stop_merging(struct drps_runs *r, struct drps_err *err)
{
    const uint32_t at = r->merging.at;
    if (!at) return 0;
    int rc = drps_runs_end_writer(r, &r->merger, err);
    if (rc < 0) return rc;
    r->merging = (struct drps_runs_merging){0};
    drps_runs_count_extra(r);
    (void)drps_runs_leave_if_ended(r, at);
    r->turn = 0;
    return 0;
}

int drps_runs_merge(struct drps_runs *r, struct drps_err *err)
{
    if (!r->merging.at) begin(r);
    return move(r, UINT64_MAX, 1, err);
}

int drps_runs_begin(struct drps_runs *r, struct drps_err *err)
{
    int rc = 0;
    while (rc == 0 && drps_runs_live(r) >= r->config.runs)
        rc = drps_runs_merge(r, err);
    drps_runs_begin_out(r);
    return rc;
}

/* Bytes to merge for so many of a run that were written: of what is left as large a part as they
 * are of what may be written until all is to be merged. */
static uint64_t owed(struct drps_runs *r, uint64_t added)
{
    struct drps_runs_merging *m = &r->merging;
    const uint64_t room = m->room;
    uint64_t all = 0;
    for (uint32_t i = m->at + 1; i <= m->at + m->n; i++)
        all += r->runs[i].bytes - r->runs[i].at;
    m->room -= added < room ? added : room;
    return m->room ? (uint64_t)((double)all * ((double)added / (double)room)) : UINT64_MAX;
}

/* Merge what is owed and was read; the rest stays owed. */
static int move_owed(struct drps_runs *r, struct drps_err *err)
{
    const uint64_t before = r->merged_bytes, owed = r->merging.owed;
    int rc = drps_runs_reap(r, 0, err);
    if (rc == 0) rc = move(r, owed, 0, err);
    const uint64_t moved = r->merged_bytes - before;
    r->merging.owed = r->merging.at && moved < owed ? owed - moved : 0;
    return rc == 0 ? drps_runs_submit(r, err) : rc;
}

int drps_runs_merge_some(struct drps_runs *r, struct drps_err *err)
{
    const uint32_t live = drps_runs_live(r);
    const uint64_t added = r->added;
    r->added = 0;
    if (!r->merging.at) {
        /* What is merged to takes a place, and so may a run that is being written now. */
        if (live + r->config.spare < r->config.runs || live + 2 > r->config.runs) return 0;
        begin(r);
    }
    const uint64_t more = owed(r, added);
    r->merging.owed += more < UINT64_MAX - r->merging.owed ? more : UINT64_MAX - r->merging.owed;
    return move_owed(r, err);
}
