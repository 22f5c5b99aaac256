/* The simulation of a relay store's memory; drps_moves.h has the idea. */
#include "storage/relay/drps_moves.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum {
    COUNTS_MOST = 1 << 20,
    DISTANCE_LEAST = 16,
};

/* The longest use distance that is counted by itself. */
static uint32_t most_distance(uint32_t windows, uint64_t memory_bytes)
{
    const uint64_t fit = memory_bytes / sizeof(uint32_t) / windows;
    uint32_t most = COUNTS_MOST / windows;
    if (most > fit) most = (uint32_t)fit;
    if (most < DISTANCE_LEAST) most = DISTANCE_LEAST;
    return most < windows ? most : windows;
}

int drps_moves_init(struct drps_moves *m, uint32_t windows, uint64_t memory_bytes)
{
    *m = (struct drps_moves){.windows = windows, .most = most_distance(windows, memory_bytes)};
    m->counts = calloc(windows, (m->most + 1) * sizeof(*m->counts));
    m->room = drps_array_new(windows, sizeof(*m->room));
    return m->counts && m->room ? 0 : -ENOMEM;
}

void drps_moves_destroy(struct drps_moves *m)
{
    free(m->counts);
    free(m->room);
    *m = (struct drps_moves){0};
}

int drps_moves_read(struct drps_moves *m, const struct drps_window_source *source, uint64_t frames,
                    struct drps_use_distances *next, struct drps_err *err)
{
    struct drps_store_window head = {0}, after = {0};
    for (uint32_t w = 0; w < m->windows; w++) {
        int rc = source->read(source->ctx, w, &head, NULL, next, NULL, err);
        if (rc == 0)
            rc = source->read(source->ctx, (w + 1) % m->windows, &after, NULL, NULL, NULL, err);
        if (rc < 0) return rc;
        const uint64_t pair = m->windows == 1 ? head.n : head.leaving + after.n;
        m->room[w] = frames > pair ? frames - pair : 0;
        for (size_t i = 0; i < next->n_far; i++)
            if (next->far[i] > 1) ++*drps_moves_count(m, w, next->far[i]);
    }
    return 0;
}

/* The store's memory. Windows are numbered on over epochs. */
struct memory {
    const struct drps_moves *m;
    uint64_t frames, spill_rows;
    uint64_t *waiting; /* own: [windows] rows that wait for each window */
    uint64_t waiting_n, written;
    uint64_t first, next, last; /* windows of the run that is being written; none if next > last */
};

/* Rows leave window q; `room` frames were left while it and the next one were open. */
static void close_window(struct memory *s, uint64_t q, uint64_t room)
{
    const struct drps_moves *m = s->m;
    const uint32_t w = (uint32_t)(q % m->windows);
    const uint64_t free_frames = room > s->waiting_n ? room - s->waiting_n : 0;
    const int queues = drps_relay_queues(free_frames, s->frames);
    s->written += *drps_moves_count(m, w, m->most + 1);
    for (uint32_t d = 2; d <= m->most; d++) {
        const uint64_t n = *drps_moves_count(m, w, d);
        if (d == m->windows && queues) {
            s->written += n;
            continue;
        }
        s->waiting[(w + d) % m->windows] += n;
        s->waiting_n += n;
    }
}

/* Begin a run before window q opens, as spill.c does. */
static void begin_run(struct memory *s, uint64_t q)
{
    const uint64_t usual = s->spill_rows;
    uint64_t n = 0;
    s->last = q + s->m->windows - 2;
    for (s->first = s->last + 1; n < usual && s->first > q + 1;)
        n += s->waiting[--s->first % s->m->windows];
    s->next = s->first;
}

static void end_run_in_time(struct memory *s, uint64_t q)
{
    if (s->first <= q + 2) s->next = s->last + 1;
}

/* Window q opens, beside which rows can wait in `room` frames. */
static void open_window(struct memory *s, uint64_t q, uint64_t room)
{
    uint64_t *own = &s->waiting[q % s->m->windows];
    s->waiting_n -= *own;
    *own = 0;
    end_run_in_time(s, q);
    while (s->waiting_n > room) {
        if (s->next > s->last) begin_run(s, q);
        uint64_t *list = &s->waiting[s->next++ % s->m->windows];
        s->waiting_n -= *list;
        s->written += *list;
        *list = 0;
    }
    end_run_in_time(s, q);
}

int drps_moves_written(const struct drps_moves *m, uint64_t frames, unsigned share,
                       uint64_t *rows_out)
{
    struct memory s = {
        .m = m, .frames = frames, .spill_rows = drps_relay_spill_rows(frames, share), .next = 1};
    *rows_out = 0;
    if (!frames) return 0;
    s.waiting = calloc(m->windows, sizeof(*s.waiting));
    if (!s.waiting) return -ENOMEM;
    for (uint64_t q = 0; q < 2 * (uint64_t)m->windows; q++) {
        if (q == m->windows) s.written = 0; /* the first epoch begins with empty memory */
        close_window(&s, q, m->room[q % m->windows]);
        open_window(&s, q + 2, m->room[(q + 1) % m->windows]);
    }
    free(s.waiting);
    *rows_out = s.written;
    return 0;
}
