/* Filtered pulls: slots, and the streams of records that name them. */
#include "engine/cluster/published/drps_pull.h"

#include <errno.h>
#include <stdlib.h>

#include "base/record/drps_recstream.h"

enum { BUFFER_BYTES = 1 << 18, DEPTH = 3 };

/* The records of one half. */
struct pull_stream {
    struct drps_recfile *file;
    struct drps_recstream *stream;
};

struct drps_pull {
    struct drps_pull_options options;
    struct drps_pull_counts counts;
    const struct drps_plan_info *info;
    uint64_t t; /* training rounds that were stepped, of all epochs */
    struct pull_stream rounds, batches;
    struct drps_published *published; /* own */
    struct drps_copies *copies;       /* own */
};

uint64_t drps_pull_memory(const struct drps_plan_info *info)
{
    const struct drps_plan_ranks *r = &info->ranks;
    const uint64_t list =
        r->max_round_rows > r->max_round_uses ? r->max_round_rows : r->max_round_uses;
    const uint64_t round =
        r->max_round_rows * 2 * sizeof(uint32_t) + list * sizeof(uint32_t) + r->max_round_uses;
    return drps_published_bytes(r->published_slots, info->dim, r->count) +
           drps_copies_bytes(r->residual_slots, info->dim, info->max_batch_rows) + 2 * round +
           r->max_round_uses * 2 * sizeof(uint32_t) +
           r->max_round_rows * info->dim * sizeof(float) + 2 * DEPTH * (uint64_t)BUFFER_BYTES;
}

/* ---- Opening ---- */

static int open_stream(struct pull_stream *s, const struct drps_pull_job *job, const char *name,
                       uint32_t kind, struct drps_err *err)
{
    const uint64_t batches = job->plan->info.batches;
    const int is_over = job->first >= batches; /* the training of the first epoch is */
    const struct drps_recstream_options options = {.count = batches,
                                                   .passes = job->epochs - (uint64_t)is_over,
                                                   .begin = is_over ? 0 : job->first,
                                                   .buffer_bytes = BUFFER_BYTES,
                                                   .depth = DEPTH};
    int rc = drps_plan_file(job->plan, name, kind, &s->file, err);
    if (rc == 0 && drps_recfile_count(s->file) < batches)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s: " DRPS_FILE_MANIFEST
                          " counts %llu batches, but %s has %llu: make the plan anew",
                          job->plan->dir, (unsigned long long)batches, name,
                          (unsigned long long)drps_recfile_count(s->file));
    return rc == 0 ? drps_recstream_open(s->file, &options, &s->stream, err) : rc;
}

static void close_stream(struct pull_stream *s)
{
    drps_recstream_close(s->stream);
    drps_recfile_close(s->file);
}

int drps_pull_open(const struct drps_pull_job *job, struct drps_pull **pull_out,
                   struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_plan_ranks *ranks = &info->ranks;
    *pull_out = NULL;
    if (!ranks->published_slots)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no published slots, by which servers know what workers have: "
                            "make a plan with them",
                            job->plan->dir);
    struct drps_pull *p = calloc(1, sizeof(*p));
    if (!p) return drps_err_set(err, -ENOMEM, "no memory for filters");
    p->options = *job->options;
    if (!p->options.bits) p->options.bits = 32;
    p->info = info;
    p->t = (job->epoch - 1) * info->batches +
           (job->first < info->batches ? job->first : info->batches);
    p->published = drps_published_new(&p->options, ranks->published_slots, info->dim, ranks->count);
    p->copies = drps_copies_new(ranks->residual_slots, info->dim, info->max_batch_rows);
    int rc =
        p->published && p->copies ? 0 : drps_err_set(err, -ENOMEM, "no memory for copies of rows");
    if (rc == 0) rc = open_stream(&p->rounds, job, DRPS_FILE_PUBLISHED, DRPS_KIND_PUBLISHED, err);
    if (rc == 0) rc = open_stream(&p->batches, job, DRPS_FILE_RESIDUALS, DRPS_KIND_RESIDUALS, err);
    if (rc < 0) {
        drps_pull_close(p);
        return rc;
    }
    *pull_out = p;
    return 0;
}

void drps_pull_close(struct drps_pull *p)
{
    if (!p) return;
    close_stream(&p->rounds);
    close_stream(&p->batches);
    drps_published_free(p->published);
    drps_copies_free(p->copies);
    free(p);
}

const struct drps_pull_options *drps_pull_options_of(const struct drps_pull *p)
{
    return &p->options;
}

static int next_record(struct pull_stream *s, const void **record, size_t *bytes,
                       struct drps_err *err)
{
    int rc = drps_recstream_next(s->stream, record, bytes, err);
    if (rc == 0) return drps_err_set(err, DRPS_E_CORRUPT, "slots end before the training");
    return rc < 0 ? rc : 0;
}

/* ---- The server ---- */

struct drps_published *drps_pull_published(struct drps_pull *p)
{
    return p->published;
}

struct drps_pull_counts *drps_pull_counts_of(struct drps_pull *p)
{
    return &p->counts;
}

double drps_pull_threshold(struct drps_pull *p)
{
    return drps_published_threshold(&p->options, ++p->t);
}

static int check_kept(const struct drps_feed_union *u, const struct drps_published_rows *rows,
                      struct drps_err *err)
{
    for (uint32_t i = 0; i < rows->uses; i++)
        if (rows->keeps[i] && rows->slot[u->positions[i]] == DRPS_NOT_PUBLISHED)
            return drps_err_set(err, DRPS_E_CORRUPT, "a copy of a row that has no published slot");
    return 0;
}

int drps_pull_next_round(struct drps_pull *p, const struct drps_feed_union *u,
                         struct drps_published_rows *rows, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    rows->n = (uint32_t)u->n;
    rows->uses = (uint32_t)u->part[p->info->ranks.count];
    int rc = next_record(&p->rounds, &record, &bytes, err);
    if (rc == 0)
        rc = drps_published_decode(record, bytes, p->info->ranks.published_slots, rows, err);
    if (rc == 0) rc = check_kept(u, rows, err);
    return rc < 0 ? drps_err_context(err, "published slots of %s", p->info->id) : 0;
}

/* ---- The worker ---- */

int drps_pull_next_batch(struct drps_pull *p, size_t rows, struct drps_copies **out,
                         struct drps_err *err)
{
    const void *record;
    size_t bytes;
    struct drps_residual_rows *slots = drps_copies_rows(p->copies);
    *out = p->copies;
    if (rows > p->info->max_batch_rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu rows of at most %llu", rows,
                            (unsigned long long)p->info->max_batch_rows);
    slots->n = (uint32_t)rows;
    int rc = next_record(&p->batches, &record, &bytes, err);
    if (rc == 0)
        rc = drps_residuals_decode(record, bytes, p->info->ranks.residual_slots, slots, err);
    if (rc < 0) return drps_err_context(err, "residual slots of %s", p->info->id);
    drps_copies_begin(p->copies);
    return 0;
}
