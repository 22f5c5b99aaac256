/* Reads headers of IDX files, and their numbers. Nothing in them is believed. */
#include "index/reader/idx/head.h"

#include <stdio.h>
#include <string.h>

enum { MAGIC_BYTES = 4 };

/* Bytes of a number; 0: there is no such type. */
static size_t number_bytes(unsigned type)
{
    switch (type) {
    case DRPS_IDX_U8:
    case DRPS_IDX_I8:
        return 1;
    case DRPS_IDX_I16:
        return 2;
    case DRPS_IDX_I32:
    case DRPS_IDX_F32:
        return 4;
    case DRPS_IDX_F64:
        return 8;
    default:
        return 0;
    }
}

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static double of_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return (double)v;
}

static double of_double(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

double drps_idx_number(unsigned type, const uint8_t *p)
{
    switch (type) {
    case DRPS_IDX_U8:
        return p[0];
    case DRPS_IDX_I8:
        return (int8_t)p[0];
    case DRPS_IDX_I16:
        return (int16_t)big_endian(p, 2);
    case DRPS_IDX_I32:
        return (int32_t)big_endian(p, 4);
    case DRPS_IDX_F32:
        return of_float((uint32_t)big_endian(p, 4));
    default:
        return of_double(big_endian(p, 8));
    }
}

int drps_idx_looks(const char *head, size_t n)
{
    return n >= MAGIC_BYTES && head[0] == 0 && head[1] == 0 &&
           number_bytes((unsigned char)head[2]) && head[3] >= 1 && head[3] <= DRPS_IDX_DIMENSIONS;
}

const char *drps_idx_shape(const struct drps_idx_head *h, char out[DRPS_IDX_SHAPE_BYTES])
{
    size_t used = (size_t)snprintf(out, DRPS_IDX_SHAPE_BYTES, h->dimensions > 1 ? "" : "1");
    for (unsigned i = 1; i < h->dimensions; i++)
        used += (size_t)snprintf(out + used, DRPS_IDX_SHAPE_BYTES - used, "%s%u",
                                 i > 1 ? " x " : "", h->sizes[i]);
    return out;
}

static int ends_early(const struct drps_bytes *b, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_FORMAT, "%s: ends at byte %llu, within the header of idx",
                        b->in->name, (unsigned long long)(b->offset + drps_bytes_left(b)));
}

static int read_magic(struct drps_bytes *b, struct drps_idx_head *h, struct drps_err *err)
{
    int rc = drps_bytes_need(b, MAGIC_BYTES, err);
    if (rc < 0) return rc;
    if (drps_bytes_left(b) < MAGIC_BYTES) return ends_early(b, err);
    const uint8_t *p = drps_bytes_take(b, MAGIC_BYTES);
    const char *file = b->in->name;
    h->type = p[2];
    h->dimensions = p[3];
    if (p[0] || p[1])
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte 0: no idx file, which begins with two bytes of 0, and this "
                            "with 0x%02x 0x%02x",
                            file, (unsigned)p[0], (unsigned)p[1]);
    if (!number_bytes(h->type))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte 2: type 0x%02x is none of idx: known are 0x08 (unsigned "
                            "byte), 0x09 (signed byte), 0x0b (short), 0x0c (int), 0x0d (float) "
                            "and 0x0e (double)",
                            file, h->type);
    if (h->dimensions < 1 || h->dimensions > DRPS_IDX_DIMENSIONS)
        return drps_err_set(err, DRPS_E_FORMAT, "%s: byte 3: %u dimensions, and 1 to %d are read",
                            file, h->dimensions, DRPS_IDX_DIMENSIONS);
    return 0;
}

/* Multiply up the sizes of an item. */
static int take_sizes(struct drps_bytes *b, struct drps_idx_head *h, struct drps_err *err)
{
    h->each = 1;
    for (unsigned i = 0; i < h->dimensions; i++) {
        const uint64_t at = b->offset;
        h->sizes[i] = (uint32_t)big_endian(drps_bytes_take(b, 4), 4);
        if (i == 0) continue;
        if (h->sizes[i] == 0)
            return drps_err_set(err, DRPS_E_FORMAT, "%s: byte %llu: the size of dimension %u is 0",
                                b->in->name, (unsigned long long)at, i + 1);
        if (h->sizes[i] > DRPS_IDX_NUMBERS / h->each)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "%s: byte %llu: a sample would have more than 2^28 numbers: the "
                                "size of dimension %u is %u",
                                b->in->name, (unsigned long long)at, i + 1, h->sizes[i]);
        h->each *= h->sizes[i];
    }
    return 0;
}

int drps_idx_head_read(struct drps_bytes *b, struct drps_idx_head *h, struct drps_err *err)
{
    *h = (struct drps_idx_head){.type = 0};
    int rc = read_magic(b, h, err);
    if (rc == 0) rc = drps_bytes_need(b, 4 * (size_t)h->dimensions, err);
    if (rc < 0) return rc;
    if (drps_bytes_left(b) < 4 * (size_t)h->dimensions) return ends_early(b, err);
    rc = take_sizes(b, h, err);
    if (rc < 0) return rc;
    h->item_bytes = h->each * number_bytes(h->type);
    h->items = h->sizes[0];
    h->end = b->offset + h->items * h->item_bytes; /* below 2^63 + 20 */
    return 0;
}

int drps_idx_cut(const struct drps_bytes *b, const struct drps_idx_head *h, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s: ends at byte %llu, and its header promises %llu items of %zu bytes, "
                        "up to byte %llu: the file is cut off",
                        b->in->name, (unsigned long long)(b->offset + drps_bytes_left(b)),
                        (unsigned long long)h->items, h->item_bytes, (unsigned long long)h->end);
}

int drps_idx_end(struct drps_bytes *b, const struct drps_idx_head *h, struct drps_err *err)
{
    int rc = drps_bytes_need(b, 1, err);
    if (rc < 0 || !drps_bytes_left(b)) return rc;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s: goes on at byte %llu, behind the %llu items that its header promises",
                        b->in->name, (unsigned long long)b->offset, (unsigned long long)h->items);
}
