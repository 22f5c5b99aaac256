/* A counting sort of the incidences by row: sizes, then counts of every row, then the batches. */
#include "index/blocks/counts/drps_access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_steps.h"

enum {
    READ_BUFFER = 1 << 20,
    HUGE_PAGE = 2 << 20,
    AHEAD = 32 /* rows that are fetched into the cache before their turn */
};

/* The incidences of all records, from their heads alone. */
static int count_all(struct steps *st, const struct access_source *from, uint32_t first,
                     uint32_t end, uint64_t *n_out, struct drps_err *err)
{
    *n_out = 0;
    for (uint32_t s = first; s < end; s++) {
        const void *record;
        size_t bytes;
        int rc = access_stopped(from->stop, err);
        if (rc == 0) rc = drps_steps_record(st, s, &record, &bytes, err);
        if (rc < 0) return rc;
        *n_out += bytes >= 4 ? drps_list_count(record) : 0;
    }
    return 0;
}

/* Memory that is looked up all over: in huge pages, where the kernel agrees. free() it. */
static void *new_spread(size_t bytes)
{
    if (bytes < HUGE_PAGE) return drps_array_new(bytes, 1);
    void *p = aligned_alloc(HUGE_PAGE, (bytes / HUGE_PAGE + 1) * HUGE_PAGE);
    if (p) (void)madvise(p, bytes, MADV_HUGEPAGE); /* a wish: smaller pages work too */
    return p;
}

/* start has one number more than it shows: see fill(). */
int drps_access_new(uint32_t rows, uint32_t batches, uint64_t n, uint64_t memory_bytes,
                    struct access *a_out, struct drps_err *err)
{
    const uint64_t starts = ((uint64_t)rows + 2) * sizeof(*a_out->start);
    const uint64_t bytes = starts + n * sizeof(*a_out->batch);
    char needed[32], allowed[32];

    *a_out = (struct access){.rows = rows, .batches = batches};
    if (bytes > memory_bytes)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "%" PRIu64 " accesses of %" PRIu32 " rows take %s (%" PRIu64
                            " bytes), more than the %s they may take",
                            n, rows, drps_size_format(bytes, needed, sizeof(needed)), bytes,
                            drps_size_format(memory_bytes, allowed, sizeof(allowed)));
    a_out->start = new_spread(starts);
    a_out->batch = new_spread((size_t)n * sizeof(*a_out->batch));
    if (a_out->start) memset(a_out->start, 0, starts);
    return a_out->start && a_out->batch
               ? 0
               : drps_err_set(err, -ENOMEM, "no memory for %" PRIu64 " accesses", n);
}

/* Rows of a list are far apart: what the i-th needs is fetched in good time. */
static void fetch_start(const struct access *a, const uint32_t *list, size_t n, size_t i)
{
    if (i + 2 * AHEAD < n) __builtin_prefetch(&a->start[(size_t)list[i + 2 * AHEAD] + 1], 1);
}

static void fetch_batches(const struct access *a, const uint32_t *list, size_t n, size_t i)
{
    if (i + AHEAD < n) __builtin_prefetch(&a->batch[a->start[(size_t)list[i + AHEAD] + 1]], 1);
}

/*
 * Row r's batches are counted in start[r + 2]; summed up, start[r + 1] is where they begin, and
 * once they are filled in, where they end.
 */
static int fill(struct steps *st, const struct access_source *from, uint32_t first, uint32_t end,
                struct access *a, struct drps_err *err)
{
    const uint32_t *list;
    size_t n;

    for (uint32_t s = first; s < end; s++) {
        int rc = access_stopped(from->stop, err);
        if (rc == 0) rc = drps_steps_rows(st, s, a->rows, &list, &n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < n; i++) {
            fetch_start(a, list, n, i);
            a->start[(size_t)list[i] + 2]++;
        }
    }
    for (size_t r = 2; r < (size_t)a->rows + 2; r++)
        a->start[r] += a->start[r - 1];
    for (uint32_t s = first; s < end; s++) {
        int rc = access_stopped(from->stop, err);
        if (rc == 0) rc = drps_steps_rows(st, s, a->rows, &list, &n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < n; i++) {
            fetch_start(a, list, n, i);
            fetch_batches(a, list, n, i);
            a->batch[a->start[(size_t)list[i] + 1]++] = s;
        }
    }
    return 0;
}

int drps_access_load(const struct access_source *from, uint32_t first, uint32_t end,
                     struct access *a_out, struct drps_err *err)
{
    struct steps *st;
    uint64_t n;

    *a_out = (struct access){.rows = from->rows, .batches = from->batches};
    int rc = drps_steps_open(from->io, from->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, from->batches,
                             READ_BUFFER, &st, err);
    if (rc == 0) rc = count_all(st, from, first, end, &n, err);
    if (rc == 0) rc = drps_access_new(from->rows, from->batches, n, from->memory_bytes, a_out, err);
    if (rc == 0) rc = fill(st, from, first, end, a_out, err);
    drps_steps_close(st);
    if (rc < 0) drps_access_free(a_out);
    return rc;
}

void drps_access_free(struct access *a)
{
    free(a->start);
    free(a->batch);
    *a = (struct access){0};
}
