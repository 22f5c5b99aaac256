/*
 * Files in memory as a struct drps_io: for fuzz targets, which may neither touch a disk nor be
 * slowed by one. A file is found by the last part of its path. Not for several threads.
 */
#ifndef DRPS_TESTS_MEMORY_IO_H
#define DRPS_TESTS_MEMORY_IO_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

enum { MEMORY_FILES = 16 };

struct memory_io {
    struct drps_io io;
    struct {
        char name[64]; /* empty: unused */
        uint8_t *data; /* own */
        size_t n;
    } files[MEMORY_FILES];
};

void memory_io_init(struct memory_io *m);
void memory_io_destroy(struct memory_io *m);

/* Make or replace a file; the bytes are copied. */
void memory_io_put(struct memory_io *m, const char *name, const void *data, size_t n);

/* A finished record file from bytes: per record a little-endian u16 length, cut to what is there,
 * and the payload. */
int memory_io_records(struct memory_io *m, const char *name, uint32_t kind, const uint8_t *data,
                      size_t n);

#endif
