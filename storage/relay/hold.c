#include "storage/relay/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/relay/drps_hold_limit.h"

enum { BLOCK_FRAMES = 30 };

#define NO_BLOCK UINT32_MAX

/* ---- Planning ---- */

/* rows [windows + 1] is scratch: of one window, how many leave for which other. */
static int count_ways(struct drps_hold_limit *reach, const struct drps_window_source *source,
                      uint64_t frames, struct drps_use_distances *next, uint32_t *rows,
                      uint64_t *leaving_out, struct drps_sends *sends, struct drps_err *err)
{
    struct drps_store_window head = {0}, after = {0};
    for (uint32_t w = 0; w < reach->windows; w++) {
        int rc = source->read(source->ctx, w, &head, NULL, next, NULL, err);
        if (rc == 0)
            rc = source->read(source->ctx, (w + 1) % reach->windows, &after, NULL, NULL, NULL, err);
        if (rc < 0) return rc;
        const uint64_t pair = reach->windows == 1 ? head.n : head.leaving + after.n;
        reach->room[w] = frames > pair ? frames - pair : 0;
        *leaving_out += head.leaving;
        memset(rows, 0, (reach->windows + 1) * sizeof(*rows));
        for (size_t i = 0; i < next->n_far; i++)
            rows[next->far[i]]++;
        for (uint32_t way = 2; way <= reach->windows; way++)
            *drps_hold_limit_count(reach, w, way) += rows[way];
        if (sends) drps_sends_add(sends, w, rows);
    }
    return 0;
}

int drps_hold_plan(const struct drps_window_source *source, uint64_t frames, uint64_t memory_bytes,
                   struct drps_use_distances *next, uint32_t *reach_out, uint64_t *sent_out,
                   struct drps_sends *sends, struct drps_err *err)
{
    struct drps_hold_limit reach;
    uint64_t leaving = 0;
    *sent_out = 0;
    uint32_t *rows = drps_array_new((size_t)source->windows + 1, sizeof(*rows));
    int rc = drps_hold_limit_init(&reach, source->windows, memory_bytes);
    if (rc == 0 && !rows) rc = -ENOMEM;
    if (rc < 0) (void)drps_err_set(err, rc, "no memory to plan which rows stay in memory");
    if (rc == 0) rc = count_ways(&reach, source, frames, next, rows, &leaving, sends, err);
    if (rc == 0) *sent_out = leaving - drps_hold_limit_hold(&reach, reach_out);
    drps_hold_limit_destroy(&reach);
    free(rows);
    return rc;
}

/* ---- Shelves ---- */

struct block {
    uint32_t next; /* block, or NO_BLOCK */
    uint32_t n;
    uint32_t frames[BLOCK_FRAMES];
};

struct shelf {
    uint32_t first, last; /* blocks; NO_BLOCK: none */
    uint64_t n;
};

struct drps_shelves {
    struct block *blocks; /* own */
    size_t bytes;
    uint32_t vacant;       /* the first of a list */
    struct shelf *shelves; /* own: [windows] */
};

struct drps_shelves *drps_shelves_new(uint32_t windows, uint64_t frames)
{
    const uint64_t blocks = frames / BLOCK_FRAMES + windows; /* each shelf's last one has room */
    struct drps_shelves *s = calloc(1, sizeof(*s));
    if (!s) return NULL;
    s->bytes = (size_t)blocks * sizeof(*s->blocks);
    s->blocks = blocks < NO_BLOCK ? drps_pages_new(s->bytes) : NULL;
    s->shelves = drps_array_new(windows, sizeof(*s->shelves));
    if (!s->blocks || !s->shelves) {
        drps_shelves_free(s);
        return NULL;
    }
    for (uint32_t b = 0; b < blocks; b++)
        s->blocks[b].next = b + 1 < blocks ? b + 1 : NO_BLOCK;
    for (uint32_t w = 0; w < windows; w++)
        s->shelves[w] = (struct shelf){.first = NO_BLOCK, .last = NO_BLOCK};
    return s;
}

void drps_shelves_free(struct drps_shelves *s)
{
    if (!s) return;
    drps_pages_free(s->blocks, s->bytes);
    free(s->shelves);
    free(s);
}

uint64_t drps_shelves_count(const struct drps_shelves *s, uint32_t window)
{
    return s->shelves[window].n;
}

static int add_block(struct drps_shelves *s, struct shelf *shelf, struct drps_err *err)
{
    const uint32_t b = s->vacant;
    if (b == NO_BLOCK)
        return drps_err_set(err, -EINVAL, "more rows are held in memory than it has room for");
    s->vacant = s->blocks[b].next;
    s->blocks[b].next = NO_BLOCK;
    s->blocks[b].n = 0;
    if (shelf->last == NO_BLOCK)
        shelf->first = b;
    else
        s->blocks[shelf->last].next = b;
    shelf->last = b;
    return 0;
}

int drps_shelves_add(struct drps_shelves *s, uint32_t window, const uint32_t *frames, size_t n,
                     struct drps_err *err)
{
    struct shelf *shelf = &s->shelves[window];
    while (n) {
        if (shelf->last == NO_BLOCK || s->blocks[shelf->last].n == BLOCK_FRAMES) {
            int rc = add_block(s, shelf, err);
            if (rc < 0) return rc;
        }
        struct block *b = &s->blocks[shelf->last];
        const size_t now = n < BLOCK_FRAMES - b->n ? n : BLOCK_FRAMES - b->n;
        memcpy(b->frames + b->n, frames, now * sizeof(*frames));
        b->n += (uint32_t)now;
        shelf->n += now;
        frames += now;
        n -= now;
    }
    return 0;
}

void drps_shelves_take(struct drps_shelves *s, uint32_t window, int clear, uint32_t *frames_out)
{
    struct shelf *shelf = &s->shelves[window];
    for (uint32_t b = shelf->first; b != NO_BLOCK; b = s->blocks[b].next) {
        memcpy(frames_out, s->blocks[b].frames, s->blocks[b].n * sizeof(*frames_out));
        frames_out += s->blocks[b].n;
    }
    if (!clear || shelf->first == NO_BLOCK) return;
    s->blocks[shelf->last].next = s->vacant;
    s->vacant = shelf->first;
    *shelf = (struct shelf){.first = NO_BLOCK, .last = NO_BLOCK};
}
