/*
 * Fuzz target of record files: any bytes give an error or a file whose every record can be read in
 * runs of any length. Input: byte 0, bit 0: make the header's checksum right; bit 1: the index's;
 * the rest is the file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "base/record/drps_recfile.h"
#include "base/record/drps_recstream.h"
#include "support/fuzz_check.h"
#include "support/memory_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KIND DRPS_REC_KIND('F', 'U', 'Z', 'Z')
enum { HEADER = 64, SUMMED = 56 };

static void sign(uint8_t *file, size_t n, int what)
{
    if (n < HEADER) return;
    uint64_t index = drps_get_u64(file + 24);
    if (what & 2 && n >= HEADER + 8 && index <= n - 8)
        drps_put_u64(file + n - 8, drps_checksum(file + index, n - 8 - (size_t)index));
    if (what & 1) drps_put_u64(file + SUMMED, drps_checksum(file, SUMMED));
}

static int read_all(struct drps_recfile *f, uint64_t cap, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < drps_recfile_count(f);) {
        uint64_t n = drps_recfile_run_length(f, i, cap);
        CHECK(n >= 1 && n <= drps_recfile_count(f) - i);
        uint64_t bytes = drps_recfile_run_bytes(f, i, n);
        CHECK(bytes <= drps_recfile_file_bytes(f));
        char *buf = malloc((size_t)bytes + 1);
        CHECK(buf);
        rc = drps_recfile_read(f, i, n, buf, err);
        for (uint64_t j = i; j < i + n; j++)
            CHECK(drps_recfile_offset_in_run(f, i, j) + drps_recfile_bytes(f, j) <= bytes);
        free(buf);
        i += n;
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_io m;
    struct drps_recfile *f = NULL;
    struct drps_err err = DRPS_ERR_INIT;

    if (!size) return 0;
    uint8_t *file = malloc(size);
    CHECK(file);
    memcpy(file, data + 1, size - 1);
    sign(file, size - 1, data[0]);
    memory_io_init(&m);
    memory_io_put(&m, "file.rec", file, size - 1);
    int rc = drps_recfile_open(&m.io, "file.rec", KIND, &f, &err);
    CHECK((rc == 0) == (f != NULL));
    if (rc == 0) {
        int one = read_all(f, 0, &err);
        int many = read_all(f, 1000, NULL);
        CHECK(one == many);
        rc = one;
    }
    CHECK(rc == err.code && (rc == 0 || rc == DRPS_E_CORRUPT || rc == DRPS_E_VERSION));
    drps_recfile_close(f);
    memory_io_destroy(&m);
    free(file);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
