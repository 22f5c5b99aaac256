/*
 * For each block of items the threads take tiles of queries, in turn, until there are none. A tile
 * of queries meets the block's tiles of items one after another: a product into the thread's room,
 * which stays in the cache until its scores have been looked at. A query belongs to one tile, so
 * its heap to one thread.
 */
#include "engine/recommend/score.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/step/team/drps_team.h"

enum { TILE_LEAST = 12 };

/* A thread's. */
struct room {
    float *products; /* own: [DRPS_TILE_QUERIES][DRPS_TILE_ITEMS] */
    void *scratch;   /* own */
    uint64_t exact;
};

struct drps_scores {
    struct drps_scores_options o;
    struct drps_team *team;
    struct room *rooms; /* own: [threads] */
    uint64_t ns;

    /* These are about the block that is met now. */
    struct drps_queries *queries;
    struct drps_items_block block;
    size_t tile; /* queries */
    atomic_size_t next;
};

uint64_t drps_scores_memory(size_t d, unsigned threads)
{
    const uint64_t products = (uint64_t)DRPS_TILE_QUERIES * DRPS_TILE_ITEMS * sizeof(float);
    return threads * (products + drps_product_scratch(d) + sizeof(struct room));
}

void drps_scores_close(struct drps_scores *s)
{
    if (!s) return;
    drps_team_stop(s->team);
    for (unsigned t = 0; s->rooms && t < s->o.threads; t++) {
        free(s->rooms[t].products);
        free(s->rooms[t].scratch);
    }
    free(s->rooms);
    free(s);
}

static int make_rooms(struct drps_scores *s)
{
    s->rooms = calloc(s->o.threads, sizeof(*s->rooms));
    for (unsigned t = 0; s->rooms && t < s->o.threads; t++) {
        struct room *r = &s->rooms[t];
        r->products =
            drps_array_new((size_t)DRPS_TILE_QUERIES * DRPS_TILE_ITEMS, sizeof(*r->products));
        r->scratch = drps_array_new(drps_product_scratch(s->o.d), 1);
        if (!r->products || !r->scratch) return 0;
    }
    return s->rooms != NULL;
}

int drps_scores_open(const struct drps_scores_options *options, struct drps_scores **s_out,
                     struct drps_err *err)
{
    struct drps_scores *s = calloc(1, sizeof(*s));
    *s_out = NULL;
    if (s) s->o = *options;
    int rc = s && make_rooms(s) ? drps_team_start(options->threads, &s->team, err)
                                : drps_err_set(err, -ENOMEM, "no memory for products");
    if (rc < 0) {
        drps_scores_close(s);
        return rc;
    }
    *s_out = s;
    return 0;
}

static int stopped(const struct drps_scores *s)
{
    return s->o.stop && atomic_load_explicit(s->o.stop, memory_order_relaxed);
}

/* Queries [first, first + n) and tile `from` of the block's items. */
static void meet(struct drps_scores *s, struct room *room, size_t first, size_t n, size_t from)
{
    const size_t left = s->block.n - from, d = s->o.d;
    const size_t items_n = left < DRPS_TILE_ITEMS ? left : DRPS_TILE_ITEMS;
    struct drps_top_items items = {.vectors = s->block.vectors + from * d,
                                   .rows = s->block.rows + from,
                                   .n = items_n,
                                   .norm = s->block.longest[from / DRPS_TILE_ITEMS]};
    s->o.product(s->queries->vectors + first * d, n, items.vectors, items_n, d, room->products,
                 room->scratch);
    for (size_t i = 0; i < n; i++) {
        struct drps_top top = drps_queries_top(s->queries, first + i);
        items.products = room->products + i * items_n;
        room->exact += drps_top_look(&top, &items);
        drps_queries_found(s->queries, first + i, &top);
    }
}

static void work(void *ctx, unsigned member)
{
    struct drps_scores *s = ctx;
    const size_t queries = s->queries->n;
    /* relaxed: only the number counts; the team's barriers order the rest */
    for (size_t t;
         !stopped(s) &&
         (t = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) * s->tile < queries;) {
        const size_t first = t * s->tile, left = queries - first;
        for (size_t from = 0; from < s->block.n; from += DRPS_TILE_ITEMS)
            meet(s, &s->rooms[member], first, left < s->tile ? left : s->tile, from);
    }
}

/* Small enough that there is one for each thread, a multiple of what a product takes at once. */
static size_t tile_of(size_t queries, unsigned threads)
{
    const size_t each = (queries + threads - 1) / threads;
    const size_t tile = (each + TILE_LEAST - 1) / TILE_LEAST * TILE_LEAST;
    return tile < DRPS_TILE_QUERIES ? tile : DRPS_TILE_QUERIES;
}

int drps_scores_run(struct drps_scores *s, struct drps_queries *q, struct drps_items *items,
                    struct drps_err *err)
{
    drps_queries_ready(q);
    s->queries = q;
    s->tile = tile_of(q->n, s->o.threads);
    drps_items_rewind(items);
    for (;;) {
        const int rc = drps_items_next(items, &s->block, err);
        if (rc < 0 || !s->block.n) return rc;
        const uint64_t start = drps_clock_ns();
        atomic_store_explicit(&s->next, 0, memory_order_relaxed); /* the team's barrier follows */
        drps_team_run(s->team, work, s);
        s->ns += drps_clock_ns() - start;
        if (stopped(s)) return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted");
        if (s->o.on_pairs) s->o.on_pairs(s->o.ctx, (uint64_t)q->n * s->block.n);
    }
}

uint64_t drps_scores_exact(const struct drps_scores *s)
{
    uint64_t sum = 0;
    for (unsigned t = 0; t < s->o.threads; t++)
        sum += s->rooms[t].exact;
    return sum;
}

double drps_scores_seconds(const struct drps_scores *s)
{
    return (double)s->ns * 1e-9;
}
