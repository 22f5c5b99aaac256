/* Rows of an epoch between a worker and each other rank, added up from its records. */
#include <errno.h>
#include <stdlib.h>

#include "engine/cluster/handed/drps_handing.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_handed.h"
#include "index/plan/drps_steps.h"

enum { BUFFER_BYTES = 1 << 18 };

struct adding {
    const struct drps_plan_info *info;
    struct steps *shares, *records;
    uint32_t share[DRPS_PLAN_WORKERS_MAX];
    struct drps_handed_most most;
    struct drps_handed_rows rows; /* own */
};

/* The shares of a round's batch, and its rows. */
static int read_shares(struct adding *a, uint64_t t, struct drps_err *err)
{
    const uint32_t ranks = a->info->ranks.count;
    const void *record;
    uint64_t rows = 0;
    size_t bytes;
    int rc = drps_steps_record(a->shares, t, &record, &bytes, err);
    if (rc == 0 && (bytes < 4 || drps_list_count(record) != ranks))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "its shares are not %u", ranks);
    if (rc == 0) rc = drps_numbers_decode(record, bytes, a->share, NULL, err);
    for (uint32_t s = 0; rc == 0 && s < ranks; s++)
        rows += a->share[s];
    if (rc == 0 && rows > a->info->max_batch_rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a batch of %llu rows", (unsigned long long)rows);
    a->most.rows = (size_t)rows;
    return rc;
}

static void add(const struct adding *a, struct drps_handing_link *links)
{
    uint32_t server = 0, first = 0;
    for (uint32_t i = 0; i < a->rows.used_n; i++) {
        const uint32_t to = a->rows.to[i];
        while (a->rows.place[i] - first >= a->share[server])
            first += a->share[server++];
        links[server].used++;
        links[server].taken += a->rows.taken[i];
        if (to < DRPS_HANDED_RETURNED) links[to].handed++;
        links[server].returned += to == DRPS_HANDED_RETURNED;
    }
}

static int add_rounds(struct adding *a, struct drps_handing_link *links, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = 0;
    for (uint64_t t = 0; t < a->info->batches && rc == 0; t++) {
        rc = read_shares(a, t, err);
        if (rc == 0) rc = drps_steps_record(a->records, t, &record, &bytes, err);
        if (rc == 0) rc = drps_handed_decode(record, bytes, &a->most, &a->rows, err);
        if (rc == 0) add(a, links);
    }
    return rc;
}

int drps_handing_links(const struct drps_plan *part, struct drps_handing_link *links,
                       struct drps_err *err)
{
    const struct drps_plan_info *info = &part->info;
    const uint64_t rounds = info->batches + info->eval_batches;
    struct adding a = {.info = info,
                       .most = {.rows = info->max_batch_rows,
                                .slots = info->ranks.handed.slots,
                                .ranks = info->ranks.count,
                                .rank = info->ranks.rank}};
    int rc = drps_handed_allocate(&a.rows, &a.most, err);
    if (rc == 0)
        rc = drps_steps_open(part->io, part->dir, DRPS_FILE_SHARES, DRPS_KIND_SHARES, rounds,
                             BUFFER_BYTES, &a.shares, err);
    if (rc == 0)
        rc = drps_steps_open(part->io, part->dir, DRPS_FILE_HANDED, DRPS_KIND_HANDED, rounds,
                             BUFFER_BYTES, &a.records, err);
    if (rc == 0) rc = add_rounds(&a, links, err);
    drps_steps_close(a.shares);
    drps_steps_close(a.records);
    drps_handed_free(&a.rows);
    return rc;
}
