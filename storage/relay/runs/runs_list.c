/* Runs in order of age, and what each of them needs next. */
#include <string.h>

#include "storage/relay/runs/runs_internal.h"

void drps_run_init(struct drps_run *run)
{
    *run = (struct drps_run){.list = {DRPS_NO_CHUNK, DRPS_NO_CHUNK},
                             .chunk = DRPS_NO_CHUNK,
                             .first = DRPS_RUNS_NONE,
                             .last = DRPS_RUNS_NONE};
}

uint32_t drps_run_next_to_ask(const struct drps_runs *r, const struct drps_run *run)
{
    return run->last == DRPS_RUNS_NONE ? run->chunk : r->map.next[r->reads[run->last].chunk];
}

void drps_runs_note(struct drps_runs *r, uint32_t i)
{
    const struct drps_run *run = &r->runs[i];
    const uint32_t next = drps_run_next_to_ask(r, run);
    r->needs[i] = run->chunk == DRPS_NO_CHUNK && !run->left ? DRPS_RUNS_NEVER : run->window;
    r->asks[i] = next == DRPS_NO_CHUNK ? DRPS_RUNS_NEVER : r->map.needs[next];
}

/* Elements from i on move by one place, up or down. */
static void move(struct drps_runs *r, uint32_t from, uint32_t to)
{
    const size_t n = r->n - (from < to ? from : to) - (from > to);
    memmove(&r->runs[to], &r->runs[from], n * sizeof(*r->runs));
    memmove(&r->needs[to], &r->needs[from], n * sizeof(*r->needs));
    memmove(&r->asks[to], &r->asks[from], n * sizeof(*r->asks));
}

void drps_runs_insert(struct drps_runs *r, uint32_t i, const struct drps_run *run)
{
    move(r, i, i + 1);
    r->runs[i] = *run;
    r->n++;
    r->turn = 0;
    drps_runs_note(r, i);
}

int drps_runs_leave_if_ended(struct drps_runs *r, uint32_t i)
{
    struct drps_runs_merging *m = &r->merging;
    if (!i || r->needs[i] != DRPS_RUNS_NEVER || i == m->at) return 0;
    move(r, i + 1, i);
    r->n--;
    if (i < m->at)
        m->at--;
    else if (i <= m->at + m->n)
        m->n--;
    return 1;
}

int drps_run_enter(const struct drps_runs *r, struct drps_run *run, uint32_t chunk,
                   struct drps_err *err)
{
    const uint64_t need = r->map.needs[chunk];
    run->chunk = chunk;
    run->at = 0;
    if (need < run->window || (run->left && need != run->window))
        return drps_runs_wrong_chunk(r, chunk, err);
    run->window = need;
    return 0;
}

int drps_runs_wrong_chunk(const struct drps_runs *r, uint32_t chunk, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: the %u bytes at byte %llu are not those that were written there: "
                        "check the disk and the memory of this machine, then train again",
                        r->config.path, r->map.bytes[chunk],
                        (unsigned long long)chunk * r->config.chunk_bytes);
}
