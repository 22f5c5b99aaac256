/* The rows of a round's batches, and which of them one worker alone has. */
#include <errno.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/ranks/handed/handing.h"

/* Read the rows of a worker's batch behind those of the workers before it. */
static int read_worker(struct handing *h, uint64_t round, uint32_t rank, struct drps_err *err)
{
    const struct split_job *split = h->split;
    const uint64_t batch = round * split->ranks->workers + rank - split->ranks->first_worker;
    const uint32_t *rows;
    size_t n;
    h->part[rank + 1] = h->n;
    if (!drps_rank_trains(split->ranks, rank) || batch >= split->batches) return 0;
    int rc = drps_steps_rows(h->lists, batch, h->all, &rows, &n, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&h->row, &h->cap, h->n + n, sizeof(*h->row)))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    memcpy(h->row + h->n, rows, n * sizeof(*rows));
    h->part[rank + 1] = h->n += n;
    return 0;
}

void handing_forget(struct handing *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->users[h->row[i]] = 0;
    h->n = 0;
    memset(h->part, 0, sizeof(h->part));
}

int handing_read(struct handing *h, uint64_t round, struct drps_err *err)
{
    int rc = 0;
    handing_forget(h);
    for (uint32_t r = 0; r < h->split->ranks->count && rc == 0; r++)
        rc = read_worker(h, round, r, err);
    for (size_t i = 0; i < h->n; i++)
        if (h->users[h->row[i]] < 2) h->users[h->row[i]]++;
    return rc;
}

int handing_count(struct handing *h, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t t = 0; t < h->rounds && rc == 0; t++) {
        rc = handing_read(h, t, err);
        h->uses += h->n;
    }
    return rc;
}
