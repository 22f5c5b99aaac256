/* Records of a part of a plan, and what they say of rows, for tests. */
#include "support/round_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/drps_alloc.h"
#include "base/record/drps_recfile.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_round.h"

void *round_record(const struct drps_plan *plan, const char *name, uint32_t kind, uint64_t i,
                   size_t *bytes_out)
{
    struct drps_recfile *file;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_file(plan, name, kind, &file, &err) < 0) fail_msg("%s", err.text);
    *bytes_out = (size_t)drps_recfile_bytes(file, i);
    void *data = malloc((size_t)drps_recfile_run_bytes(file, i, 1) + 8);
    assert_non_null(data);
    assert_int_equal(drps_recfile_read(file, i, 1, data, NULL), 0);
    drps_recfile_close(file);
    return data;
}

size_t round_rows(const struct drps_plan *server, uint32_t worker, uint64_t round, uint32_t *out)
{
    const struct drps_plan_ranks *r = &server->info.ranks;
    size_t bytes, n = 0, *part = drps_array_new((size_t)r->count + 1, sizeof(*part));
    uint32_t *ids = drps_array_new(r->max_round_rows, sizeof(*ids));
    uint32_t *positions = drps_array_new(r->max_round_uses, sizeof(*positions));
    assert_true(part && ids && positions);

    void *record = round_record(server, "rows.rec", DRPS_KIND_ROWS, round, &bytes);
    const uint32_t rows = drps_list_count(record);
    assert_true(rows <= r->max_round_rows);
    assert_int_equal(drps_list_decode(record, bytes, ids, NULL, NULL), 0);
    free(record);
    record = round_record(server, "positions.rec", DRPS_KIND_POSITIONS, round, &bytes);
    assert_int_equal(drps_positions_decode(record, bytes, r->count, rows, r->max_round_uses,
                                           positions, part, NULL),
                     0);
    for (size_t i = part[worker]; i < part[worker + 1]; i++)
        out[n++] = (uint32_t)r->first_row + ids[positions[i]];
    free(record);
    free(positions);
    free(ids);
    free(part);
    return n;
}
