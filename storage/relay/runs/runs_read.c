/* Reading runs: chunks are asked for ahead, each is compared with its checksum once, and is free
 * again when all of it was taken. */
#include <string.h>

#include "base/drps_checksum.h"
#include "storage/relay/runs/runs_internal.h"
#include "storage/relay/runs/section.h"

enum { TOGETHER = 8 }; /* reads that are handed over by one call */

/* ---- Asking ---- */

void drps_runs_came(struct drps_runs *r, uint32_t read)
{
    r->reads[read].there = 1;
    r->reads_under_way--;
}

static int is_merged(const struct drps_runs *r, uint32_t i)
{
    return i > r->merging.at && i <= r->merging.at + r->merging.n;
}

/* How many buffers are not for runs that are only taken from. Merging that is done at once finds
 * them free; merging little by little gets its own when it begins. */
static uint32_t kept_for_merging(const struct drps_runs *r)
{
    const uint32_t all = r->ahead;
    if (!r->config.spare) return all / 4;
    return r->merging.at ? all / 2 : 0;
}

/* Whether run i can have one buffer more than its first one. */
static int has_room(const struct drps_runs *r, uint32_t i)
{
    const uint32_t all = r->ahead, kept = kept_for_merging(r);
    if (r->extra[0] + r->extra[1] >= all) return 0;
    if (!is_merged(r, i)) return r->extra[0] < all - kept;
    return !r->config.spare || r->extra[1] < kept;
}

void drps_runs_count_extra(struct drps_runs *r)
{
    r->extra[0] = r->extra[1] = 0;
    for (uint32_t i = 0; i < r->n; i++)
        r->extra[is_merged(r, i)] += r->runs[i].extra;
}

int drps_runs_can_ask(const struct drps_runs *r, uint32_t i)
{
    const struct drps_run *run = &r->runs[i];
    return r->asks[i] != DRPS_RUNS_NEVER && (run->first == DRPS_RUNS_NONE || has_room(r, i)) &&
           r->reads_under_way < DRPS_RUNS_READS &&
           !drps_chunk_map_is_busy(&r->map, drps_run_next_to_ask(r, run));
}

void drps_runs_ask(struct drps_runs *r, uint32_t i)
{
    struct drps_run *run = &r->runs[i];
    const uint32_t chunk = drps_run_next_to_ask(r, run);
    const int32_t b = r->free_reads[--r->free_reads_n];
    const uint32_t align = DRPS_AIO_ALIGN;
    r->reads[b] = (struct drps_runs_read){.chunk = chunk, .next = DRPS_RUNS_NONE};
    if (run->first == DRPS_RUNS_NONE) {
        run->first = b;
    } else {
        r->reads[run->last].next = b;
        run->extra++;
        r->extra[is_merged(r, i)]++;
    }
    run->last = b;
    r->pending[r->pending_n++] = (struct drps_aio_op){
        .buf = drps_runs_read_buffer(r, b),
        .bytes = (r->map.bytes[chunk] + align - 1) / align * align,
        .offset = (uint64_t)chunk * r->config.chunk_bytes,
        .tag = DRPS_RUNS_WRITES + (uint32_t)b,
    };
    r->reads_under_way++;
    drps_runs_note(r, i);
}

/* What run i needs for the window that is taken from. */
static int ask_on(struct drps_runs *r, uint32_t i, struct drps_err *err)
{
    while (r->asks[i] <= r->window && drps_runs_can_ask(r, i))
        drps_runs_ask(r, i);
    return r->pending_n < TOGETHER ? 0 : drps_runs_submit(r, err);
}

static void let_go_of_first(struct drps_runs *r, uint32_t i)
{
    struct drps_run *run = &r->runs[i];
    const int32_t b = run->first;
    run->first = r->reads[b].next;
    if (run->first == DRPS_RUNS_NONE) {
        run->last = DRPS_RUNS_NONE;
    } else {
        run->extra--;
        r->extra[is_merged(r, i)]--;
    }
    r->free_reads[r->free_reads_n++] = b;
}

void drps_runs_forget_reads(struct drps_runs *r, uint32_t lent)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->runs[i].first = r->runs[i].last = DRPS_RUNS_NONE;
        r->runs[i].extra = 0;
        drps_runs_note(r, i);
    }
    r->extra[0] = r->extra[1] = 0;
    r->ahead = r->config.ahead - lent;
    r->free_reads_n = 0;
    for (size_t i = r->reads_n; i-- > lent;)
        r->free_reads[r->free_reads_n++] = (int32_t)i;
}

/* ---- The chunk at hand ---- */

static int await_chunk(struct drps_runs *r, uint32_t i, struct drps_err *err)
{
    for (;;) {
        const struct drps_run *run = &r->runs[i];
        if (run->first == DRPS_RUNS_NONE && drps_runs_can_ask(r, i)) drps_runs_ask(r, i);
        if (run->first != DRPS_RUNS_NONE && r->reads[run->first].there) return 0;
        int rc = drps_runs_await_one(r, err);
        if (rc < 0) return rc;
    }
}

static int verify(struct drps_runs *r, int32_t read, struct drps_err *err)
{
    struct drps_runs_read *b = &r->reads[read];
    if (b->whole) return 0;
    if (drps_checksum(drps_runs_read_buffer(r, read), r->map.bytes[b->chunk]) !=
        r->map.sums[b->chunk])
        return drps_runs_wrong_chunk(r, b->chunk, err);
    b->whole = 1;
    return 0;
}

int drps_runs_peek(struct drps_runs *r, uint32_t i, const char **at_out, size_t *n_out,
                   struct drps_err *err)
{
    const struct drps_run *run = &r->runs[i];
    *at_out = NULL;
    *n_out = 0;
    if (run->chunk == DRPS_NO_CHUNK)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: a run ends before all rows of window %llu: check the disk and the "
                            "memory of this machine, then train again",
                            r->config.path, (unsigned long long)run->window);
    int rc = await_chunk(r, i, err);
    if (rc == 0) rc = verify(r, run->first, err);
    if (rc < 0) return rc;
    *at_out = drps_runs_read_buffer(r, run->first) + run->at;
    *n_out = r->map.bytes[run->chunk] - run->at;
    return 0;
}

int drps_runs_skip(struct drps_runs *r, uint32_t i, size_t n, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    const uint32_t bytes = r->map.bytes[run->chunk], next = r->map.next[run->chunk];
    run->at += (uint32_t)n;
    if (run->at < bytes) return 0;
    let_go_of_first(r, i);
    run->bytes -= bytes;
    if (!r->aside.used) drps_chunk_map_give_back(&r->map, &run->list);
    run->chunk = DRPS_NO_CHUNK;
    run->at = 0;
    int rc = next == DRPS_NO_CHUNK ? 0 : drps_run_enter(r, run, next, err);
    drps_runs_note(r, i);
    return rc == 0 ? ask_on(r, i, err) : rc;
}

/* ---- Sections ---- */

int drps_runs_open_section(struct drps_runs *r, uint32_t i, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    struct drps_section section;
    const char *at;
    size_t n;
    int rc = drps_runs_peek(r, i, &at, &n, err);
    if (rc < 0) return rc;
    const size_t header = drps_section_get(at, n, &section);
    const uint64_t bytes = run->bytes - run->at - header;
    if (!header || !section.rows || section.rows > bytes / r->config.row_bytes ||
        section.later >= DRPS_RUNS_NEVER - run->window || (section.later && !run->at))
        return drps_runs_wrong_chunk(r, run->chunk, err);
    run->window += section.later;
    run->left = section.rows;
    return drps_runs_skip(r, i, header, err);
}

/* The next header in the chunk at hand is read at once: it says which window needs the run next. At
 * a chunk's begin the map says so. */
int drps_runs_end_section(struct drps_runs *r, uint32_t i, int *left_out, struct drps_err *err)
{
    const struct drps_run *run = &r->runs[i];
    int rc = run->at ? drps_runs_open_section(r, i, err) : 0;
    drps_runs_note(r, i);
    *left_out = rc == 0 && drps_runs_leave_if_ended(r, i);
    return rc;
}
