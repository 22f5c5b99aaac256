/* One rank's records, in a pass over all training batches. Evaluation has records of no rows. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_handed.h"
#include "index/ranks/handed/handing.h"

struct writing {
    struct handing *h;
    struct handing_side worker, server;
    struct handing_worker *rows; /* own */
};

static int open_side(struct writing *w, struct handing_side *side, const char *to, const char *name,
                     uint32_t kind, struct drps_err *err)
{
    char *path = drps_path_join(to, name);
    int rc = path ? drps_recwriter_open(w->h->split->io, path, kind, &side->out, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
    free(path);
    return rc;
}

static int write_round(struct writing *w, uint64_t round, struct drps_err *err)
{
    const struct handing_fate *fates;
    int rc = handing_read(w->h, round, err);
    if (rc == 0) rc = handing_fates(w->h, round, &fates, err);
    if (rc < 0) return rc;
    w->worker.fates = w->server.fates = fates;
    rc = handing_worker_round(w->rows, err);
    return rc == 0 ? handing_server_round(&w->server, err) : rc;
}

/* Rounds of no rows: those of evaluation. */
static int write_empty(struct writing *w, struct drps_err *err)
{
    static const struct handing_fate none[1];
    handing_forget(w->h);
    w->worker.fates = w->server.fates = none;
    int rc = handing_worker_round(w->rows, err);
    return rc == 0 ? handing_server_round(&w->server, err) : rc;
}

static int write_rounds(struct writing *w, struct drps_err *err)
{
    const struct split_job *split = w->h->split;
    const uint64_t evals = split_rounds(split->eval_batches, split->ranks->workers);
    int rc = 0;
    for (uint64_t t = 0; t < w->h->rounds && rc == 0; t++)
        rc = write_round(w, t, err);
    for (uint64_t t = 0; t < evals && rc == 0; t++)
        rc = write_empty(w, err);
    if (rc == 0) rc = drps_recwriter_finish(w->worker.out, err);
    return rc == 0 ? drps_recwriter_finish(w->server.out, err) : rc;
}

int handing_write(struct handing *h, uint32_t rank, const char *to, struct drps_plan_handed *out,
                  struct drps_err *err)
{
    struct writing w = {.h = h,
                        .worker = {.h = h, .rank = rank, .counts = out},
                        .server = {.h = h, .rank = rank, .counts = out}};
    *out = (struct drps_plan_handed){.states = h->job->states};
    int rc = open_side(&w, &w.worker, to, DRPS_FILE_HANDED, DRPS_KIND_HANDED, err);
    if (rc == 0) rc = open_side(&w, &w.server, to, DRPS_FILE_LENT, DRPS_KIND_LENT, err);
    if (rc == 0) rc = handing_worker_new(&w.worker, &w.rows, err);
    if (rc == 0) rc = write_rounds(&w, err);
    if (!out->slots) out->slots = 1; /* rows are handed on in this plan, if not here */
    handing_worker_free(w.rows);
    drps_recwriter_close(w.worker.out);
    drps_recwriter_close(w.server.out);
    free(w.worker.packed);
    free(w.server.packed);
    return rc;
}
