/*
 * Fuzz target of plan.json and blocks.rec: any text gives an error or a plan that can be verified
 * without leaving its files. Input: byte 0, bit 0: give the manifest its right checksum; then u16 n
 * and n bytes of blocks.rec's one record; the rest is plan.json.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_checksum.h"
#include "index/plan/drps_plan.h"
#include "index/verify/drps_verify.h"
#include "support/fuzz_check.h"
#include "support/memory_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The manifest with a checksum as drps_plan_save() would give it; NULL when it is no JSON. */
static char *sign(const char *text, size_t n)
{
    json_error_t at;
    char hex[17];
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &at);
    if (!j) return NULL;
    (void)json_object_del(j, "checksum"); /* absent is fine */
    char *canonical = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    char *out = NULL;
    if (canonical) {
        (void)snprintf(hex, sizeof(hex), "%016" PRIx64,
                       drps_checksum(canonical, strlen(canonical)));
        (void)json_object_set_new(j, "checksum", json_string(hex)); /* fails on lists: no plan */
        out = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(17));
    }
    free(canonical);
    json_decref(j);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_io m;
    struct drps_plan *plan = NULL;
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *first = NULL;

    if (size < 3) return 0;
    size_t n = (size_t)(data[1] | data[2] << 8);
    if (n > size - 3) n = size - 3;
    const char *text = (const char *)data + 3 + n;
    size_t text_n = size - 3 - n;
    char *better = data[0] & 1 ? sign(text, text_n) : NULL;
    memory_io_init(&m);
    if (better)
        memory_io_put(&m, "plan.json", better, strlen(better));
    else
        memory_io_put(&m, "plan.json", text, text_n);
    CHECK(memory_io_records(&m, "blocks.rec", DRPS_KIND_BLOCKS, data + 1, n + 2) == 0);
    int rc = drps_plan_open(&m.io, "plan", &plan, &err);
    CHECK(rc == err.code && (rc == 0) == (plan != NULL) && (rc == 0) == !err.text[0]);
    if (rc == 0 && plan->info.blocks < 1 << 20) {
        int bad = drps_plan_blocks(plan, &first, NULL);
        CHECK((bad == 0) == (first != NULL));
        for (uint64_t b = 0; first && b < plan->info.blocks; b++)
            CHECK(first[b] <= first[b + 1]);
        if (first) CHECK(first[plan->info.blocks] == plan->info.rows);
        free(first);
    }
    if (rc == 0) {
        rc = drps_plan_verify(plan, NULL, &err);
        CHECK(rc < 0); /* the other files are not there */
    }
    drps_plan_close(plan);
    memory_io_destroy(&m);
    free(better);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
