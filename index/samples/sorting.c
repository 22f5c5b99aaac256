/* A bucket's samples are read and sorted by a radix sort of their orders (sorting.h). */
#include "index/samples/sorting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/samples/sample.h"

enum { SLACK = 16, DIGIT_BITS = 11 };

void drps_sorting_free(struct sorting *w)
{
    drps_pages_free(w->data, w->data_cap);
    drps_pages_free(w->ordered, w->ordered_cap);
    drps_pages_free(w->aux, w->aux_cap);
    *w = (struct sorting){0};
}

/* Somewhat more than these bytes: buckets differ little, and the next one shall fit, too. */
static uint64_t with_slack(uint64_t bytes)
{
    return bytes + bytes / SLACK;
}

/* Make room for `bytes` in place of what was there. */
static int make_room(void *pages, size_t *cap, uint64_t bytes)
{
    void *p;
    if (bytes <= *cap) return 0;
    memcpy(&p, pages, sizeof(p));
    drps_pages_free(p, *cap);
    *cap = (size_t)with_slack(bytes);
    p = drps_pages_new(*cap);
    memcpy(pages, &p, sizeof(p));
    if (!p) *cap = 0;
    return p ? 0 : -ENOMEM;
}

uint64_t drps_sorting_bytes(const struct bucket *b)
{
    static const struct sorting none;
    return drps_sorting_bytes_in(&none, b);
}

uint64_t drps_sorting_bytes_in(const struct sorting *w, const struct bucket *b)
{
    const uint64_t each = b->samples * sizeof(*w->ordered);
    return (b->written > w->data_cap ? with_slack(b->written) : w->data_cap) +
           (each > w->ordered_cap ? with_slack(each) : w->ordered_cap) +
           (each > w->aux_cap ? with_slack(each) : w->aux_cap);
}

uint64_t drps_sorting_held(const struct sorting *w)
{
    return (uint64_t)w->data_cap + w->ordered_cap + w->aux_cap;
}

/* A stable radix sort by bits [low, high) of the order; returns which of the two arrays has it. */
static struct ordered *sort_bits(struct ordered *from, struct ordered *to, size_t n, unsigned low,
                                 unsigned high)
{
    enum { BITS = DIGIT_BITS, SIZE = 1 << BITS };
    size_t count[SIZE];
    for (unsigned bit = low; bit < high; bit += BITS) {
        const uint64_t mask = (high - bit < BITS ? 1u << (high - bit) : SIZE) - 1;
        size_t at = 0;
        memset(count, 0, sizeof(count));
        for (size_t i = 0; i < n; i++)
            count[from[i].order >> bit & mask]++;
        if (n && count[from[0].order >> bit & mask] == n) continue;
        for (size_t v = 0; v < SIZE; v++) {
            const size_t c = count[v];
            count[v] = at;
            at += c;
        }
        for (size_t i = 0; i < n; i++)
            to[count[from[i].order >> bit & mask]++] = from[i];
        struct ordered *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* A stable insertion sort. 0: it gave up, since much is out of order. */
static int sort_nearly(struct ordered *ordered, size_t n)
{
    uint64_t moves = 0;
    for (size_t i = 1; i < n; i++) {
        const struct ordered p = ordered[i];
        size_t j = i;
        for (; j && ordered[j - 1].order > p.order; j--)
            ordered[j] = ordered[j - 1];
        ordered[j] = p;
        moves += i - j;
        if (moves > n) return 0;
    }
    return 1;
}

/* How many bits, in whole digits, tell nearly all of n random orders apart: of 16 times as many
 * numbers as there are orders, one of 32 orders shares its own with another. */
static unsigned telling_bits(size_t n)
{
    enum { MORE = 4 };
    const unsigned bits = MORE + (n > 1 ? 64u - (unsigned)__builtin_clzll(n - 1) : 0);
    return (bits + DIGIT_BITS - 1) / DIGIT_BITS * DIGIT_BITS;
}

/* Sort by order, equal ones by arrival. Bits from `high` on are the same. Random orders are nearly
 * told apart by the uppermost bits; those of a grid with few cells are not. */
static struct ordered *sort_samples(struct ordered *ordered, struct ordered *aux, size_t n,
                                    unsigned high)
{
    const unsigned enough = telling_bits(n), low = high > enough ? high - enough : 0;
    struct ordered *sorted = sort_bits(ordered, aux, n, low, high);
    if (sort_nearly(sorted, n)) return sorted;
    return sort_bits(sorted, sorted == ordered ? aux : ordered, n, 0, high);
}

int drps_sorting_fill(struct sorting *w, struct bucket_store *store, struct bucket *b,
                      unsigned shift, struct drps_err *err)
{
    uint64_t at = 0;
    if (make_room(&w->data, &w->data_cap, b->written) ||
        make_room(&w->ordered, &w->ordered_cap, b->samples * sizeof(*w->ordered)) ||
        make_room(&w->aux, &w->aux_cap, b->samples * sizeof(*w->aux)))
        return drps_err_set(err, -ENOMEM, "no memory to sort %" PRIu64 " samples", b->samples);
    w->bytes = (size_t)b->written;
    w->samples = (size_t)b->samples;
    int rc = drps_bucket_read(store, b, w->data, w->bytes, 0, err);
    drps_bucket_close(store->io, b);
    if (rc < 0) return rc;
    for (size_t i = 0; i < w->samples; i++) {
        w->ordered[i] = (struct ordered){drps_get_u64(w->data + at), at};
        at += sample_bytes(w->data + at);
    }
    w->sorted = sort_samples(w->ordered, w->aux, w->samples, shift);
    return 0;
}
