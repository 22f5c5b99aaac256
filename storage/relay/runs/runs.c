/* Opening and closing runs; drps_runs.h has the idea, runs_internal.h the memory. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "storage/relay/runs/runs_internal.h"

static size_t behind_of(const struct drps_runs_config *c)
{
    return c->looking ? 0 : c->behind;
}

/* The queue, runs, and one that they are merged to where there are as many as there may be. */
static size_t places_of(const struct drps_runs_config *c)
{
    return (size_t)c->runs + 2;
}

/* A chunk for each of these. */
static size_t reads_of(const struct drps_runs_config *c)
{
    return places_of(c) + c->ahead;
}

/* ---- Opening and closing ---- */

void drps_runs_close(struct drps_runs *r)
{
    if (!r) return;
    if (r->saves || r->config.looking)
        drps_aio_close(r->aio);
    else
        drps_aio_discard(r->aio);
    drps_pages_free(r->mem, r->mem_bytes);
    drps_chunk_map_destroy(&r->map);
    free(r->runs);
    free(r->needs);
    free(r->asks);
    free(r->aside.runs);
    free(r->chunks);
    free(r->free);
    free(r->collected);
    free(r->pieces);
    free(r->reads);
    free(r->free_reads);
    free(r);
}

static int check(const struct drps_runs_config *c, struct drps_err *err)
{
    const int writes = c->chunk_bytes && c->write_chunks &&
                       c->write_chunks <= DRPS_AIO_PIECES_MAX && c->behind >= c->write_chunks + 2 &&
                       c->write_chunks <= UINT32_MAX / c->chunk_bytes;
    if (!c->row_bytes || !c->chunk_bytes || c->chunk_bytes % DRPS_AIO_ALIGN ||
        c->chunk_bytes > DRPS_RUNS_CHUNK_BYTES_MOST || c->runs < DRPS_RUNS_LEAST || !c->ahead ||
        !c->file_chunks || c->file_chunks >= DRPS_NO_CHUNK ||
        c->file_chunks > INT64_MAX / c->chunk_bytes ||
        (uint64_t)c->runs + c->ahead + c->behind >= INT32_MAX || (c->looking && !c->saved) ||
        !(c->looking || writes))
        return drps_err_set(err, -EINVAL, "%u runs of rows in chunks of %zu bytes", c->runs,
                            c->chunk_bytes);
    return 0;
}

static int allocate(struct drps_runs *r, const struct drps_runs_config *c)
{
    const size_t places = places_of(c);
    r->behind_n = behind_of(c);
    r->reads_n = reads_of(c);
    r->mem_bytes = (r->behind_n + r->reads_n) * c->chunk_bytes;
    r->mem = drps_pages_new(r->mem_bytes);
    r->runs = drps_array_new(places, sizeof(*r->runs));
    r->needs = drps_array_new(places, sizeof(*r->needs));
    r->asks = drps_array_new(places, sizeof(*r->asks));
    r->aside.runs = drps_array_new(places, sizeof(*r->runs));
    r->chunks = drps_array_new(r->behind_n, sizeof(*r->chunks));
    r->free = drps_array_new(r->behind_n, sizeof(*r->free));
    r->collected = drps_array_new(c->write_chunks, sizeof(*r->collected));
    r->pieces = drps_array_new((size_t)DRPS_RUNS_WRITES * c->write_chunks, sizeof(*r->pieces));
    r->reads = drps_array_new(r->reads_n, sizeof(*r->reads));
    r->free_reads = drps_array_new(r->reads_n, sizeof(*r->free_reads));
    return r->mem && r->runs && r->needs && r->asks && r->aside.runs && r->chunks && r->free &&
                   r->collected && r->pieces && r->reads && r->free_reads
               ? 0
               : -ENOMEM;
}

static void lay_out(struct drps_runs *r)
{
    for (size_t i = r->behind_n; i-- > 0;)
        r->free[r->free_n++] = (int32_t)i;
    for (uint32_t i = 0; i < DRPS_RUNS_WRITES; i++) {
        r->writes[i].chunks = r->pieces + (size_t)i * r->config.write_chunks;
        r->idle[r->idle_n++] = DRPS_RUNS_WRITES - 1 - i;
    }
    drps_run_init(&r->runs[0]);
    r->n = 1;
    drps_runs_forget_reads(r, 0);
    r->queuer = r->merger = (struct drps_runs_writer){.tail = DRPS_RUNS_NONE};
    drps_runs_begin_out(r);
}

/* The map comes last: a saved store says how large it is, and the file must be as large. */
static int set_up(struct drps_runs *r, uint64_t chunks, struct drps_err *err)
{
    const struct drps_runs_config *c = &r->config;
    int rc = allocate(r, c);
    if (rc < 0)
        return drps_err_set(err, rc, "no memory for %zu chunks of %zu bytes",
                            r->behind_n + r->reads_n, c->chunk_bytes);
    lay_out(r);
    const struct drps_aio_config aio = {
        .io = c->io,
        .path = c->path,
        .file = c->looking ? DRPS_AIO_LOOK
                : c->saved ? DRPS_AIO_USE
                           : DRPS_AIO_MAKE,
        .file_bytes = chunks * c->chunk_bytes,
        .buffers = r->mem,
        .buffers_bytes = r->mem_bytes,
        .depth = DRPS_RUNS_WRITES + DRPS_RUNS_READS,
        .threads_only = c->threads_only,
    };
    rc = drps_aio_open(&aio, &r->aio, err);
    if (rc < 0) return rc;
    if (drps_chunk_map_init(&r->map, chunks) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for a map of %llu chunks",
                            (unsigned long long)chunks);
    drps_runs_note(r, 0);
    return c->saved ? drps_runs_restore(r, err) : 0;
}

int drps_runs_open(const struct drps_runs_config *config, struct drps_runs **r_out,
                   struct drps_err *err)
{
    *r_out = NULL;
    uint64_t chunks = config->file_chunks;
    int rc = check(config, err);
    if (rc == 0 && config->saved) rc = drps_runs_restore_size(config, &chunks, err);
    if (rc < 0) return rc;
    struct drps_runs *r = calloc(1, sizeof(*r));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory for %u runs of rows", config->runs);
    r->config = *config;
    r->written = drps_runs_written;
    r->came = drps_runs_came;
    r->flush = drps_runs_flush;
    if (config->saved && !config->looking)
        r->saves = 1 << DRPS_RUNS_RESTORED | 1 << DRPS_RUNS_OLDER;
    rc = set_up(r, chunks, err);
    if (rc < 0) {
        drps_runs_close(r);
        return rc;
    }
    r->config.saved = NULL; /* borrowed until here */
    *r_out = r;
    return 0;
}

/* ---- About ---- */

uint64_t drps_runs_memory(const struct drps_runs_config *c)
{
    const uint64_t a_run = 2 * sizeof(struct drps_run) + 2 * sizeof(uint64_t);
    const uint64_t a_write = c->chunk_bytes + sizeof(struct drps_runs_chunk) + sizeof(int32_t);
    const uint64_t a_read = c->chunk_bytes + sizeof(struct drps_runs_read) + sizeof(int32_t);
    const uint64_t a_piece = DRPS_RUNS_WRITES * sizeof(struct iovec) + sizeof(int32_t);
    return sizeof(struct drps_runs) + places_of(c) * a_run + behind_of(c) * a_write +
           reads_of(c) * a_read + c->write_chunks * a_piece + drps_chunk_map_bytes(c->file_chunks);
}

uint64_t drps_runs_merged_bytes(const struct drps_runs *r)
{
    return r->merged_bytes;
}

uint32_t drps_runs_live(const struct drps_runs *r)
{
    return r->n - 1;
}

void drps_runs_stats(const struct drps_runs *r, struct drps_iostat *out)
{
    drps_aio_stats(r->aio, out);
}

void drps_runs_about(const struct drps_runs *r, struct drps_aio_about *out)
{
    drps_aio_about(r->aio, out);
}
