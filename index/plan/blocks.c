/* blocks.rec: where blocks begin. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_plan.h"

int drps_blocks_write(const struct drps_io *io, const char *dir, const uint32_t *first,
                      size_t blocks, struct drps_err *err)
{
    enum { PART = 1 << 16 };
    struct drps_recwriter *w = NULL;
    uint32_t *sizes = drps_array_new(PART, sizeof(*sizes));
    unsigned char *packed = drps_array_new(drps_list_encode_bound(PART), 1);
    char *path = drps_path_join(dir, DRPS_FILE_BLOCKS);
    int rc =
        sizes && packed && path ? 0 : drps_err_set(err, -ENOMEM, "no memory for block boundaries");

    if (rc == 0) rc = drps_recwriter_open(io, path, DRPS_KIND_BLOCKS, &w, err);
    for (size_t i = 0; rc == 0 && i < blocks; i += PART) {
        size_t n = blocks - i < PART ? blocks - i : PART;
        for (size_t k = 0; k < n; k++)
            sizes[k] = first[i + k + 1] - first[i + k];
        struct drps_piece piece = {packed, drps_numbers_encode(sizes, n, packed)};
        rc = drps_recwriter_add(w, &piece, 1, err);
    }
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(path);
    free(packed);
    free(sizes);
    return rc;
}

int drps_plan_blocks(const struct drps_plan *plan, uint32_t **first_out, struct drps_err *err)
{
    struct drps_recfile *f = NULL;
    size_t blocks = plan->info.blocks;
    uint32_t *first = NULL;
    char *record = NULL;
    size_t cap = 0;
    size_t n = 0;

    *first_out = NULL;
    int rc = drps_plan_file(plan, DRPS_FILE_BLOCKS, DRPS_KIND_BLOCKS, &f, err);
    const int fits = rc == 0 && blocks <= drps_recfile_file_bytes(f); /* a size takes a byte */
    if (fits) first = drps_array_new(blocks + 1, sizeof(*first));
    if (fits && !first)
        rc = drps_err_set(err, -ENOMEM, "no memory for %zu block boundaries", blocks);
    if (rc == 0 && !fits) n = blocks + 1; /* reported below */
    for (uint64_t i = 0; rc == 0 && fits && i < drps_recfile_count(f); i++) {
        size_t bytes = (size_t)drps_recfile_run_bytes(f, i, 1);
        if (drps_array_reserve(&record, &cap, bytes, 1))
            rc = drps_err_set(err, -ENOMEM, "no memory for blocks");
        if (rc == 0) rc = drps_recfile_read(f, i, 1, record, err);
        if (rc < 0) break;
        uint32_t part = bytes >= 4 ? drps_list_count(record) : 0;
        if (part > blocks - n) {
            n = blocks + 1; /* reported below */
            break;
        }
        rc = drps_numbers_decode(record, (size_t)drps_recfile_bytes(f, i), first + n, NULL, err);
        n += part;
    }
    uint64_t sum = 0;
    for (size_t i = 0; rc == 0 && n == blocks && i < n; i++) {
        uint32_t size = first[i];
        first[i] = (uint32_t)sum;
        sum += size;
    }
    if (rc == 0 && (n != blocks || sum != plan->info.rows))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s/" DRPS_FILE_BLOCKS " does not hold %zu blocks of %" PRIu64 " rows",
                          plan->dir, blocks, plan->info.rows);
    drps_recfile_close(f);
    free(record);
    if (rc < 0) {
        free(first);
        return rc;
    }
    first[blocks] = (uint32_t)sum;
    *first_out = first;
    return 0;
}
