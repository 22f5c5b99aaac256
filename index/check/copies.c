/*
 * Equal samples. A sample is known by a hash of its label, its numbers and its entries, but for
 * those of value 0, as the entry of a sample's own row is; it does not depend on their order. Test
 * samples of a slice of the hashes lie in a table; training samples are looked up in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/check/check_internal.h"

/* Test samples with the same hash. */
struct copy {
    uint64_t hash; /* not 0; 0: the place is free */
    uint32_t n;
    uint16_t trained, early; /* 1: a training sample has it; an early one has */
};

enum { LOAD = 2 }; /* places for each entry, at least */

/* The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    value += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t hash_of(const struct drps_batch *b, const uint32_t *rows, size_t s)
{
    uint64_t sum = 0;
    const size_t end = drps_batch_start(b, s + 1);
    for (size_t j = drps_batch_start(b, s); j < end; j++) {
        const uint32_t value = bits_of(drps_batch_value(b, j));
        if (value) sum += mix((uint64_t)rows[drps_batch_local(b, j)] << 32 | value);
    }
    for (size_t k = 0; k < b->numbers.each; k++) {
        const uint32_t value =
            bits_of(drps_dense_number(&b->numbers, s * (size_t)b->numbers.each + k));
        if (value) sum += mix((uint64_t)k << 32 | value);
    }
    const uint64_t hash = mix(sum ^ (uint64_t)bits_of(b->labels[s]) << 16);
    return hash ? hash : 1;
}

uint64_t copies_bytes(uint64_t test_samples)
{
    uint64_t places = 1;
    while (places < test_samples * LOAD)
        places *= 2;
    return places * sizeof(struct copy);
}

/* Slices of hashes are nearly equal; one that is not makes the table grow. */
int copies_begin(struct copies *c, uint32_t slice, uint32_t slices, uint64_t test_samples,
                 struct drps_err *err)
{
    const size_t places = (size_t)(copies_bytes(test_samples / slices + 16) / sizeof(*c->table));
    c->slice = slice;
    c->slices = slices;
    c->seen = 0;
    c->n = 0;
    c->mask = places - 1;
    free(c->table);
    c->table = calloc(places, sizeof(*c->table));
    return c->table ? 0 : drps_err_set(err, -ENOMEM, "no memory for %zu test samples", places);
}

/* The place of a hash, or where it would go. */
static struct copy *find(const struct copies *c, uint64_t hash)
{
    size_t at = (size_t)hash & c->mask;
    while (c->table[at].hash && c->table[at].hash != hash)
        at = (at + 1) & c->mask;
    return &c->table[at];
}

static int grow(struct copies *c, struct drps_err *err)
{
    const struct copies before = *c;
    c->mask = 2 * before.mask + 1;
    c->table = calloc(c->mask + 1, sizeof(*c->table));
    if (!c->table) {
        *c = before;
        return drps_err_set(err, -ENOMEM, "no memory for %zu test samples", c->n);
    }
    for (size_t i = 0; i <= before.mask; i++)
        if (before.table[i].hash) *find(c, before.table[i].hash) = before.table[i];
    free(before.table);
    return 0;
}

static int is_here(const struct copies *c, uint64_t hash)
{
    return (hash >> 32) % c->slices == c->slice;
}

int copies_add(struct copies *c, const struct drps_batch *b, const uint32_t *rows,
               struct drps_err *err)
{
    int rc = 0;
    for (size_t s = 0; s < b->samples && rc == 0; s++) {
        const uint64_t hash = hash_of(b, rows, s);
        if (!is_here(c, hash)) continue;
        if (c->n * LOAD > c->mask) rc = grow(c, err);
        if (rc < 0) break;
        struct copy *place = find(c, hash);
        c->n += !place->hash;
        place->hash = hash;
        if (place->n < UINT32_MAX) place->n++;
    }
    return rc;
}

void copies_look(struct copies *c, const struct drps_batch *b, const uint32_t *rows)
{
    for (size_t s = 0; s < b->samples; s++) {
        const uint64_t hash = hash_of(b, rows, s);
        const int early = c->seen++ < c->early;
        if (!is_here(c, hash)) continue;
        struct copy *place = find(c, hash);
        if (!place->hash) continue;
        place->trained = 1;
        place->early |= (uint16_t)early;
    }
}

void copies_end(struct copies *c)
{
    for (size_t i = 0; i <= c->mask; i++) {
        const struct copy *place = &c->table[i];
        c->copies += place->trained ? place->n : 0;
        c->copies_of_few += place->early ? place->n : 0;
        c->copies_in_test += place->n > 1 ? place->n : 0;
    }
}

void copies_free(struct copies *c)
{
    free(c->table);
    c->table = NULL;
}
