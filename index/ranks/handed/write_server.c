/* The records of a rank's server: which uses of its rows are not plain. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_handed.h"
#include "index/ranks/handed/handing.h"

static uint8_t use_of(const struct handing_fate *fate)
{
    if (!(fate->bits & HANDING_HAS)) return 0;
    return (uint8_t)(DRPS_LENT_AWAY | (fate->bits & HANDING_TAKEN ? DRPS_LENT_GIVEN : 0) |
                     (fate->to == DRPS_HANDED_RETURNED ? DRPS_LENT_RETURNED : 0));
}

/* The uses of the server's rows, in the order of positions.rec. Returns their number. */
static size_t list_uses(const struct handing_side *side, uint8_t *out)
{
    const struct handing *h = side->h;
    const uint32_t first = h->split->owners->first[side->rank];
    const uint32_t end = h->split->owners->first[side->rank + 1];
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->row[i] >= first && h->row[i] < end) out[n++] = use_of(&side->fates[i]);
    return n;
}

static void count(struct drps_plan_handed *c, const struct drps_lent_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        c->away += rows->use[i] != 0;
        c->given += (rows->use[i] & DRPS_LENT_GIVEN) != 0;
        c->regained += (rows->use[i] & DRPS_LENT_RETURNED) != 0;
    }
}

int handing_server_round(struct handing_side *side, struct drps_err *err)
{
    const size_t most = side->h->n + 1;
    struct drps_lent_rows rows = {.use = drps_array_new(most, sizeof(*rows.use)),
                                  .room = drps_array_new(2 * most, sizeof(*rows.room))};
    int rc = rows.use && rows.room &&
                     drps_array_reserve(&side->packed, &side->packed_cap,
                                        drps_lent_encode_bound(most), 1) == 0
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    if (rc == 0) {
        rows.n = (uint32_t)list_uses(side, rows.use);
        count(side->counts, &rows);
        rc = handing_add_record(side, drps_lent_encode(&rows, side->packed), err);
    }
    free(rows.use);
    free(rows.room);
    return rc;
}
