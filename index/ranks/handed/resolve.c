/* A walk forwards, with the decisions of the walk backwards: who has which row when. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_handed.h"
#include "index/ranks/handed/handing.h"

struct resolving {
    struct handing *h;
    uint8_t *has;              /* own: [all] 1: a worker has the row */
    struct handing_fate *list; /* own: [n] */
    size_t cap;
};

static struct handing_fate fate_of(struct resolving *r, const struct handing_next *next,
                                   uint32_t rank, uint32_t row)
{
    struct handing_fate fate = {.bits = HANDING_HAS, .to = DRPS_HANDED_RETURNED};
    if (!(next->bits & HANDING_ALONE)) return (struct handing_fate){.bits = 0};
    if (!r->has[row] && !(next->bits & HANDING_TAKE)) return (struct handing_fate){.bits = 0};
    if (!r->has[row]) fate.bits |= HANDING_TAKEN;
    r->has[row] = (next->bits & HANDING_KEEP) != 0;
    if (r->has[row]) fate.to = next->rank == rank ? DRPS_HANDED_KEPT : next->rank;
    return fate;
}

static int resolve_round(struct resolving *r, uint64_t round, struct drps_err *err)
{
    struct handing *h = r->h;
    struct drps_piece piece;
    int rc = handing_read(h, round, err);
    if (rc == 0) rc = drps_steps_scratch_read(&h->next, h->rounds - 1 - round, 1, 1, &piece, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&r->list, &r->cap, h->n, sizeof(*r->list)))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    const struct handing_next *next = piece.data;
    for (uint32_t k = 0; k < h->split->ranks->count; k++)
        for (size_t i = h->part[k]; i < h->part[k + 1]; i++)
            r->list[i] = fate_of(r, &next[i], k, h->row[i]);
    const struct drps_piece fates = {r->list, h->n * sizeof(*r->list)};
    return drps_recwriter_add(h->fates.writer, &fates, 1, err);
}

int handing_resolve(struct handing *h, struct drps_err *err)
{
    struct resolving r = {.h = h, .has = calloc(h->all, sizeof(*r.has))};
    int rc = r.has ? drps_steps_scratch_begin(&h->fates, h->split->io, h->job->scratch,
                                              DRPS_FILE_HANDED_FATES_TMP, err)
                   : drps_err_set(err, -ENOMEM, "no memory for rows that workers have");
    for (uint64_t t = 0; t < h->rounds && rc == 0; t++)
        rc = resolve_round(&r, t, err);
    if (rc == 0) rc = drps_steps_scratch_turn(&h->fates, err);
    free(r.has);
    free(r.list);
    return rc;
}

int handing_fates(struct handing *h, uint64_t round, const struct handing_fate **out,
                  struct drps_err *err)
{
    struct drps_piece piece;
    int rc = drps_steps_scratch_read(&h->fates, round, 1, 1, &piece, err);
    *out = rc == 0 ? piece.data : NULL;
    return rc;
}
