/*
 * Fuzz target of batch bodies: any bytes give an error or a batch whose arrays lie within the
 * record, and that, encoded again, is the same record but for its padding. Input: the record.
 */
#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_batch.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Numbers by place lie within the record, and each is one of the levels. */
static void check_numbers(const struct drps_batch *b)
{
    const struct drps_dense *d = &b->numbers;
    if (!d->each) return;
    CHECK(d->each <= DRPS_DENSE_MOST && (d->floats != NULL) + (d->bytes != NULL) == 1);
    CHECK(!d->bytes || (d->levels_n <= DRPS_DENSE_LEVELS && d->levels[0] == 0));
    for (size_t i = 0; i < b->samples * (size_t)d->each; i++) {
        CHECK(d->floats || d->bytes[i] < d->levels_n);
        const float x = drps_dense_number(d, i);
        CHECK(x == x || x != x); /* read it */
    }
}

/* Use everything as a consumer would. */
static void check_entries(const struct drps_batch *b)
{
    CHECK(drps_batch_start(b, 0) == 0 && drps_batch_start(b, b->samples) == b->nnz);
    CHECK((b->local16 != NULL) + (b->local32 != NULL) == 1);
    CHECK(!b->fields == !b->field_count);
    check_numbers(b);
    for (size_t s = 0; s < b->samples; s++) {
        float label = b->labels[s];
        CHECK(label == label || label != label); /* read it */
        CHECK(!b->weights || (b->weights[s] > 0 && b->weights[s] <= FLT_MAX));
        CHECK(drps_batch_start(b, s) <= drps_batch_start(b, s + 1));
        for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++) {
            CHECK((b->local32 ? b->local32[j] : b->local16[j]) < b->rows);
            if (b->values) CHECK(b->values[j] == b->values[j] || b->values[j] != b->values[j]);
            if (b->fields) CHECK(b->fields[j] < b->field_count);
        }
    }
}

/* A packed body, or a plain one, in too little room and in enough: what comes out can be decoded
 * like any other. */
static void check_unpacking(const uint8_t *record, size_t size)
{
    enum { ROOM = 1 << 16 };
    static _Alignas(8) uint8_t room[ROOM];
    for (size_t n = 16; n <= ROOM; n *= 16) {
        struct drps_batch b;
        size_t bytes;
        int rc = drps_batch_unpack(record, size, room, n, &bytes, NULL);
        CHECK(rc == 0 ? bytes <= n : rc == DRPS_E_CORRUPT && bytes == 0);
        if (rc < 0) continue;
        rc = drps_batch_decode_unpacked(room, bytes, &b, NULL);
        if (rc == 0 && b.samples < 1 << 20) check_entries(&b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct drps_batch b, again;
    struct drps_batch_pieces p;
    struct drps_err err = DRPS_ERR_INIT;
    uint8_t *copy = malloc(size ? size : 1); /* aligned */
    CHECK(copy);
    memcpy(copy, data, size);
    check_unpacking(copy, size);
    int rc = drps_batch_decode(copy, size, &b, &err);
    CHECK(rc == err.code && (rc == 0 || rc == DRPS_E_CORRUPT));
    if (rc == 0 && b.samples < 1 << 20) {
        size_t at = 0;
        check_entries(&b);
        drps_batch_encode(&b, &p);
        uint8_t *encoded = malloc(size);
        CHECK(encoded);
        for (size_t i = 0; i < p.n; i++) {
            CHECK(p.pieces[i].bytes <= size - at);
            if (p.pieces[i].bytes) memcpy(encoded + at, p.pieces[i].data, p.pieces[i].bytes);
            at += p.pieces[i].bytes;
        }
        CHECK(at == size);
        CHECK(drps_batch_decode(encoded, size, &again, NULL) == 0);
        CHECK(again.samples == b.samples && again.rows == b.rows && again.nnz == b.nnz);
        CHECK(again.numbers.each == b.numbers.each);
        free(encoded);
    }
    free(copy);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
