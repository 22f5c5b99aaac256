/* Hold limits from a pass over all windows, and lists of held rows in blocks of some frames. */
#include "storage/relay/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/relay/drps_hold_limit.h"

enum { BLOCK_FRAMES = 30 };

#define NO_BLOCK UINT32_MAX

/* ---- Planning ---- */

/* How many rows leave each window for which other. rows [windows + 1] is scratch. */
static int count_distances(struct drps_hold_limit *limit, const struct drps_window_source *source,
                           uint64_t frames, struct drps_use_distances *next, uint32_t *rows,
                           uint64_t *leaving_out, struct drps_sends *sends, struct drps_err *err)
{
    struct drps_store_window head = {0}, after = {0};
    for (uint32_t w = 0; w < limit->windows; w++) {
        int rc = source->read(source->ctx, w, &head, NULL, next, NULL, err);
        if (rc == 0)
            rc = source->read(source->ctx, (w + 1) % limit->windows, &after, NULL, NULL, NULL, err);
        if (rc < 0) return rc;
        const uint64_t pair = limit->windows == 1 ? head.n : head.leaving + after.n;
        limit->room[w] = frames > pair ? frames - pair : 0;
        *leaving_out += head.leaving;
        memset(rows, 0, (limit->windows + 1) * sizeof(*rows));
        for (size_t i = 0; i < next->n_far; i++)
            rows[next->far[i]]++;
        for (uint32_t distance = 2; distance <= limit->windows; distance++)
            *drps_hold_limit_count(limit, w, distance) += rows[distance];
        if (sends) drps_sends_add(sends, w, rows);
    }
    return 0;
}

int drps_hold_plan(const struct drps_window_source *source, uint64_t frames, uint64_t memory_bytes,
                   struct drps_use_distances *next, uint32_t *limits_out, uint64_t *sent_out,
                   struct drps_sends *sends, struct drps_err *err)
{
    struct drps_hold_limit limit;
    uint64_t leaving = 0;
    *sent_out = 0;
    uint32_t *rows = drps_array_new((size_t)source->windows + 1, sizeof(*rows));
    int rc = drps_hold_limit_init(&limit, source->windows, memory_bytes);
    if (rc == 0 && !rows) rc = -ENOMEM;
    if (rc < 0) (void)drps_err_set(err, rc, "no memory to plan which rows stay in memory");
    if (rc == 0) rc = count_distances(&limit, source, frames, next, rows, &leaving, sends, err);
    if (rc == 0) *sent_out = leaving - drps_hold_limit_hold(&limit, limits_out);
    drps_hold_limit_destroy(&limit);
    free(rows);
    return rc;
}

/* ---- Lists ---- */

struct block {
    uint32_t next; /* block, or NO_BLOCK */
    uint32_t n;
    uint32_t frames[BLOCK_FRAMES];
};

struct list {
    uint32_t first, last; /* blocks; NO_BLOCK: none */
    uint64_t n;
};

struct drps_held_rows {
    struct block *blocks; /* own */
    size_t bytes;
    uint32_t free;      /* the first block that no list has; NO_BLOCK: none */
    struct list *lists; /* own: [windows] */
};

struct drps_held_rows *drps_held_rows_new(uint32_t windows, uint64_t frames)
{
    const uint64_t blocks = frames / BLOCK_FRAMES + windows; /* each list's last one has room */
    struct drps_held_rows *held = calloc(1, sizeof(*held));
    if (!held) return NULL;
    held->bytes = (size_t)blocks * sizeof(*held->blocks);
    held->blocks = blocks < NO_BLOCK ? drps_pages_new(held->bytes) : NULL;
    held->lists = drps_array_new(windows, sizeof(*held->lists));
    if (!held->blocks || !held->lists) {
        drps_held_rows_free(held);
        return NULL;
    }
    for (uint32_t b = 0; b < blocks; b++)
        held->blocks[b].next = b + 1 < blocks ? b + 1 : NO_BLOCK;
    for (uint32_t w = 0; w < windows; w++)
        held->lists[w] = (struct list){.first = NO_BLOCK, .last = NO_BLOCK};
    return held;
}

void drps_held_rows_free(struct drps_held_rows *held)
{
    if (!held) return;
    drps_pages_free(held->blocks, held->bytes);
    free(held->lists);
    free(held);
}

uint64_t drps_held_rows_count(const struct drps_held_rows *held, uint32_t window)
{
    return held->lists[window].n;
}

static int add_block(struct drps_held_rows *held, struct list *list, struct drps_err *err)
{
    const uint32_t b = held->free;
    if (b == NO_BLOCK)
        return drps_err_set(err, -EINVAL, "more rows are held in memory than it has room for");
    held->free = held->blocks[b].next;
    held->blocks[b].next = NO_BLOCK;
    held->blocks[b].n = 0;
    if (list->last == NO_BLOCK)
        list->first = b;
    else
        held->blocks[list->last].next = b;
    list->last = b;
    return 0;
}

int drps_held_rows_add(struct drps_held_rows *held, uint32_t window, const uint32_t *frames,
                       size_t n, struct drps_err *err)
{
    struct list *list = &held->lists[window];
    while (n) {
        if (list->last == NO_BLOCK || held->blocks[list->last].n == BLOCK_FRAMES) {
            int rc = add_block(held, list, err);
            if (rc < 0) return rc;
        }
        struct block *b = &held->blocks[list->last];
        const size_t now = n < BLOCK_FRAMES - b->n ? n : BLOCK_FRAMES - b->n;
        memcpy(b->frames + b->n, frames, now * sizeof(*frames));
        b->n += (uint32_t)now;
        list->n += now;
        frames += now;
        n -= now;
    }
    return 0;
}

void drps_held_rows_take(struct drps_held_rows *held, uint32_t window, int clear,
                         uint32_t *frames_out)
{
    struct list *list = &held->lists[window];
    for (uint32_t b = list->first; b != NO_BLOCK; b = held->blocks[b].next) {
        memcpy(frames_out, held->blocks[b].frames, held->blocks[b].n * sizeof(*frames_out));
        frames_out += held->blocks[b].n;
    }
    if (!clear || list->first == NO_BLOCK) return;
    held->blocks[list->last].next = held->free;
    held->free = list->first;
    *list = (struct list){.first = NO_BLOCK, .last = NO_BLOCK};
}
