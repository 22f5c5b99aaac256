/*
 * The two lists that the plan of a rank has for each round beside its batch (drps_round.h),
 * decoded and checked against the batch.
 */
#include "index/plan/drps_round.h"

#include <inttypes.h>

#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

enum { SUM_BUFFER_BYTES = 1 << 18 };

const struct drps_round_file drps_round_file[DRPS_ROUND_FILES] = {
    [DRPS_ROUND_DATA] = {DRPS_FILE_DATA, DRPS_KIND_DATA},
    [DRPS_ROUND_ROWS] = {DRPS_FILE_ROWS, DRPS_KIND_ROWS},
    [DRPS_ROUND_SHARES] = {DRPS_FILE_SHARES, DRPS_KIND_SHARES},
    [DRPS_ROUND_POSITIONS] = {DRPS_FILE_POSITIONS, DRPS_KIND_POSITIONS},
};

int drps_shares_decode(const void *record, size_t bytes, uint32_t workers, size_t rows,
                       uint32_t *shares_out, struct drps_err *err)
{
    uint64_t sum = 0;
    size_t used;
    const uint32_t n = bytes >= 4 ? drps_list_count(record) : 0;
    if (n != workers)
        return drps_err_set(err, DRPS_E_CORRUPT, "shares of %" PRIu32 " servers, not %" PRIu32, n,
                            workers);
    int rc = drps_numbers_decode(record, bytes, shares_out, &used, err);
    if (rc < 0) return rc;
    for (uint32_t s = 0; s < workers; s++)
        sum += shares_out[s];
    if (sum == rows && used == bytes) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "servers have %" PRIu64 " rows of a batch with %zu (%zu bytes of %zu)", sum,
                        rows, used, bytes);
}

/* Add the shares of round t. */
static int add_shares(const struct drps_plan *part, struct steps *shares, uint64_t t,
                      struct drps_round_rows *out, struct drps_err *err)
{
    const uint32_t servers = part->info.ranks.count;
    uint64_t *sums = t < part->info.batches ? out->training : out->evaluation;
    uint32_t numbers[DRPS_PLAN_WORKERS_MAX];
    const void *record;
    size_t bytes, used;
    int rc = drps_steps_record(shares, t, &record, &bytes, err);
    if (rc == 0 && (bytes < 4 || drps_list_count(record) != servers))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "its shares are not %" PRIu32, servers);
    if (rc == 0) rc = drps_numbers_decode(record, bytes, numbers, &used, err);
    if (rc < 0) return drps_steps_fault(shares, t, err);
    for (uint32_t s = 0; s < servers; s++)
        sums[s] += numbers[s];
    return 0;
}

int drps_shares_sum(const struct drps_plan *part, struct drps_round_rows *out, struct drps_err *err)
{
    const uint64_t rounds = part->info.batches + part->info.eval_batches;
    struct steps *shares = NULL;
    *out = (struct drps_round_rows){.training = {0}};
    int rc = drps_steps_open(part->io, part->dir, DRPS_FILE_SHARES, DRPS_KIND_SHARES, rounds,
                             SUM_BUFFER_BYTES, &shares, err);
    for (uint64_t t = 0; t < rounds && rc == 0; t++)
        rc = add_shares(part, shares, t, out, err);
    drps_steps_close(shares);
    return rc;
}

int drps_positions_decode(const void *record, size_t bytes, uint32_t workers, size_t rows,
                          size_t cap, uint32_t *positions_out, size_t *part_out,
                          struct drps_err *err)
{
    const char *at = record;
    size_t left = bytes, used;
    part_out[0] = 0;
    for (uint32_t w = 0; w < workers; w++) {
        const uint32_t n = left >= 4 ? drps_list_count(at) : 0;
        if (n > cap - part_out[w])
            return drps_err_set(err, DRPS_E_CORRUPT, "more than %zu positions", cap);
        uint32_t *list = positions_out + part_out[w];
        int rc = drps_list_decode(at, left, list, &used, err);
        if (rc < 0) return rc;
        if (n && list[n - 1] >= rows)
            return drps_err_set(err, DRPS_E_CORRUPT, "position %" PRIu32 " of %zu rows",
                                list[n - 1], rows);
        part_out[w + 1] = part_out[w] + n;
        at += used;
        left -= used;
    }
    if (!left) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%zu bytes behind the positions", left);
}
