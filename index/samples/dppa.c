/* Gathers the samples of a stream in memory, hashes their features into bins where that is asked
 * for, and places them (dppa.h). */
#include "index/samples/dppa.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "partition/dppa/drps_dppa.h"

/* What a sample takes beside its features, an entry, and a row: most where rows are placed first.
 */
enum { SAMPLE_BYTES = 64, ENTRY_BYTES = 20, ROW_BYTES = 24 };

struct gathering {
    uint32_t rows;
    size_t n, entries;
    size_t *starts;     /* own */
    uint32_t *features; /* own */
};

static int count_entries(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    (void)features, (void)err; /* cannot fail */
    ((struct gathering *)ctx)->entries += n;
    return 0;
}

/* Rows that training does not have are left out. */
static int gather_sample(void *ctx, const uint32_t *features, size_t n, struct drps_err *err)
{
    struct gathering *g = ctx;
    size_t at = g->starts[g->n];
    (void)err; /* there is room: entries were counted */
    for (size_t i = 0; i < n; i++)
        if (features[i] < g->rows) g->features[at++] = features[i];
    g->starts[++g->n] = at;
    return 0;
}

static int check_memory(const struct assign_job *job, uint64_t samples, uint64_t entries,
                        struct drps_err *err)
{
    char need[32];
    const uint64_t placed = job->dppa->rows_first ? samples
                            : job->dppa->bins     ? job->dppa->bins
                                                  : job->rows;
    const uint64_t bytes = samples * SAMPLE_BYTES + entries * ENTRY_BYTES +
                           (uint64_t)job->rows * ROW_BYTES + placed / 8 * job->workers;
    if (bytes <= job->memory_bytes) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "samples dppa: %" PRIu64 " samples with %" PRIu64
                        " entries may take %s, for which a third of the memory limit is there: "
                        "raise it, or have samples placed, dealt, or in their round",
                        samples, entries, drps_size_format(bytes, need, sizeof(need)));
}

static int gather(const struct assign_job *job, const struct drps_sample_stream *stream,
                  struct gathering *g, struct drps_err *err)
{
    *g = (struct gathering){.rows = job->rows};
    int rc = stream->walk(stream->ctx, count_entries, g, err);
    if (rc == 0) rc = check_memory(job, stream->n, g->entries, err);
    if (rc < 0) return rc;
    g->starts = drps_array_new(stream->n + 1, sizeof(*g->starts));
    g->features = drps_array_new(g->entries, sizeof(*g->features));
    if (!g->starts || !g->features)
        return drps_err_set(err, -ENOMEM, "no memory for %zu entries", g->entries);
    g->starts[0] = 0;
    return stream->walk(stream->ctx, gather_sample, g, err);
}

/* Features become bins; the arrays are exchanged for hashed ones. */
static int hash_into_bins(const struct assign_job *job, struct gathering *g, struct drps_err *err)
{
    const struct drps_sample_set set = {g->n, g->rows, g->starts, g->features};
    size_t *starts = drps_array_new(g->n + 1, sizeof(*starts));
    uint32_t *features = drps_array_new(g->entries, sizeof(*features));
    int rc =
        starts && features
            ? drps_samples_hash_features(&set, job->dppa->bins, job->seed, starts, features, err)
            : drps_err_set(err, -ENOMEM, "no memory for %zu entries", g->entries);
    free(g->starts);
    free(g->features);
    g->starts = starts;
    g->features = features;
    g->rows = job->dppa->bins;
    return rc;
}

static void tell(const struct assign_job *job, const struct drps_dppa_report *r)
{
    drps_log(job->log, DRPS_LOG_INFO,
             "dppa: alpha %" PRIu32 ", beta %g: %" PRIu64 " turns, of which %" PRIu64
             " assigned nothing",
             r->alpha, r->beta, r->turns, r->fruitless);
    if (r->forced)
        drps_log(job->log, DRPS_LOG_WARN,
                 "dppa: %" PRIu64 " %s taken although beta does not pay for them, as no others "
                 "were found; with a beta above the longest sample there are none of these",
                 r->forced, job->dppa->rows_first ? "rows were" : "samples were");
}

static int place(const struct assign_job *job, const struct gathering *g, uint32_t *owner,
                 struct drps_err *err)
{
    const struct drps_sample_set set = {g->n, g->rows, g->starts, g->features};
    const struct drps_dppa_options o = {.machines = job->workers,
                                        .alpha = job->dppa->alpha,
                                        .sample = job->dppa->sample,
                                        .beta = job->dppa->beta,
                                        .by_sets = job->dppa->by_sets,
                                        .seed = job->seed,
                                        .turn = job->turn,
                                        .turn_ctx = job->turn_ctx};
    struct drps_dppa_report report;
    int rc;
    if (job->dppa->rows_first) {
        uint32_t *homes = *job->row_homes = calloc(job->rows, sizeof(*homes));
        if (!homes) return drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " rows", job->rows);
        rc = drps_dppa_rows_first(&set, &o, homes, owner, &report, err);
    } else {
        rc = drps_dppa_samples(&set, &o, owner, &report, err);
    }
    if (rc == 0) tell(job, &report);
    return rc;
}

int drps_assign_by_dppa(const struct assign_job *job, const struct drps_sample_stream *training,
                        uint16_t *owner, struct drps_err *err)
{
    struct gathering g;
    uint32_t *wide = NULL;
    int rc = gather(job, training, &g, err);
    if (rc == 0 && job->dppa->bins) rc = hash_into_bins(job, &g, err);
    if (rc == 0) {
        wide = drps_array_new(training->n, sizeof(*wide));
        rc = wide ? place(job, &g, wide, err)
                  : drps_err_set(err, -ENOMEM, "no memory to place %" PRIu64 " samples",
                                 training->n);
    }
    for (uint64_t s = 0; rc == 0 && s < training->n; s++)
        owner[s] = (uint16_t)wide[s];
    free(wide);
    free(g.starts);
    free(g.features);
    return rc;
}
