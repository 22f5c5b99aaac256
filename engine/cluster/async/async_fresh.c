/*
 * Rows that nobody has trained yet, in the first epoch of a run that begins anew: a server leaves
 * them out of what it sends to other ranks, and the worker makes them
 * (engine/cluster/drps_fresh.h). For each use of a row by an open step the server keeps the row's
 * number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/async/parts.h"

struct async_fresh {
    const struct async_job *job;
    struct drps_fresh *rows; /* own */
    uint64_t span;           /* steps that are open at a time */
    uint32_t *ids;           /* own: [span][max_round_uses] row numbers, in the order of the uses */
    size_t *part;            /* own: [span][ranks + 1] the uses of share i: ids[part[i]] .. */
    uint32_t *listed;        /* own: [max_round_rows] of the step that is being opened */
    uint32_t *sent_ids;      /* own: [part rows] of a message, */
    uint32_t *sent;          /* own: [part rows] and their frames */
};

/* ---- Which rows an open step uses ---- */

static uint32_t *ids_of(const struct async_fresh *f, uint64_t step)
{
    return f->ids + step % f->span * f->job->o.plan->info.ranks.max_round_uses;
}

static size_t *parts_of(const struct async_fresh *f, uint64_t step)
{
    return f->part + step % f->span * (f->job->ranks + 1);
}

int drps_async_fresh_open(struct async_fresh *f, uint64_t step, const struct drps_feed_union *u,
                          struct drps_err *err)
{
    if (!f) return 0;
    const size_t uses = u->part[f->job->ranks];
    uint32_t *ids = ids_of(f, step);
    int rc = drps_fresh_list(f->rows, step, u, f->listed, err);
    for (size_t i = 0; i < uses && rc == 0; i++)
        ids[i] = f->listed[u->positions[i]];
    memcpy(parts_of(f, step), u->part, (f->job->ranks + 1) * sizeof(*f->part));
    return rc;
}

void drps_async_fresh_step(struct async_fresh *f, uint64_t step, uint32_t share)
{
    if (!f) return;
    const size_t *part = parts_of(f, step) + share;
    drps_fresh_step(f->rows, ids_of(f, step) + part[0], part[1] - part[0]);
}

/* ---- Messages ---- */

size_t drps_async_fresh_write(struct async_fresh *f, uint64_t step, uint32_t share,
                              const uint64_t *marks, struct drps_rows *rows, void *out)
{
    const size_t row_bytes = f ? f->job->dim * sizeof(float) : 0;
    size_t n = 0;
    if (!f) return 0;
    const uint32_t *ids = ids_of(f, step) + parts_of(f, step)[share];
    for (size_t i = 0; i < rows->n; i++) {
        if (marks && !(marks[i / 64] >> i % 64 & 1)) continue;
        f->sent[n] = rows->index[i];
        f->sent_ids[n++] = ids[i];
    }
    const size_t head = drps_fresh_pack(f->rows, f->sent_ids, f->sent, &n, row_bytes, out);
    if (!head) return 0;
    rows->index = f->sent;
    rows->n = n;
    return head;
}

/* ---- Opening ---- */

int drps_async_fresh_new(const struct async_job *job, uint64_t span, struct async_fresh **out,
                         struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &job->o.plan->info.ranks;
    const size_t most = (size_t)drps_async_part_rows(&job->o.plan->info);
    *out = NULL;
    if (!job->o.fresh || !async_serves(job)) return 0;
    struct async_fresh *f = *out = calloc(1, sizeof(*f));
    if (!f) return drps_err_set(err, -ENOMEM, "no memory for rows that are not trained yet");
    f->job = job;
    f->span = span;
    f->ids = drps_array_new((size_t)(span * ranks->max_round_uses), sizeof(*f->ids));
    f->part = drps_array_new((size_t)span * (job->ranks + 1), sizeof(*f->part));
    f->listed = drps_array_new((size_t)ranks->max_round_rows, sizeof(*f->listed));
    f->sent_ids = drps_array_new(most, sizeof(*f->sent_ids));
    f->sent = drps_array_new(most, sizeof(*f->sent));
    if (!f->ids || !f->part || !f->listed || !f->sent_ids || !f->sent)
        return drps_err_set(err, -ENOMEM, "no memory for the row numbers of %llu steps",
                            (unsigned long long)span);
    return drps_fresh_open(job->o.plan, job->o.server, job->o.slots, &f->rows, err);
}

void drps_async_fresh_free(struct async_fresh *f)
{
    if (!f) return;
    drps_fresh_close(f->rows);
    free(f->ids);
    free(f->part);
    free(f->listed);
    free(f->sent_ids);
    free(f->sent);
    free(f);
}
