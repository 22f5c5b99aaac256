/* Row lists of workers are put together from what each server opens in a round, and which of these
 * rows each worker's batch has; bodies are copied as they are. */
#include "index/ranks/drps_collect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_round.h"
#include "index/plan/drps_steps.h"

enum { BUFFER_BYTES = 64 << 10, FILES_A_RANK = 3 };

/* One rank of the plan. */
struct source {
    struct drps_plan *part; /* own; NULL: the plan is the one part */
    struct steps *rows, *bodies, *positions;
    uint32_t *uses; /* own: rows of all workers' batches, under their placed ids */
    size_t uses_cap;
    size_t from[DRPS_PLAN_WORKERS_MAX + 1]; /* where each worker's begin */
};

struct collecting {
    const struct collect_job *job;
    uint32_t workers;
    struct source *sources; /* own: [workers] */
    struct drps_recwriter *data, *rows;
    uint32_t *list; /* own: rows of a batch */
    size_t list_cap;
    unsigned char *packed; /* own */
    size_t packed_cap;
};

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
}

/* ---- Files of the ranks ---- */

static const struct drps_plan *plan_of(const struct collecting *c, uint32_t rank)
{
    return c->sources[rank].part ? c->sources[rank].part : c->job->plan;
}

/* It must be the next part of the whole. */
static int check_part(const struct collecting *c, uint32_t rank, uint64_t first_row,
                      struct drps_err *err)
{
    const struct drps_plan *whole = c->job->plan, *part = plan_of(c, rank);
    if (strcmp(part->info.ranks.whole, whole->info.id) == 0 &&
        part->info.ranks.first_row == first_row && part->info.batches == whole->info.batches &&
        part->info.eval_batches == whole->info.eval_batches)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s is the part of another plan than %s", part->dir,
                        whole->dir);
}

static int open_file(const struct collecting *c, uint32_t rank, int file, struct steps **out,
                     struct drps_err *err)
{
    const struct drps_plan *part = plan_of(c, rank);
    return drps_steps_open(c->job->io, part->dir, drps_round_file[file].name,
                           drps_round_file[file].kind, part->info.batches + part->info.eval_batches,
                           BUFFER_BYTES, out, err);
}

static int open_source(struct collecting *c, uint32_t rank, uint64_t *next_row,
                       struct drps_err *err)
{
    struct source *s = &c->sources[rank];
    const int several = c->workers > 1;
    int rc = several ? drps_plan_open_rank(c->job->io, c->job->plan->dir, rank, &s->part, err) : 0;
    if (rc == 0 && several) rc = check_part(c, rank, *next_row, err);
    if (rc < 0) return rc;
    *next_row += plan_of(c, rank)->info.rows;
    rc = open_file(c, rank, DRPS_ROUND_ROWS, &s->rows, err);
    if (rc == 0) rc = open_file(c, rank, DRPS_ROUND_DATA, &s->bodies, err);
    if (rc == 0 && several) rc = open_file(c, rank, DRPS_ROUND_POSITIONS, &s->positions, err);
    return rc;
}

static int check_memory(const struct collecting *c, struct drps_err *err)
{
    const uint64_t need = (uint64_t)c->workers * FILES_A_RANK * BUFFER_BYTES;
    char text[32];
    if (need <= c->job->memory_bytes / 2) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "a memory limit of %s is needed to read the plans of %" PRIu32 " workers",
                        drps_size_format(2 * need, text, sizeof(text)), c->workers);
}

static int open_sources(struct collecting *c, struct drps_err *err)
{
    const struct drps_plan *whole = c->job->plan;
    uint64_t rows = 0;
    int rc = check_memory(c, err);
    if (rc < 0) return rc;
    c->sources = calloc(c->workers, sizeof(*c->sources));
    if (!c->sources) return no_memory(err);
    for (uint32_t r = 0; r < c->workers && rc == 0; r++)
        rc = open_source(c, r, &rows, err);
    if (rc == 0 && rows != whole->info.rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: the ranks have %" PRIu64 " rows of %" PRIu64,
                          whole->dir, rows, whole->info.rows);
    return rc;
}

static void close_sources(struct collecting *c)
{
    for (uint32_t r = 0; c->sources && r < c->workers; r++) {
        struct source *s = &c->sources[r];
        drps_steps_close(s->rows);
        drps_steps_close(s->bodies);
        drps_steps_close(s->positions);
        drps_plan_close(s->part);
        free(s->uses);
    }
    free(c->sources);
}

/* ---- Rounds ---- */

/* All that the workers' batches have of this rank's rows, under their placed ids. */
static int read_uses(struct collecting *c, uint32_t rank, uint64_t round, struct drps_err *err)
{
    struct source *s = &c->sources[rank];
    const struct drps_plan_info *info = &plan_of(c, rank)->info;
    const uint32_t first = (uint32_t)info->ranks.first_row;
    const uint32_t *rows;
    const void *record;
    size_t n, bytes;
    int rc = drps_steps_rows(s->rows, round, info->rows, &rows, &n, err);
    if (rc == 0) rc = drps_steps_record(s->positions, round, &record, &bytes, err);
    if (rc < 0) return rc;
    const size_t most = (size_t)info->ranks.max_round_uses;
    if (drps_array_reserve(&s->uses, &s->uses_cap, most, sizeof(*s->uses))) return no_memory(err);
    rc = drps_positions_decode(record, bytes, c->workers, n, most, s->uses, s->from, err);
    if (rc < 0) return drps_steps_fault(s->positions, round, err);
    for (size_t i = 0; i < s->from[c->workers]; i++)
        s->uses[i] = first + rows[s->uses[i]];
    return 0;
}

static int add_record(struct drps_recwriter *w, const void *data, size_t bytes,
                      struct drps_err *err)
{
    const struct drps_piece piece = {data, bytes};
    return drps_recwriter_add(w, &piece, 1, err);
}

/* The rows of a worker's batch: those that the servers have, one after another. */
static int write_rows(struct collecting *c, uint32_t worker, struct drps_err *err)
{
    size_t n = 0;
    for (uint32_t r = 0; r < c->workers; r++) {
        const struct source *s = &c->sources[r];
        const size_t more = s->from[worker + 1] - s->from[worker];
        if (drps_array_reserve(&c->list, &c->list_cap, n + more, sizeof(*c->list)))
            return no_memory(err);
        memcpy(c->list + n, s->uses + s->from[worker], more * sizeof(*c->list));
        n += more;
    }
    if (drps_array_reserve(&c->packed, &c->packed_cap, drps_list_encode_bound(n), 1))
        return no_memory(err);
    return add_record(c->rows, c->packed, drps_list_encode_dense(c->list, n, c->packed), err);
}

static int collect_batch(struct collecting *c, uint32_t worker, uint64_t round,
                         struct drps_err *err)
{
    const void *body;
    size_t bytes;
    int rc = drps_steps_record(c->sources[worker].bodies, round, &body, &bytes, err);
    if (rc < 0 || !drps_batch_samples(body, bytes)) return rc;
    rc = add_record(c->data, body, bytes, err);
    return rc == 0 ? write_rows(c, worker, err) : rc;
}

static int collect_round(struct collecting *c, uint64_t round, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t r = 0; r < c->workers && rc == 0; r++)
        rc = read_uses(c, r, round, err);
    for (uint32_t w = 0; w < c->workers && rc == 0; w++)
        rc = collect_batch(c, w, round, err);
    return rc;
}

static int add_unmarked(struct drps_recwriter *w, const void *body, size_t bytes,
                        struct drps_err *err)
{
    char head[DRPS_BATCH_HEAD_BYTES];
    if (bytes < sizeof(head)) return add_record(w, body, bytes, err); /* found out later */
    drps_batch_unmark(body, head);
    const struct drps_piece pieces[] = {{head, sizeof(head)},
                                        {(const char *)body + sizeof(head), bytes - sizeof(head)}};
    return drps_recwriter_add(w, pieces, 2, err);
}

/* With one worker both records are what is wanted, but for marks that the new plan has not. */
static int copy_batch(struct collecting *c, uint64_t step, struct drps_err *err)
{
    const struct source *s = &c->sources[0];
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(s->bodies, step, &record, &bytes, err);
    if (rc == 0)
        rc = c->job->unmarked ? add_unmarked(c->data, record, bytes, err)
                              : add_record(c->data, record, bytes, err);
    if (rc == 0) rc = drps_steps_record(s->rows, step, &record, &bytes, err);
    return rc == 0 ? add_record(c->rows, record, bytes, err) : rc;
}

static int collect_steps(struct collecting *c, uint64_t first, uint64_t end, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t t = first; t < end && rc == 0; t++)
        rc = c->workers > 1 ? collect_round(c, t, err) : copy_batch(c, t, err);
    return rc;
}

/* ---- All ---- */

struct copy {
    const struct drps_io *io;
    const char *path;
    int fd;
    uint64_t bytes;
};

static int copy_piece(void *ctx, const void *data, size_t n, struct drps_err *err)
{
    struct copy *c = ctx;
    int rc = drps_io_write_at(c->io, c->fd, data, n, c->bytes, c->path, err);
    c->bytes += n;
    return rc;
}

static int copy_names(const struct collect_job *job, struct drps_err *err)
{
    char *path = drps_path_join(job->to, DRPS_FILE_NAMES);
    struct copy c = {.io = job->io, .path = path, .fd = -1};
    if (!path) return no_memory(err);
    int rc = drps_io_open(job->io, path, O_WRONLY | O_CREAT | O_TRUNC, &c.fd, err);
    if (rc == 0) rc = drps_plan_read_file(job->plan, DRPS_FILE_NAMES, copy_piece, &c, err);
    if (rc == 0) rc = drps_io_sync(job->io, c.fd, path, err);
    drps_io_close(job->io, c.fd);
    free(path);
    return rc;
}

static int open_writer(const struct collect_job *job, int file, struct drps_recwriter **out,
                       struct drps_err *err)
{
    char *path = drps_path_join(job->to, drps_round_file[file].name);
    if (!path) return no_memory(err);
    int rc = drps_recwriter_open(job->io, path, drps_round_file[file].kind, out, err);
    free(path);
    return rc;
}

int drps_collect_batches(const struct collect_job *job, uint64_t *batches_out,
                         uint64_t *eval_batches_out, struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    struct collecting c = {.job = job, .workers = info->ranks.count};
    int rc = open_sources(&c, err);
    if (rc == 0) rc = open_writer(job, DRPS_ROUND_DATA, &c.data, err);
    if (rc == 0) rc = open_writer(job, DRPS_ROUND_ROWS, &c.rows, err);
    if (rc == 0) rc = collect_steps(&c, 0, info->batches, err);
    if (rc == 0) *batches_out = drps_recwriter_count(c.data);
    if (rc == 0) rc = collect_steps(&c, info->batches, info->batches + info->eval_batches, err);
    if (rc == 0) *eval_batches_out = drps_recwriter_count(c.data) - *batches_out;
    if (rc == 0) rc = drps_recwriter_finish(c.data, err);
    if (rc == 0) rc = drps_recwriter_finish(c.rows, err);
    drps_recwriter_close(c.data);
    drps_recwriter_close(c.rows);
    close_sources(&c);
    free(c.list);
    free(c.packed);
    return rc == 0 ? copy_names(job, err) : rc;
}

/* ---- Blocks ---- */

static int add_blocks(const struct drps_plan *whole, uint32_t rank, uint32_t **first, size_t *cap,
                      uint64_t *blocks, struct drps_err *err)
{
    struct drps_plan *part;
    uint32_t *more;
    int rc = drps_plan_open_rank(whole->io, whole->dir, rank, &part, err);
    if (rc < 0) return rc;
    rc = drps_plan_blocks(part, &more, err);
    const uint64_t n = part->info.blocks;
    if (rc == 0 && drps_array_reserve(first, cap, *blocks + n + 1, sizeof(**first)))
        rc = drps_err_set(err, -ENOMEM, "no memory for block boundaries");
    for (uint64_t b = 0; b <= n && rc == 0; b++)
        (*first)[*blocks + b] = (uint32_t)part->info.ranks.first_row + more[b];
    if (rc == 0) *blocks += n;
    free(more);
    drps_plan_close(part);
    return rc;
}

int drps_collect_blocks(const struct drps_plan *plan, uint32_t **first_out, uint64_t *blocks_out,
                        struct drps_err *err)
{
    size_t cap = 0;
    int rc = 0;
    *first_out = NULL;
    *blocks_out = plan->info.blocks;
    if (plan->info.ranks.count == 1) return drps_plan_blocks(plan, first_out, err);
    *blocks_out = 0;
    for (uint32_t r = 0; r < plan->info.ranks.count && rc == 0; r++)
        rc = add_blocks(plan, r, first_out, &cap, blocks_out, err);
    return rc;
}
