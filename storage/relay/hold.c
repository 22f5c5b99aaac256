#include "storage/relay/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum {
    BLOCK_FRAMES = 30,
    COUNTS_MOST = 1 << 20, /* of the table that is there while holding is planned */
    REACH_LEAST = 16,
};

#define NO_BLOCK UINT32_MAX

/* ---- Planning ---- */

struct table {
    uint32_t windows, most; /* ways up to this are counted */
    uint32_t *counts;       /* own: [windows][most + 1] rows that leave a window for one so far */
    uint32_t *ways;         /* own: [windows + 1] the same of one window, all ways */
    uint64_t *room;         /* own: [windows] frames left while windows w and w + 1 are open */
};

static uint32_t *count_of(const struct table *t, uint32_t w, uint32_t way)
{
    return t->counts + (size_t)w * (t->most + 1) + way;
}

static int count_ways(struct table *t, const struct drps_window_source *source, uint64_t frames,
                      uint32_t *next, uint64_t *sent_out, struct drps_sends *sends,
                      struct drps_err *err)
{
    struct drps_store_window head = {0}, after = {0};
    for (uint32_t w = 0; w < t->windows; w++) {
        int rc = source->read(source->ctx, w, &head, NULL, next, NULL, err);
        if (rc == 0)
            rc = source->read(source->ctx, (w + 1) % t->windows, &after, NULL, NULL, NULL, err);
        if (rc < 0) return rc;
        const uint64_t pair = t->windows == 1 ? head.n : head.leaving + after.n;
        t->room[w] = frames > pair ? frames - pair : 0;
        *sent_out += head.leaving;
        memset(t->ways, 0, (t->windows + 1) * sizeof(*t->ways));
        for (size_t s = 0; s < head.n; s++)
            t->ways[next[s]]++;
        memcpy(count_of(t, w, 0), t->ways, (t->most + 1) * sizeof(*t->ways));
        if (sends) drps_sends_add(sends, w, t->ways);
    }
    return 0;
}

/* Room for n rows from window w until `way` windows later: in frames of their own as long as
 * neither of the two open windows has them. Takes it, if there is. */
static int take_room(struct table *t, uint32_t w, uint32_t way, uint64_t n)
{
    for (uint32_t i = 1; n && i + 2 <= way; i++)
        if (t->room[(w + i) % t->windows] < n) return 0;
    for (uint32_t i = 1; n && i + 2 <= way; i++)
        t->room[(w + i) % t->windows] -= n;
    return 1;
}

static void extend(struct table *t, uint32_t *reach, uint64_t *sent)
{
    for (uint32_t way = 2; way <= t->most; way++)
        for (uint32_t w = 0; w < t->windows; w++) {
            const uint32_t n = *count_of(t, w, way);
            if (reach[w] + 1 != way || !take_room(t, w, way, n)) continue;
            reach[w] = way;
            *sent -= n;
        }
}

/* The longest way that is counted. */
static uint32_t most_way(uint32_t windows, uint64_t memory_bytes)
{
    const uint64_t fit = memory_bytes / sizeof(uint32_t) / windows;
    uint32_t most = COUNTS_MOST / windows;
    if (most > fit) most = (uint32_t)fit;
    if (most < REACH_LEAST) most = REACH_LEAST;
    return most < windows ? most : windows;
}

int drps_hold_plan(const struct drps_window_source *source, uint64_t frames, uint64_t memory_bytes,
                   uint32_t *next, uint32_t *reach_out, uint64_t *sent_out,
                   struct drps_sends *sends, struct drps_err *err)
{
    const uint32_t windows = source->windows;
    struct table t = {.windows = windows, .most = most_way(windows, memory_bytes)};
    t.counts = calloc(windows, (t.most + 1) * sizeof(*t.counts));
    t.ways = drps_array_new((size_t)windows + 1, sizeof(*t.ways));
    t.room = drps_array_new(windows, sizeof(*t.room));
    int rc = t.counts && t.ways && t.room
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to plan which rows stay in memory");
    *sent_out = 0;
    for (uint32_t w = 0; w < windows; w++)
        reach_out[w] = 1;
    if (rc == 0) rc = count_ways(&t, source, frames, next, sent_out, sends, err);
    if (rc == 0) extend(&t, reach_out, sent_out);
    free(t.counts);
    free(t.ways);
    free(t.room);
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
