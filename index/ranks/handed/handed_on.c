/* Rows to hand on are found in passes over all training batches. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/ranks/handed/handing.h"

enum { ROW_BYTES = 13 }; /* users, next uses, and a rank's slots */

static int check_memory(const struct handing *h, uint64_t bytes, struct drps_err *err)
{
    char need[32];
    if (bytes <= h->split->memory_bytes / 2) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "finding which of %" PRIu32
                        " rows to hand on needs a memory limit of %s: raise it, or make the plan "
                        "without",
                        h->all, drps_size_format(2 * bytes, need, sizeof(need)));
}

static int open_lists(struct handing *h, struct drps_err *err)
{
    const struct split_job *split = h->split;
    int rc = check_memory(h, (uint64_t)h->all * ROW_BYTES, err);
    if (rc < 0) return rc;
    h->users = calloc(h->all, sizeof(*h->users));
    if (!h->users) return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    return drps_steps_open(split->io, split->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                           split->batches + split->eval_batches, split->memory_bytes / 8, &h->lists,
                           err);
}

/* Where slots are few, decide anew with what of the first decisions they allow. */
static int limit(struct handing *h, struct drps_err *err)
{
    int rc = check_memory(h, (uint64_t)h->all * ROW_BYTES + handing_limit_bytes(h), err);
    if (rc == 0) rc = handing_limit(h, err);
    return rc == 0 ? handing_find_next(h, err) : rc;
}

int handing_find(const struct handing_job *job, struct handing **handing_out, struct drps_err *err)
{
    const struct split_job *split = job->split;
    *handing_out = NULL;
    struct handing *h = calloc(1, sizeof(*h));
    if (!h) return drps_err_set(err, -ENOMEM, "no memory to find rows to hand on");
    *h = (struct handing){.job = job,
                          .split = split,
                          .all = split->owners->first[split->ranks->count],
                          .rounds = split_rounds(split->batches, split->ranks->workers)};
    int rc = open_lists(h, err);
    if (rc == 0) rc = handing_count(h, err);
    if (rc == 0) rc = handing_find_next(h, err);
    if (rc == 0 && job->most != UINT64_MAX) rc = limit(h, err);
    if (rc == 0) rc = handing_resolve(h, err);
    if (rc < 0) {
        handing_free(h);
        return rc;
    }
    drps_steps_scratch_end(&h->next);
    *handing_out = h;
    return 0;
}

void handing_free(struct handing *h)
{
    if (!h) return;
    drps_steps_close(h->lists);
    drps_steps_scratch_end(&h->next);
    drps_steps_scratch_end(&h->fates);
    free(h->row);
    free(h->users);
    free(h->links);
    free(h);
}
