/* The plan's rows of each worker at each server become bytes; all ranks' rows of the table are
 * gathered. */
#include "engine/cluster/drps_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/drps_circulation.h"
#include "engine/cluster/drps_rounds.h"
#include "engine/cluster/handed/drps_handing.h"
#include "index/plan/drps_round.h"

/* All ranks' rows go in one gather. */
_Static_assert(3 * DRPS_TRAIN_LINKS_MOST * DRPS_TRAIN_LINKS_MOST * sizeof(uint64_t) <=
                   DRPS_NET_GROUP_BYTES,
               "a table of links fits a gather");

/* ---- The forecast ---- */

/* Ranges go to the rank before. */
static void forecast_ranges(const struct drps_plan_info *info, uint64_t row_bytes, uint64_t epochs,
                            struct drps_links_mine *mine)
{
    const struct drps_plan_ranks *r = &info->ranks;
    struct drps_circulation_stats all;
    drps_circulation_forecast(info, row_bytes, epochs, &all);
    mine->to[(r->rank + r->workers - 1) % r->workers] = all.sent_bytes;
}

/* Correct a worker's bytes to and from each rank by the rows that it has itself. */
static int forecast_handed(const struct drps_plan *part, uint64_t there, uint64_t back,
                           const struct drps_links_job *job, struct drps_links_mine *mine,
                           struct drps_err *err)
{
    struct drps_handing_link *links = calloc(part->info.ranks.count, sizeof(*links));
    if (!links) return drps_err_set(err, -ENOMEM, "no memory for the bytes between ranks");
    int rc = drps_handing_links(part, links, err);
    for (uint32_t s = 0; s < part->info.ranks.count && rc == 0; s++) {
        const struct drps_handing_link *l = &links[s];
        mine->to[s] += job->epochs * ((l->returned + l->handed) * job->row_bytes - l->used * back);
        mine->from[s] += job->epochs * (l->taken * job->row_bytes - l->used * there);
    }
    free(links);
    return rc;
}

int drps_links_forecast(const struct drps_plan *part, const struct drps_links_job *job,
                        struct drps_links_mine *mine, struct drps_err *err)
{
    const uint64_t epochs = job->epochs;
    const struct drps_plan_info *info = &part->info;
    struct drps_round_rows rows = {0};
    if (drps_plan_circulates(info)) {
        forecast_ranges(info, job->row_bytes, epochs, mine);
        return 0;
    }
    int rc = drps_shares_sum(part, &rows, err);
    const uint64_t there = info->dim * sizeof(float);
    const uint64_t back = there + (job->touches ? sizeof(uint32_t) : 0);
    for (uint32_t s = 0; s < info->ranks.count && rc == 0; s++) {
        if (s == info->ranks.rank) continue;
        const uint64_t trained = job->exchanged ? 0 : rows.training[s];
        mine->to[s] = epochs * (job->exchanged ? job->exchanged[s] : trained * back);
        mine->from[s] = epochs * (trained + rows.evaluation[s]) * there;
    }
    struct drps_rounds_bytes sums = {0};
    drps_rounds_forecast_sums(info, epochs, &sums);
    mine->to[(info->ranks.rank + 1) % info->ranks.count] += sums.sent;
    return rc == 0 && job->hands_on ? forecast_handed(part, there, back, job, mine, err) : rc;
}

/* ---- The table ---- */

/* rows [count][3][count] become the two tables. */
static void put_together(const uint64_t *rows, uint32_t count, struct drps_train_links *out)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const uint64_t *of_i = rows + i * 3 * count, *of_k = rows + k * 3 * count;
            out->sent[i * count + k] = of_i[k];
            out->forecast[i * count + k] = of_i[count + k] + of_k[2 * count + i];
        }
}

int drps_links_gather(const struct drps_cluster *c, const struct drps_links_mine *mine,
                      struct drps_train_links *out, struct drps_err *err)
{
    const size_t count = c->count, bytes = count * sizeof(uint64_t);
    *out = (struct drps_train_links){0};
    if (count > DRPS_TRAIN_LINKS_MOST) return 0;
    uint64_t *row = malloc(3 * bytes), *rows = malloc(3 * bytes * count);
    out->sent = calloc(count, bytes);
    out->forecast = calloc(count, bytes);
    int rc = row && rows && out->sent && out->forecast
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory for the bytes between %u ranks", c->count);
    if (rc == 0) {
        memcpy(row, mine->sent, bytes);
        memcpy(row + count, mine->to, bytes);
        memcpy(row + 2 * count, mine->from, bytes);
        rc = drps_net_gather(c->net, row, 3 * bytes, rows, c->wait_ms, err);
    }
    if (rc == 0) put_together(rows, c->count, out);
    free(row);
    free(rows);
    return rc;
}
