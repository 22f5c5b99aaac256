/*
 * Where all items fit in half of what is left, they are held, and read once; blocks of queries need
 * not be large then. Where they do not, each block of queries costs a pass over the items, so that
 * queries get all memory but a block's of items.
 */
#include "engine/recommend/share.h"

#include "base/drps_budget.h"
#include "engine/recommend/evaluate/drps_evaluate.h"
#include "engine/recommend/fold.h"
#include "engine/recommend/items.h"
#include "engine/recommend/input/drps_people.h"
#include "engine/recommend/input/drps_ratings.h"
#include "engine/recommend/input/drps_rownames.h"
#include "engine/recommend/score.h"

enum {
    MIB = 1 << 20,
    PROGRAM_BYTES = 20 * MIB,
    READER_LEAST = MIB,
    READER_MOST = 32 * MIB,
    SORT_LEAST = MIB,
    QUERIES_LEAST = 12,
    QUERIES_FEW = 1 << 14, /* enough for a block where items are held */
    QUERIES_MOST = 1 << 24,
    SEEN_LEAST = 4096,
    SEEN_MOST = 1 << 28,
    SEEN_EACH = 128, /* room for so many seen items a query */
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static size_t dim_of(const struct drps_share_needs *n)
{
    return drps_modeldir_info(n->md)->model.dim;
}

/* Beside what drps_queries_memory() counts, a source has the rows of a block, in an array that
 * grows. */
static uint64_t queries_bytes(const struct drps_share_needs *n, size_t queries, size_t seen)
{
    return drps_queries_memory(dim_of(n), n->most, queries, seen) + queries * 2 * sizeof(uint32_t);
}

static size_t seen_of(const struct drps_share_needs *n, size_t queries)
{
    if (n->similar) return queries;
    if (!n->ratings) return 1;
    return SEEN_LEAST + queries * SEEN_EACH;
}

/* What all runs take, and where there is the least of each. */
static int take_least(const struct drps_share_needs *n, struct drps_budget *b,
                      struct drps_share *out, struct drps_err *err)
{
    const size_t items = (size_t)least_of(n->items, DRPS_BLOCK_ITEMS);
    out->model_bytes = drps_modeldir_memory_least(n->md);
    out->reader_bytes = n->ratings ? READER_LEAST : 0;
    out->sort_bytes = n->folds ? drps_fold_memory_least(n->md) : n->ratings ? SORT_LEAST : 0;
    out->names_bytes = DRPS_ROWNAMES_LEAST;
    out->items = items ? items : 1;
    out->queries = QUERIES_LEAST;
    out->seen = seen_of(n, QUERIES_LEAST);
    drps_budget_note(b, "program", PROGRAM_BYTES);
    drps_budget_note(b, "sets of rows", drps_people_memory(drps_modeldir_info(n->md)->rows));
    drps_budget_note(b, "products", drps_scores_memory(dim_of(n), n->threads));
    if (n->ratings)
        drps_budget_note(b, "reading ratings", 2 * out->reader_bytes + drps_ratings_memory());
    if (n->ratings) drps_budget_note(b, "sorting ratings", out->sort_bytes);
    if (n->evaluates)
        drps_budget_note(b, "held-out items",
                         DRPS_EVALUATE_MEMORY +
                             drps_rowset_memory(drps_modeldir_info(n->md)->rows) +
                             n->most * sizeof(uint32_t) + out->sort_bytes);
    drps_budget_note(b, "names", out->names_bytes);
    drps_budget_note(b, "a block of items", drps_items_memory(dim_of(n), out->items));
    drps_budget_note(b, "a block of users", queries_bytes(n, out->queries, out->seen));
    return drps_budget_take(b, "reading the model", out->model_bytes, err);
}

/* Queries get up to `bytes` more. */
static void more_queries(const struct drps_share_needs *n, uint64_t bytes, uint64_t most,
                         struct drps_share *out)
{
    const uint64_t limit = queries_bytes(n, out->queries, out->seen) + bytes;
    uint64_t low = out->queries, high = least_of(most, QUERIES_MOST);
    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        if (queries_bytes(n, (size_t)middle, seen_of(n, (size_t)middle)) <= limit)
            low = middle;
        else
            high = middle - 1;
    }
    out->queries = (size_t)low;
    /* Some users have seen far more than others: what is left is theirs. */
    const uint64_t rest = (limit - queries_bytes(n, out->queries, 0)) / sizeof(uint32_t);
    const uint64_t all = n->items < SEEN_MOST / low ? low * n->items : SEEN_MOST;
    out->seen = seen_of(n, out->queries);
    if (n->ratings && all > out->seen) out->seen = (size_t)least_of(rest, all);
}

int drps_share_out(const struct drps_share_needs *needs, struct drps_share *out,
                   struct drps_err *err)
{
    struct drps_budget b;
    drps_budget_init(&b, needs->limit_bytes);
    const int rc = take_least(needs, &b, out, err);
    if (rc < 0) return rc;
    uint64_t left = drps_budget_left(&b);
    const uint64_t part = left / 8;
    out->names_bytes += part;
    left -= part;
    if (needs->ratings) {
        const uint64_t reader = least_of(part / 4, READER_MOST - READER_LEAST);
        out->reader_bytes += reader;
        out->sort_bytes += part;
        left -= 2 * reader + (needs->evaluates ? 2 * part : part); /* a sort each */
    }
    const uint64_t all = drps_items_memory(dim_of(needs), (size_t)needs->items);
    const uint64_t have = drps_items_memory(dim_of(needs), out->items);
    uint64_t most = needs->queries;
    if (needs->items && all - have <= left / 2) {
        out->items = (size_t)needs->items;
        left -= all - have;
        most = least_of(most, QUERIES_FEW);
    }
    more_queries(needs, left, most, out);
    return 0;
}
