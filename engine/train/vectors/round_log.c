/* Rounds are gathered batch by batch as they are applied, cut down to the rank's own rows, and then
 * logged. */
#include "engine/train/vectors/drps_round_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

static const uint64_t usual_buffer_bytes = 2 << 20, usual_least_bytes = 16 << 20;

struct drps_round_log {
    struct drps_round_log_job job;
    uint64_t first, rows;        /* the rank's own, by placed id */
    struct drps_vector_log *log; /* own; NULL: rounds are not logged */
    int gathers;                 /* 1: the log is open since the round began */

    /* The round under way: */
    struct drps_vectors *batches; /* own: [job.batches] */
    uint32_t *sources;            /* own: [job.batches] */
    uint32_t n;
    float *u; /* own: of all batches, as the next three */
    uint32_t *starts, *ids;
    float *values;
    size_t u_n, starts_n, entries_n;

    uint64_t all_bytes;     /* of all ranks' logs, since the last checkpoint, about */
    uint64_t rounds, bytes; /* logged before the log that is open */
    uint64_t began;         /* round after which that was opened */
};

/* ---- Sizes ---- */

static uint64_t most_entries(const struct drps_plan_info *info)
{
    return info->max_batch_nnz + info->max_batch_samples; /* with the intercept's */
}

/* Samples of a round: a rank's or, of one process, a step's are those of a batch of the plan. */
static uint64_t most_samples(const struct drps_plan_info *info)
{
    return info->ranks.count * info->max_batch_samples;
}

/* Returns the bytes of a round's arrays. */
static uint64_t round_bytes(const struct drps_plan_info *info, uint32_t batches)
{
    return batches * (sizeof(struct drps_vectors) + 2 * sizeof(uint32_t)) +
           most_samples(info) * (info->dim * sizeof(float) + sizeof(uint32_t)) +
           info->ranks.count * most_entries(info) * (sizeof(uint32_t) + sizeof(float));
}

/* A round's arrays; what is held until it is durable, twice, and up to twice as large as it is
 * filled; and a mark for each row. */
uint64_t drps_round_log_memory(const struct drps_plan_info *info, uint32_t batches)
{
    const uint64_t round = round_bytes(info, batches);
    return round + 4 * (usual_buffer_bytes + round) + info->rows / 8;
}

/* ---- Opening ---- */

static int allocate(struct drps_round_log *l)
{
    const struct drps_plan_info *info = l->job.info;
    const size_t batches = l->job.batches, samples = (size_t)most_samples(info);
    const size_t entries = info->ranks.count * (size_t)most_entries(info);
    l->batches = drps_array_new(batches, sizeof(*l->batches));
    l->sources = drps_array_new(batches, sizeof(*l->sources));
    l->u = drps_array_new(samples, info->dim * sizeof(*l->u));
    l->starts = drps_array_new(samples + batches, sizeof(*l->starts));
    l->ids = drps_array_new(entries, sizeof(*l->ids));
    l->values = drps_array_new(entries, sizeof(*l->values));
    return l->batches && l->sources && l->u && l->starts && l->ids && l->values ? 0 : -ENOMEM;
}

int drps_round_log_new(const struct drps_round_log_job *job, struct drps_round_log **out,
                       struct drps_err *err)
{
    struct drps_round_log *l = calloc(1, sizeof(*l));
    *out = NULL;
    if (l) {
        l->job = *job;
        l->first = job->server->first_row;
        l->rows = drps_plan_own_rows(job->info).rows;
        if (!l->job.buffer_bytes) l->job.buffer_bytes = usual_buffer_bytes;
        if (!l->job.least_bytes) l->job.least_bytes = usual_least_bytes;
    }
    if (!l || allocate(l) < 0) {
        drps_round_log_free(l);
        return drps_err_set(err, -ENOMEM, "no memory to log vectors");
    }
    *out = l;
    return 0;
}

void drps_round_log_free(struct drps_round_log *l)
{
    if (!l) return;
    drps_round_log_close(l);
    free(l->batches);
    free(l->sources);
    free(l->u);
    free(l->starts);
    free(l->ids);
    free(l->values);
    free(l);
}

int drps_round_log_open(struct drps_round_log *l, const struct drps_checkpoints *c, uint64_t number,
                        uint64_t round, struct drps_err *err)
{
    const struct drps_vector_log_options options = {.buffer_bytes = l->job.buffer_bytes,
                                                    .background = l->job.background};
    drps_round_log_close(l);
    l->all_bytes = 0;
    l->began = round;
    return drps_vector_log_open(c, number, &options, round, &l->log, err);
}

void drps_round_log_close(struct drps_round_log *l)
{
    drps_round_log_counts(l, &l->rounds, &l->bytes);
    drps_vector_log_close(l->log);
    l->log = NULL;
    l->gathers = 0;
}

int drps_round_log_is_open(const struct drps_round_log *l)
{
    return l->log != NULL;
}

void drps_round_log_counts(const struct drps_round_log *l, uint64_t *rounds_out,
                           uint64_t *bytes_out)
{
    struct drps_vector_log_stats now = {.round = l->began};
    if (l->log) drps_vector_log_stats(l->log, &now);
    *rounds_out = l->rounds + now.round - l->began;
    *bytes_out = l->bytes + now.log_bytes;
}

/* ---- A round ---- */

/* Entries of a sample are in any order; those of vectors ascend. Few are out of place. */
static void sort_entries(uint32_t *ids, float *values, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t id = ids[i];
        const float value = values[i];
        size_t k = i;
        for (; k && ids[k - 1] > id; k--) {
            ids[k] = ids[k - 1];
            values[k] = values[k - 1];
        }
        ids[k] = id;
        values[k] = value;
    }
}

static void add_entry(struct drps_round_log *l, uint64_t id, float value)
{
    if (id < l->first || id - l->first >= l->rows) return;
    l->ids[l->entries_n] = (uint32_t)(id - l->first);
    l->values[l->entries_n++] = value;
}

/* The entries of a sample in the rank's own rows. */
static void add_sample(struct drps_round_log *l, const struct drps_exchange_applied *a, size_t s)
{
    const struct drps_batch *b = a->batch;
    const size_t begin = l->entries_n, end = drps_batch_start(b, s + 1);
    if (l->job.server->model.has_bias) add_entry(l, 0, 1);
    for (size_t j = drps_batch_start(b, s); j < end; j++)
        add_entry(l, a->ids[b->local16 ? b->local16[j] : b->local32[j]],
                  b->values ? b->values[j] : 1);
    sort_entries(l->ids + begin, l->values + begin, l->entries_n - begin);
}

/* What a batch adds to the logs of all ranks: its u to each, and each entry to one. */
static uint64_t bytes_of(const struct drps_round_log *l, const struct drps_batch *b)
{
    const uint64_t head = b->samples * (l->job.info->dim + 1) * sizeof(float);
    return l->job.info->ranks.count * head + (b->nnz + b->samples) * 2 * sizeof(uint32_t);
}

int drps_round_log_take(void *log, const struct drps_exchange_applied *a, struct drps_err *err)
{
    struct drps_round_log *l = log;
    const struct drps_batch *b = a->batch;
    const size_t before = l->entries_n, dim = l->job.info->dim;
    (void)err;
    l->all_bytes += bytes_of(l, b);
    if (!l->n) l->gathers = l->log != NULL;
    if (!l->gathers) return 0;
    uint32_t *starts = l->starts + l->starts_n;
    memcpy(l->u + l->u_n, a->slopes, b->samples * dim * sizeof(*l->u));
    for (size_t s = 0; s < b->samples; s++) {
        starts[s] = (uint32_t)(l->entries_n - before);
        add_sample(l, a, s);
    }
    starts[b->samples] = (uint32_t)(l->entries_n - before);
    l->batches[l->n] = (struct drps_vectors){.n = (uint32_t)b->samples,
                                             .dim = (uint32_t)dim,
                                             .u = l->u + l->u_n,
                                             .first = starts,
                                             .ids = l->ids + before,
                                             .values = l->values + before};
    l->sources[l->n++] = a->rank;
    l->u_n += b->samples * dim;
    l->starts_n += b->samples + 1;
    return 0;
}

static int add_round(struct drps_round_log *l, uint64_t round, const void *replica,
                     const struct drps_round_note *note, struct drps_err *err)
{
    struct drps_vector_round r = {
        .number = round, .n = l->n, .batches = l->batches, .sources = l->sources};
    const char *own = (const char *)replica + l->first * l->job.server->row_bytes;
    void *text = drps_round_note_write(note, &r.note_bytes);
    if (!text) return drps_err_set(err, -ENOMEM, "no memory to log vectors");
    r.note = text;
    int rc = drps_vector_log_add(l->log, &r, own, 0, err);
    free(text);
    return rc;
}

int drps_round_log_end(struct drps_round_log *l, uint64_t round, const void *replica,
                       const struct drps_round_note *note, struct drps_err *err)
{
    int rc = l->gathers ? add_round(l, round, replica, note, err) : 0;
    l->n = 0;
    l->gathers = 0;
    l->u_n = l->starts_n = l->entries_n = 0;
    return rc;
}

int drps_round_log_flush(struct drps_round_log *l, struct drps_err *err)
{
    return l->log ? drps_vector_log_flush(l->log, err) : 0;
}

int drps_round_log_sync(struct drps_round_log *l, struct drps_err *err)
{
    return l->log ? drps_vector_log_sync(l->log, err) : 0;
}

int drps_round_log_due(const struct drps_round_log *l)
{
    const struct drps_plan_info *info = l->job.info;
    return l->all_bytes >= drps_exchange_rows(info) * l->job.server->row_bytes &&
           l->all_bytes / info->ranks.count >= l->job.least_bytes;
}

void drps_round_log_put_off(struct drps_round_log *l)
{
    l->all_bytes = 0;
}
