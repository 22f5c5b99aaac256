/* Writing runs: chunks are filled, collected when they are full or their run ends, and written many
 * at a time. */
#include <errno.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "storage/relay/runs/rowcopy.h"
#include "storage/relay/runs/runs_internal.h"
#include "storage/relay/runs/section.h"

enum { GROW = 8 }; /* the file grows by one part of so many */

void drps_runs_written(struct drps_runs *r, uint32_t number)
{
    const struct drps_runs_write *w = &r->writes[number];
    for (uint32_t i = 0; i < w->n; i++) {
        drps_chunk_map_written(&r->map, w->first + i);
        r->free[r->free_n++] =
            (int32_t)((size_t)((char *)w->chunks[i].iov_base - r->mem) / r->config.chunk_bytes);
    }
    r->idle[r->idle_n++] = number;
}

static int is_live(const struct drps_runs *r, const struct drps_runs_writer *w)
{
    return w != &r->writer;
}

static struct drps_run *run_of(struct drps_runs *r, const struct drps_runs_writer *w)
{
    if (!is_live(r, w)) return &r->out;
    return w == &r->queuer ? r->runs : &r->runs[r->merging.at];
}

/* The buffer's chunk becomes the last one of its run. */
static int append(struct drps_runs *r, const struct drps_runs_chunk *c, uint32_t chunk,
                  struct drps_err *err)
{
    struct drps_run *run = run_of(r, c->writer);
    drps_chunk_map_append(&r->map, &run->list, chunk, c->bytes, c->sum, c->need);
    int rc = run->chunk == DRPS_NO_CHUNK ? drps_run_enter(r, run, chunk, err) : 0;
    if (is_live(r, c->writer)) drps_runs_note(r, (uint32_t)(run - r->runs));
    return rc;
}

/* Write n chunks to the file, where `first` and those behind it are free. */
static int write_chunks(struct drps_runs *r, const int32_t *buffers, uint32_t n, uint64_t first,
                        struct drps_err *err)
{
    int rc = 0;
    while (!r->idle_n && rc == 0)
        rc = drps_runs_reap(r, 1, err);
    if (rc < 0) return rc;
    const uint32_t number = r->idle[--r->idle_n];
    struct drps_runs_write *w = &r->writes[number];
    w->first = (uint32_t)first;
    w->n = n;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        w->chunks[i] = (struct iovec){.iov_base = drps_runs_buffer(r, buffers[i]),
                                      .iov_len = r->config.chunk_bytes};
        rc = append(r, &r->chunks[buffers[i]], w->first + i, err);
    }
    if (rc < 0) return rc;
    const struct drps_aio_op op = {.pieces = w->chunks,
                                   .pieces_n = n,
                                   .bytes = n * (uint32_t)r->config.chunk_bytes,
                                   .offset = first * r->config.chunk_bytes,
                                   .write = 1,
                                   .tag = number};
    return drps_aio_submit(r->aio, &op, 1, err);
}

/* The file gets an eighth more chunks; on a disk that has no room for these, n more. */
static int make_room(struct drps_runs *r, uint32_t n, struct drps_err *err)
{
    if (drps_runs_grow(r, r->map.n + r->map.n / GROW + n, NULL) == 0) return 0;
    return drps_runs_grow(r, r->map.n + n, err);
}

/* By one request, when so many free chunks lie side by side. What finds no room stays collected. */
int drps_runs_flush(struct drps_runs *r, struct drps_err *err)
{
    uint32_t done = 0;
    int rc = 0;
    while (done < r->collected_n && rc == 0) {
        uint32_t now;
        const uint64_t first = drps_chunk_map_take(&r->map, r->collected_n - done, &now);
        rc = now ? write_chunks(r, r->collected + done, now, first, err)
                 : make_room(r, r->collected_n - done, err);
        done += now;
    }
    r->collected_n -= done;
    memmove(r->collected, r->collected + done, r->collected_n * sizeof(*r->collected));
    return rc;
}

/* ---- Chunks ---- */

/* The chunk that is filled, full or not, is collected, to be written with others. */
static int end_chunk(struct drps_runs *r, struct drps_runs_writer *w, struct drps_err *err)
{
    int rc = r->collected_n < r->config.write_chunks ? 0 : drps_runs_flush(r, err); /* once more */
    if (rc < 0) return rc;
    struct drps_runs_chunk *c = &r->chunks[w->tail];
    c->sum = drps_checksum(drps_runs_buffer(r, w->tail), c->bytes);
    r->collected[r->collected_n++] = w->tail;
    w->tail = DRPS_RUNS_NONE;
    return r->collected_n == r->config.write_chunks ? drps_runs_flush(r, err) : 0;
}

static int begin_chunk(struct drps_runs *r, struct drps_runs_writer *w, struct drps_err *err)
{
    while (!r->free_n) {
        int rc = drps_runs_await_one(r, err);
        if (rc < 0) return rc;
    }
    w->tail = r->free[--r->free_n];
    r->chunks[w->tail] = (struct drps_runs_chunk){.writer = w, .need = w->window};
    return 0;
}

/* Where the next byte goes, and how many have room there: one or more. */
static int find_room(struct drps_runs *r, struct drps_runs_writer *w, char **to_out, size_t *n_out,
                     struct drps_err *err)
{
    int rc = w->tail == DRPS_RUNS_NONE ? begin_chunk(r, w, err) : 0;
    if (rc < 0) return rc;
    const uint32_t bytes = r->chunks[w->tail].bytes;
    *to_out = drps_runs_buffer(r, w->tail) + bytes;
    *n_out = r->config.chunk_bytes - bytes;
    return 0;
}

/* n bytes were put there. */
static int put(struct drps_runs *r, struct drps_runs_writer *w, size_t n, struct drps_err *err)
{
    struct drps_runs_chunk *c = &r->chunks[w->tail];
    c->bytes += (uint32_t)n;
    run_of(r, w)->bytes += n;
    return c->bytes == r->config.chunk_bytes ? end_chunk(r, w, err) : 0;
}

/* ---- Sections ---- */

/* A header lies in one chunk: where it has no room, the chunk ends early. */
int drps_runs_put_header(struct drps_runs *r, struct drps_runs_writer *w, uint64_t window,
                         uint64_t rows, struct drps_err *err)
{
    char header[DRPS_SECTION_BYTES_MOST], *to = NULL;
    struct drps_section section = {.later = window - w->window, .rows = rows};
    size_t room, n = drps_section_put(header, &section);
    int rc = 0;
    if (w->tail != DRPS_RUNS_NONE && r->config.chunk_bytes - r->chunks[w->tail].bytes < n)
        rc = end_chunk(r, w, err);
    w->window = window;
    if (w->tail == DRPS_RUNS_NONE) {
        section.later = 0;
        n = drps_section_put(header, &section);
    }
    if (rc == 0) rc = find_room(r, w, &to, &room, err);
    if (rc < 0) return rc;
    memcpy(to, header, n);
    return put(r, w, n, err);
}

int drps_runs_put_bytes(struct drps_runs *r, struct drps_runs_writer *w, const char *bytes,
                        size_t n, struct drps_err *err)
{
    while (n) {
        char *to;
        size_t room;
        int rc = find_room(r, w, &to, &room, err);
        if (rc < 0) return rc;
        const size_t now = n < room ? n : room;
        memcpy(to, bytes, now);
        bytes += now;
        n -= now;
        rc = put(r, w, now, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static int put_rows(struct drps_runs *r, struct drps_runs_writer *w, const char *base,
                    const uint32_t *frames, size_t n, struct drps_err *err)
{
    const size_t row_bytes = r->config.row_bytes;
    while (n) {
        char *to;
        size_t room;
        int rc = find_room(r, w, &to, &room, err);
        if (rc < 0) return rc;
        const size_t whole = room / row_bytes, now = n < whole ? n : whole ? whole : 1;
        if (whole) {
            drps_rowcopy_gather(to, base, row_bytes, frames, n, now);
            rc = put(r, w, now * row_bytes, err);
        } else { /* it lies across chunks */
            rc = drps_runs_put_bytes(r, w, base + frames[0] * row_bytes, row_bytes, err);
        }
        if (rc < 0) return rc;
        frames += now;
        n -= now;
    }
    return 0;
}

static int put_section(struct drps_runs *r, struct drps_runs_writer *w, uint64_t window,
                       const char *base, const uint32_t *frames, size_t n, struct drps_err *err)
{
    if (!n || window < w->window || window == DRPS_RUNS_NEVER)
        return drps_err_set(err, -EINVAL, "%s: %zu rows for window %llu after those for %llu",
                            r->config.path, n, (unsigned long long)window,
                            (unsigned long long)w->window);
    int rc = drps_runs_put_header(r, w, window, n, err);
    return rc == 0 ? put_rows(r, w, base, frames, n, err) : rc;
}

int drps_runs_end_writer(struct drps_runs *r, struct drps_runs_writer *w, struct drps_err *err)
{
    int rc = w->tail == DRPS_RUNS_NONE ? 0 : end_chunk(r, w, err);
    return rc == 0 ? drps_runs_flush(r, err) : rc;
}

/* ---- Runs ---- */

void drps_runs_begin_out(struct drps_runs *r)
{
    drps_run_init(&r->out);
    r->writer = (struct drps_runs_writer){.tail = DRPS_RUNS_NONE};
}

int drps_runs_add(struct drps_runs *r, uint64_t window, const char *base, const uint32_t *frames,
                  size_t n, struct drps_err *err)
{
    const uint64_t before = r->out.bytes;
    int rc = put_section(r, &r->writer, window, base, frames, n, err);
    r->added += r->out.bytes - before;
    return rc;
}

int drps_runs_end(struct drps_runs *r, struct drps_err *err)
{
    int rc = drps_runs_end_writer(r, &r->writer, err);
    if (rc < 0) return rc;
    if (r->out.chunk != DRPS_NO_CHUNK) {
        const uint64_t bytes = r->out.bytes, usual = r->config.run_bytes;
        if (bytes < usual) r->added += usual - bytes; /* it takes the place of one */
        drps_runs_insert(r, r->n, &r->out);
    }
    drps_runs_begin_out(r);
    return 0;
}

/* ---- The queue, and what is merged ---- */

int drps_runs_queue(struct drps_runs *r, uint64_t window, const char *base, const uint32_t *frames,
                    size_t n, struct drps_err *err)
{
    return put_section(r, &r->queuer, window, base, frames, n, err);
}

/* The window that needs the chunk that is being filled, or never. */
static uint64_t need_of(const struct drps_runs *r, const struct drps_runs_writer *w)
{
    return w->tail == DRPS_RUNS_NONE ? DRPS_RUNS_NEVER : r->chunks[w->tail].need;
}

uint64_t drps_runs_behind(const struct drps_runs *r)
{
    const uint64_t queue = need_of(r, &r->queuer), merged = need_of(r, &r->merger);
    uint64_t least = queue < merged ? queue : merged;
    for (uint32_t i = 0; i < r->collected_n; i++) {
        const struct drps_runs_chunk *c = &r->chunks[r->collected[i]];
        if (is_live(r, c->writer) && c->need < least) least = c->need;
    }
    return least;
}

int drps_runs_bring(struct drps_runs *r, uint64_t window, struct drps_err *err)
{
    int rc = 0;
    if (drps_runs_behind(r) > window) return 0;
    if (need_of(r, &r->queuer) <= window) rc = end_chunk(r, &r->queuer, err);
    if (rc == 0 && need_of(r, &r->merger) <= window) rc = end_chunk(r, &r->merger, err);
    return rc == 0 ? drps_runs_flush(r, err) : rc;
}
