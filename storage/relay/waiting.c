/* Lists of frames in blocks of some, so that their order is kept and none needs room of its own. */
#include "storage/relay/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { BLOCK_FRAMES = 30 };

#define NO_BLOCK UINT32_MAX

struct block {
    uint32_t next; /* block, or NO_BLOCK */
    uint32_t n;
    uint32_t frames[BLOCK_FRAMES];
};

struct list {
    uint32_t first, last; /* blocks; NO_BLOCK: none */
    uint64_t n;
};

struct drps_waiting {
    struct block *blocks; /* own */
    size_t bytes;
    uint64_t most; /* frames of a list */
    uint32_t free; /* the first block that no list has; NO_BLOCK: none */
    uint32_t windows;
    struct list *lists; /* own: [windows] */
};

struct drps_waiting *drps_waiting_new(uint32_t windows, uint64_t frames, uint64_t most)
{
    const uint64_t blocks = frames / BLOCK_FRAMES + windows; /* each list's last one has room */
    struct drps_waiting *waiting = calloc(1, sizeof(*waiting));
    if (!waiting) return NULL;
    waiting->most = most;
    waiting->windows = windows;
    waiting->bytes = (size_t)blocks * sizeof(*waiting->blocks);
    waiting->blocks = blocks < NO_BLOCK ? drps_pages_new(waiting->bytes) : NULL;
    waiting->lists = drps_array_new(windows, sizeof(*waiting->lists));
    if (!waiting->blocks || !waiting->lists) {
        drps_waiting_free(waiting);
        return NULL;
    }
    for (uint32_t b = 0; b < blocks; b++)
        waiting->blocks[b].next = b + 1 < blocks ? b + 1 : NO_BLOCK;
    for (uint32_t w = 0; w < windows; w++)
        waiting->lists[w] = (struct list){.first = NO_BLOCK, .last = NO_BLOCK};
    return waiting;
}

void drps_waiting_free(struct drps_waiting *waiting)
{
    if (!waiting) return;
    drps_pages_free(waiting->blocks, waiting->bytes);
    free(waiting->lists);
    free(waiting);
}

uint64_t drps_waiting_count(const struct drps_waiting *waiting, uint32_t window)
{
    return waiting->lists[window].n;
}

static int add_block(struct drps_waiting *waiting, struct list *list, struct drps_err *err)
{
    const uint32_t b = waiting->free;
    if (b == NO_BLOCK)
        return drps_err_set(err, -EINVAL, "more rows wait in memory than it has room for");
    waiting->free = waiting->blocks[b].next;
    waiting->blocks[b].next = NO_BLOCK;
    waiting->blocks[b].n = 0;
    if (list->last == NO_BLOCK)
        list->first = b;
    else
        waiting->blocks[list->last].next = b;
    list->last = b;
    return 0;
}

static int too_many(uint32_t window, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "more rows wait for window %u than it has: the plan's windows "
                        "contradict each other; make the plan anew",
                        window);
}

int drps_waiting_add(struct drps_waiting *waiting, uint32_t window, const uint32_t *frames,
                     size_t n, struct drps_err *err)
{
    struct list *list = &waiting->lists[window];
    if (n > waiting->most - list->n) return too_many(window, err);
    while (n) {
        if (list->last == NO_BLOCK || waiting->blocks[list->last].n == BLOCK_FRAMES) {
            int rc = add_block(waiting, list, err);
            if (rc < 0) return rc;
        }
        struct block *b = &waiting->blocks[list->last];
        const size_t now = n < BLOCK_FRAMES - b->n ? n : BLOCK_FRAMES - b->n;
        memcpy(b->frames + b->n, frames, now * sizeof(*frames));
        b->n += (uint32_t)now;
        list->n += now;
        frames += now;
        n -= now;
    }
    return 0;
}

int drps_waiting_add_each(struct drps_waiting *waiting, uint32_t window, const uint32_t *distances,
                          const uint32_t *frames, size_t n, uint32_t *once_out, size_t *once_n_out,
                          struct drps_err *err)
{
    const uint32_t windows = waiting->windows;
    size_t once = 0;
    for (size_t i = 0; i < n; i++) {
        if (distances[i] >= windows) {
            once_out[once++] = frames[i];
            continue;
        }
        const uint32_t at = window + distances[i], later = at < windows ? at : at - windows;
        struct list *list = &waiting->lists[later];
        if (list->n == waiting->most) return too_many(later, err);
        if (list->last == NO_BLOCK || waiting->blocks[list->last].n == BLOCK_FRAMES) {
            int rc = add_block(waiting, list, err);
            if (rc < 0) return rc;
        }
        struct block *b = &waiting->blocks[list->last];
        b->frames[b->n++] = frames[i];
        list->n++;
    }
    *once_n_out = once;
    return 0;
}

void drps_waiting_take(struct drps_waiting *waiting, uint32_t window, int clear,
                       uint32_t *frames_out)
{
    struct list *list = &waiting->lists[window];
    for (uint32_t b = list->first; b != NO_BLOCK; b = waiting->blocks[b].next) {
        memcpy(frames_out, waiting->blocks[b].frames, waiting->blocks[b].n * sizeof(*frames_out));
        frames_out += waiting->blocks[b].n;
    }
    if (!clear || list->first == NO_BLOCK) return;
    waiting->blocks[list->last].next = waiting->free;
    waiting->free = list->first;
    *list = (struct list){.first = NO_BLOCK, .last = NO_BLOCK};
}
