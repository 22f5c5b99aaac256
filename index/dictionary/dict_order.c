/* The order of rows, and what was counted of a key in several places put together. */
#include <inttypes.h>

#include "index/dictionary/dict_internal.h"
#include "index/order/drps_grid.h"
#include "index/plan/drps_algorithm.h"

/*
 * The placed order: table; rows of all segments first, by falling count; then by falling number of
 * segments, equal patterns together, by first use, by falling count. Ties by key. So a page of rows
 * is in use in few stretches of the epoch, and rows of one batch alone lie together.
 */
static uint64_t order_by_use(uint32_t mask, uint32_t first, uint32_t count)
{
    enum { COUNT_BITS = 24 };
    const unsigned cold = DICT_SEGMENTS - (unsigned)__builtin_popcount(mask);
    const uint32_t most = (1u << COUNT_BITS) - 1;
    const uint32_t rank = most - (count < most ? count : most);
    const uint32_t middle = cold ? mask << 16 | first : UINT32_MAX - count;
    return (uint64_t)cold << 56 | (uint64_t)middle << COUNT_BITS | rank;
}

static unsigned table_of(const struct dict_options *o, const struct dict_key *k)
{
    if (o->table_by_key) return k->key < DRPS_SAMPLE_KEYS ? 1 : 0;
    return o->table_by_field && k->field ? 1 : 0;
}

uint64_t drps_dict_order(const struct dict_options *o, const struct dict_key *k)
{
    return (uint64_t)table_of(o, k) << 62 |
           (o->by_hash ? grid_hash(o->order_seed, k->key)
                       : order_by_use(k->mask, k->first, k->count));
}

int drps_dict_too_many_rows(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "more than 4,294,967,294 rows: use a data set with fewer features");
}

static int shown(size_t bytes)
{
    return bytes < 60 ? (int)bytes : 60;
}

int drps_dict_collision(const struct dict_options *o, const struct dict_key *a,
                        const struct dict_key *b, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the feature names '%.*s' and '%.*s' share one 64-bit key: run again with "
                        "another hash seed than %" PRIu64,
                        shown(a->bytes), a->text, shown(b->bytes), b->text, o->hash_seed);
}

int drps_dict_join(const struct dict_options *o, struct dict_key *into, const struct dict_key *from,
                   struct drps_err *err)
{
    if (into->check != from->check) return drps_dict_collision(o, into, from, err);
    into->mask |= from->mask;
    if (from->first < into->first) into->first = from->first;
    into->count = from->count > UINT32_MAX - into->count ? UINT32_MAX : into->count + from->count;
    return 0;
}
