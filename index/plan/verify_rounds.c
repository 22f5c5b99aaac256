/* Rounds against batches and row lists: every row of a union is some worker's. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/verify.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_round.h"
#include "index/plan/drps_steps.h"

enum { BUFFER_BYTES = 1 << 20 };

struct verifier {
    const struct drps_plan_info *info;
    struct steps *files[DRPS_ROUND_FILES];
    uint32_t *positions; /* [max_round_uses] */
    unsigned char *seen; /* [max_round_rows] */
    void *body;          /* [max_body_bytes] a plain one */
};

/* How many of the batch's rows this rank's own server has. */
static int check_shares(struct verifier *v, uint64_t round, uint32_t *own_out, struct drps_err *err)
{
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    const void *record;
    size_t bytes;
    struct drps_batch b = {0};
    int rc = drps_steps_record(v->files[DRPS_ROUND_DATA], round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_batch_unpack(record, bytes, v->body, (size_t)v->info->max_body_bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode_unpacked(v->body, bytes, &b, err);
    if (rc < 0) return drps_steps_fault(v->files[DRPS_ROUND_DATA], round, err);
    rc = drps_steps_record(v->files[DRPS_ROUND_SHARES], round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_shares_decode(record, bytes, v->info->ranks.workers, b.rows, shares, err);
    *own_out = shares[v->info->ranks.rank];
    return rc < 0 ? drps_steps_fault(v->files[DRPS_ROUND_SHARES], round, err) : 0;
}

static int check_union(struct verifier *v, const void *record, size_t bytes, size_t rows,
                       uint32_t own, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    size_t part[DRPS_PLAN_WORKERS_MAX + 1], seen = 0;
    if (rows > ranks->max_round_rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%zu rows, " DRPS_FILE_MANIFEST " says at most %" PRIu64, rows,
                            ranks->max_round_rows);
    int rc = drps_positions_decode(record, bytes, ranks->workers, rows, ranks->max_round_uses,
                                   v->positions, part, err);
    if (rc < 0) return rc;
    memset(v->seen, 0, rows);
    for (size_t i = 0; i < part[ranks->workers]; i++) {
        seen += !v->seen[v->positions[i]];
        v->seen[v->positions[i]] = 1;
    }
    if (seen != rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "workers have %zu of the round's %zu rows", seen,
                            rows);
    if (part[ranks->rank + 1] - part[ranks->rank] == own) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%zu positions of the rank's own worker; its batch has %" PRIu32
                        " rows here",
                        part[ranks->rank + 1] - part[ranks->rank], own);
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const uint32_t *list;
    const void *record;
    size_t rows, bytes;
    uint32_t own = 0;
    int rc = check_shares(v, round, &own, err);
    if (rc == 0)
        rc = drps_steps_rows(v->files[DRPS_ROUND_ROWS], round, v->info->rows, &list, &rows, err);
    if (rc == 0)
        rc = drps_steps_record(v->files[DRPS_ROUND_POSITIONS], round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = check_union(v, record, bytes, rows, own, err);
    return rc < 0 ? drps_steps_fault(v->files[DRPS_ROUND_POSITIONS], round, err) : 0;
}

int drps_verify_rounds(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                       struct drps_err *err)
{
    const uint64_t rounds = info->batches + info->eval_batches;
    struct verifier v = {.info = info};
    int rc = 0;
    v.positions = drps_array_new(info->ranks.max_round_uses, sizeof(*v.positions));
    v.seen = drps_array_new(info->ranks.max_round_rows, 1);
    v.body = drps_array_new((size_t)info->max_body_bytes, 1);
    if (!v.positions || !v.seen || !v.body)
        rc = drps_err_set(err, -ENOMEM, "no memory to verify %s", dir);
    for (int i = 0; i < DRPS_ROUND_FILES && rc == 0; i++)
        rc = drps_steps_open(io, dir, drps_round_file[i].name, drps_round_file[i].kind, rounds,
                             BUFFER_BYTES, &v.files[i], err);
    for (uint64_t t = 0; t < rounds && rc == 0; t++)
        rc = check_round(&v, t, err);
    for (int i = 0; i < DRPS_ROUND_FILES; i++)
        drps_steps_close(v.files[i]);
    free(v.positions);
    free(v.seen);
    free(v.body);
    return rc;
}
