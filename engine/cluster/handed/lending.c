/* Records of lent.rec, checked against the unions of their rounds. */
#include "engine/cluster/handed/drps_lending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/handed/records.h"

struct drps_lending {
    const struct drps_plan_ranks *ranks;
    struct handed_records records;
    uint32_t *room; /* own: [2 max_round_uses] */
};

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for rows that are lent");
}

int drps_lending_open(const struct drps_lending_job *job, struct drps_lending **lending_out,
                      struct drps_err *err)
{
    *lending_out = NULL;
    struct drps_lending *l = calloc(1, sizeof(*l));
    if (!l) return no_memory(err);
    l->ranks = &job->plan->info.ranks;
    l->room = drps_array_new(2 * l->ranks->max_round_uses, sizeof(*l->room));
    int rc = l->room ? handed_records_open(&l->records, job->plan, DRPS_FILE_LENT, DRPS_KIND_LENT,
                                           job->epochs, job->is_over, err)
                     : no_memory(err);
    if (rc < 0) {
        drps_lending_close(l);
        return rc;
    }
    *lending_out = l;
    return 0;
}

void drps_lending_close(struct drps_lending *l)
{
    if (!l) return;
    handed_records_close(&l->records);
    free(l->room);
    free(l);
}

int drps_lent_allocate(struct drps_lent *lent, const struct drps_plan_info *info,
                       struct drps_err *err)
{
    const uint32_t ranks = info->ranks.count;
    *lent = (struct drps_lent){
        .use = drps_array_new(info->ranks.max_round_uses, sizeof(*lent->use)),
        .away = drps_array_new(info->ranks.max_round_rows, sizeof(*lent->away)),
        .given = drps_array_new(ranks, sizeof(*lent->given)),
        .returned = drps_array_new(ranks, sizeof(*lent->returned)),
        .plain = drps_array_new(ranks, sizeof(*lent->plain)),
    };
    return lent->use && lent->away && lent->given && lent->returned && lent->plain ? 0
                                                                                   : no_memory(err);
}

void drps_lent_free(struct drps_lent *lent)
{
    free(lent->use);
    free(lent->away);
    free(lent->given);
    free(lent->returned);
    free(lent->plain);
    *lent = (struct drps_lent){.use = NULL};
}

/* Count what is between the server and one worker. */
static void count_worker(const struct drps_feed_union *u, struct drps_lent *lent, uint32_t w)
{
    lent->given[w] = lent->returned[w] = lent->plain[w] = 0;
    for (size_t i = u->part[w]; i < u->part[w + 1]; i++) {
        lent->plain[w] += !lent->use[i];
        lent->given[w] += (lent->use[i] & DRPS_LENT_GIVEN) != 0;
        lent->returned[w] += (lent->use[i] & DRPS_LENT_RETURNED) != 0;
        if (lent->use[i]) lent->away[u->positions[i]] = 1;
    }
}

/* A row that a worker has is used by nobody else, and not by the server's own rank. */
static int check(const struct drps_lending *l, const struct drps_feed_union *u,
                 const struct drps_lent *lent, struct drps_err *err)
{
    size_t uses = 0, away = 0;
    for (size_t i = 0; i < u->part[l->ranks->count]; i++)
        uses += lent->away[u->positions[i]];
    for (size_t i = 0; i < u->n; i++)
        away += lent->away[i];
    const uint32_t own = l->ranks->rank;
    if (uses == away && lent->plain[own] == u->part[own + 1] - u->part[own]) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "a row that a worker has is used by another");
}

int drps_lending_next(struct drps_lending *l, const struct drps_feed_union *u,
                      struct drps_lent *lent, struct drps_err *err)
{
    const struct drps_lent_rows rows = {lent->use, l->room, (uint32_t)u->part[l->ranks->count]};
    const void *record;
    size_t bytes;
    int rc = handed_records_next(&l->records, &record, &bytes, err);
    if (rc == 0) rc = drps_lent_decode(record, bytes, &rows, err);
    if (rc < 0) return rc;
    memset(lent->away, 0, u->n);
    for (uint32_t w = 0; w < l->ranks->count; w++)
        count_worker(u, lent, w);
    lent->is_of_round = 1;
    return check(l, u, lent, err);
}
