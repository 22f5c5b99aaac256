/*
 * Fuzz target of names.rec: a record file with right checksums whose records are the input's;
 * look-ups and a scan must stay within the pages. Input: per record a u16 length and the payload;
 * the last record is the directory. An odd first byte of the input asks for a directory that fits
 * the pages, so that these are reached.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "base/record/drps_recfile.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_plan.h"
#include "support/fuzz_check.h"
#include "support/memory_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visit(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                 size_t bytes, struct drps_err *err)
{
    uint64_t *sum = ctx;
    (void)err;
    *sum += key + row + field;
    for (size_t i = 0; i < bytes; i++)
        *sum += (unsigned char)text[i];
    return 0;
}

/* Pages from the input, then the directory of their first keys. */
static int with_directory(struct memory_io *m, const uint8_t *data, size_t n)
{
    enum { PAGES = 8 };
    struct drps_recwriter *w;
    uint64_t firsts[PAGES] = {0};
    size_t pages = 0;
    int rc = drps_recwriter_open(&m->io, "names.rec", DRPS_KIND_NAMES, &w, NULL);
    for (size_t at = 0; rc == 0 && pages < PAGES && at + 2 <= n;) {
        size_t bytes = (size_t)(data[at] | data[at + 1] << 8);
        at += 2;
        if (bytes > n - at) bytes = n - at;
        struct drps_piece piece = {data + at, bytes};
        if (bytes >= 16) firsts[pages] = drps_get_u64(data + at + 8);
        rc = drps_recwriter_add(w, &piece, 1, NULL);
        pages++;
        at += bytes;
    }
    struct drps_piece directory = {firsts, pages * sizeof(*firsts)};
    if (rc == 0) rc = drps_recwriter_add(w, &directory, 1, NULL);
    if (rc == 0) rc = drps_recwriter_finish(w, NULL);
    drps_recwriter_close(w);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t keys[] = {0, 1, 5, 9, 255, 65536, (uint64_t)1 << 40, UINT64_MAX};
    enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
    struct memory_io m;
    struct drps_names *names = NULL;
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t rows[KEYS];
    uint64_t sum = 0;

    if (!size) return 0;
    memory_io_init(&m);
    CHECK((data[0] & 1
               ? with_directory(&m, data + 1, size - 1)
               : memory_io_records(&m, "names.rec", DRPS_KIND_NAMES, data + 1, size - 1)) == 0);
    int rc = drps_names_open(&m.io, "plan", &names, &err);
    if (rc == 0) rc = drps_names_lookup(names, keys, KEYS, rows, &err);
    if (rc == 0) rc = drps_names_scan(names, visit, &sum, &err);
    CHECK(rc == err.code && (rc == 0 || rc == DRPS_E_CORRUPT));
    CHECK((rc == 0) == !err.text[0]);
    drps_names_close(names);
    memory_io_destroy(&m);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
