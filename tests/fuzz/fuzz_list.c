/*
 * Fuzz target of packed lists: any bytes give an error or a list that, packed again, decodes to the
 * same, and that decoding without vector instructions gives too. Input: the record.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/codec/list_internal.h"
#include "index/plan/drps_batch.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 16 }; /* numbers: larger counts cannot fit the inputs used here */

static void check(const uint8_t *data, size_t size, int gaps, uint32_t n, uint32_t *list,
                  uint32_t *back, uint8_t *packed)
{
    struct drps_err err = DRPS_ERR_INIT;
    size_t used = 0;
    int rc = gaps ? drps_list_decode(data, size, list, &used, &err)
                  : drps_numbers_decode(data, size, list, &used, &err);
    CHECK((rc == 0) == (err.code == 0));
    int ref = gaps ? drps_list_decode_ref(data, size, back, NULL, NULL)
                   : drps_numbers_decode_ref(data, size, back, NULL, NULL);
    CHECK(ref == rc && (rc < 0 || memcmp(list, back, n * sizeof(*list)) == 0));
    if (rc < 0) {
        CHECK(rc == DRPS_E_CORRUPT && err.text[0]);
        return;
    }
    CHECK(used <= size);
    for (uint32_t i = 1; gaps && i < n; i++)
        CHECK(list[i] > list[i - 1]);
    size_t bytes = gaps ? drps_list_encode(list, n, packed) : drps_numbers_encode(list, n, packed);
    const int dense = gaps && size >= 4 && data[3] & 0x80;
    CHECK(bytes <= drps_list_encode_bound(n) && (dense || bytes <= used));
    rc = gaps ? drps_list_decode(packed, bytes, back, NULL, NULL)
              : drps_numbers_decode(packed, bytes, back, NULL, NULL);
    CHECK(rc == 0 && memcmp(list, back, n * sizeof(*list)) == 0);
    if (!gaps) return;
    uint8_t *blocks = malloc(drps_list_encode_bound(n));
    CHECK(blocks);
    bytes = drps_list_encode_dense(list, n, blocks);
    CHECK(bytes <= drps_list_encode_bound(n) && (!dense || bytes <= used));
    rc = drps_list_decode(blocks, bytes, back, NULL, NULL);
    CHECK(rc == 0 && memcmp(list, back, n * sizeof(*list)) == 0);
    free(blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t n = size >= 4 ? drps_list_count(data) : 0;
    if (n > MOST) n = 0; /* must be refused before a number is written */
    uint32_t *list = malloc(n * sizeof(*list) + 1);
    uint32_t *back = malloc(n * sizeof(*back) + 1);
    uint8_t *packed = malloc(drps_list_encode_bound(n));
    CHECK(list && back && packed);
    if (size < MOST) {
        check(data, size, 0, n, list, back, packed);
        check(data, size, 1, n, list, back, packed);
    }
    free(list);
    free(back);
    free(packed);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
