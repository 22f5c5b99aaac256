/* A packed body record becomes a plain one, section by section. Its bytes are not trusted. */
#include <errno.h>
#include <string.h>

#include "index/plan/body/body.h"
#include "index/plan/codec/drps_levels.h"
#include "index/plan/codec/drps_matrix.h"
#include "index/plan/codec/drps_pack16.h"

/* A plain body is written at `at`, where there is room for `left` bytes. */
struct plain {
    char *at;
    size_t left;
};

/* Get room for the next section, its padding zeroed; NULL if there is none left. */
static void *next_room(struct plain *p, uint64_t n, size_t size)
{
    if (n > p->left / size || drps_align_up((size_t)n * size, 8) > p->left) return NULL;
    char *start = p->at;
    const size_t bytes = (size_t)n * size, padded = drps_align_up(bytes, 8);
    memset(start + bytes, 0, padded - bytes);
    p->at += padded;
    p->left -= padded;
    return start;
}

struct packed {
    const char *record;
    size_t bytes, at;
};

/* 0; -ENOSPC: no room; DRPS_E_CORRUPT: the record ends. */
static int copy_section(struct packed *r, uint64_t n, size_t size, struct plain *out)
{
    const void *from = body_section(r->record, r->bytes, &r->at, n, size);
    if (!from) return DRPS_E_CORRUPT;
    void *to = next_room(out, n, size);
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to ? 0 : -ENOSPC;
}

/* A byte of them. */
static void unpack_eight(unsigned signs, float *labels)
{
    for (unsigned k = 0; k < 8; k++)
        labels[k] = signs >> k & 1 ? 1.0F : -1.0F;
}

static int unpack_signs(struct packed *r, uint64_t n, struct plain *out)
{
    const unsigned char *signs = body_section(r->record, r->bytes, &r->at, n / 8 + (n % 8 != 0), 1);
    if (!signs) return DRPS_E_CORRUPT;
    float last[8], *labels = next_room(out, n, sizeof(*labels));
    if (!labels) return -ENOSPC;
    for (uint64_t s = 0; s < n / 8; s++)
        unpack_eight(signs[s], labels + 8 * s);
    if (n % 8) {
        unpack_eight(signs[n / 8], last);
        memcpy(labels + n / 8 * 8, last, n % 8 * sizeof(*last));
    }
    return 0;
}

static int unpack_levels(struct packed *r, uint64_t n, struct plain *out)
{
    const char *from = r->record + r->at;
    const size_t left = r->bytes - r->at;
    if (n / 8 > left) return DRPS_E_CORRUPT; /* a bit each, at least */
    const size_t used = drps_levels_decode(from, left, (size_t)n, NULL);
    if (!used || !body_section(r->record, r->bytes, &r->at, used, 1)) return DRPS_E_CORRUPT;
    float *values = next_room(out, n, sizeof(*values));
    if (!values) return -ENOSPC;
    return drps_levels_decode(from, left, (size_t)n, values) ? 0 : DRPS_E_CORRUPT;
}

/* The fields of a packed body, which are given to the entries once these have their rows. */
struct packed_fields {
    uint32_t count;
    enum body_fields of;
    const void *fields; /* [rows or entries] */
    uint16_t *entries;  /* where they go; NULL: there are none */
};

static int find_fields(struct packed *r, uint64_t n, uint32_t rows, struct packed_fields *f,
                       struct plain *out)
{
    const char *head = body_section(r->record, r->bytes, &r->at, BODY_FIELDS_HEAD, 1);
    if (!head) return DRPS_E_CORRUPT;
    const uint32_t of = drps_get_u32(head + 4);
    f->count = drps_get_u32(head);
    if (!f->count || f->count > BODY_FIELDS_MOST || of > BODY_FIELDS_OF_ROWS) return DRPS_E_CORRUPT;
    f->of = (enum body_fields)of;
    f->fields = body_section(r->record, r->bytes, &r->at, f->of == BODY_FIELDS_OF_ROWS ? rows : n,
                             f->count <= BODY_FIELDS_NARROW ? 1 : sizeof(uint16_t));
    char *head_out = next_room(out, BODY_FIELDS_HEAD, 1);
    f->entries = next_room(out, n, sizeof(*f->entries));
    if (!f->fields) return DRPS_E_CORRUPT;
    if (!head_out || !f->entries) return -ENOSPC;
    drps_put_u32(head_out, f->count);
    drps_put_u32(head_out + 4, BODY_FIELDS_OF_ENTRIES);
    return 0;
}

static int give_fields(const struct packed_fields *f, size_t n, const uint16_t *local)
{
    const unsigned char *narrow = f->fields;
    const uint16_t *wide = f->fields;
    for (size_t j = 0; j < n; j++) {
        const size_t i = f->of == BODY_FIELDS_OF_ROWS ? local[j] : j;
        f->entries[j] = f->count <= BODY_FIELDS_NARROW ? narrow[i] : wide[i];
    }
    return !n || body_largest(f->entries, n) < f->count ? 0 : DRPS_E_CORRUPT;
}

/* Indices below `rows`. */
static int unpack_local(struct packed *r, uint64_t n, uint32_t rows, struct plain *out,
                        const uint16_t **local_out)
{
    const char *from = r->record + r->at;
    const size_t left = r->bytes - r->at;
    uint16_t most, *local = next_room(out, n, sizeof(*local));
    *local_out = local;
    if (!local) return -ENOSPC;
    const size_t used = drps_pack16_decode(from, left, (size_t)n, local, &most);
    if (!used != !n || drps_align_up(used, 8) > left || (n && most >= rows)) return DRPS_E_CORRUPT;
    r->at += drps_align_up(used, 8);
    return 0;
}

/* Indices of 32 bits, which are as they are, below `rows`. */
static int copy_wide(struct packed *r, uint64_t n, uint32_t rows, struct plain *out)
{
    const uint32_t *local = (const uint32_t *)(void *)out->at;
    const int rc = copy_section(r, n, sizeof(*local), out);
    uint32_t most = 0;
    for (uint64_t j = 0; rc == 0 && j < n; j++)
        most = local[j] > most ? local[j] : most;
    return rc == 0 && n && most >= rows ? DRPS_E_CORRUPT : rc;
}

static int unpack_numbers(struct packed *r, uint64_t samples, struct plain *out)
{
    size_t used, plain;
    const int rc = drps_dense_unpack(r->record + r->at, r->bytes - r->at, samples, out->at,
                                     out->left, &used, &plain);
    r->at += used;
    out->at += plain;
    out->left -= plain;
    return rc > 0 ? 0 : rc < 0 ? -ENOSPC : DRPS_E_CORRUPT;
}

/* Makes starts, values and indices of the matrix that ends the record. */
static int unpack_matrix(struct packed *r, const char *head, uint32_t flags, struct plain *out)
{
    const uint32_t samples = drps_get_u32(head), rows = drps_get_u32(head + 4);
    const uint64_t nnz = drps_get_u64(head + 8);
    const int after = (flags & DRPS_BATCH_MATRIX_AFTER) != 0;
    const uint32_t columns = rows - (uint32_t)after;
    if (rows <= (uint32_t)after || rows > UINT16_MAX + 1u || !(flags & DRPS_BATCH_VALUES) ||
        flags & DRPS_BATCH_FIELDS)
        return DRPS_E_CORRUPT;
    const float *matrix = body_section(r->record, r->bytes, &r->at, (uint64_t)samples * columns, 4);
    if (!matrix || r->at != r->bytes) return DRPS_E_CORRUPT;
    uint32_t *starts = NULL;
    if (!(flags & DRPS_BATCH_UNIFORM)) {
        starts = next_room(out, (uint64_t)samples + 1, sizeof(*starts));
        if (!starts) return -ENOSPC;
    }
    float *values = next_room(out, nnz, sizeof(*values));
    uint16_t *local = values ? next_room(out, nnz, sizeof(*local)) : NULL;
    if (!local) return -ENOSPC;
    const struct drps_matrix_shape shape = {
        .samples = samples, .columns = columns, .nnz = (size_t)nnz, .first = (uint16_t)after};
    return drps_matrix_decode(&shape, matrix, starts, drps_get_u32(head + 20), local, values)
               ? 0
               : DRPS_E_CORRUPT;
}

static int unpack_sections(struct packed *r, struct plain *out)
{
    enum {
        MATRIX = DRPS_BATCH_MATRIX | DRPS_BATCH_MATRIX_AFTER,
        KNOWN = BODY_FLAGS | DRPS_BATCH_PACKED | DRPS_BATCH_SIGNS | DRPS_BATCH_LEVELS | MATRIX
    };
    struct packed_fields fields = {0};
    const uint16_t *local = NULL;
    char *head = out->at;
    int rc = copy_section(r, DRPS_BATCH_HEAD_BYTES, 1, out);
    if (rc < 0) return rc;
    const uint32_t flags = drps_get_u32(head + BODY_FLAGS_AT);
    const uint64_t samples = drps_get_u32(head), nnz = drps_get_u64(head + 8);
    const int wide = (flags & DRPS_BATCH_WIDE) != 0, numbers = (flags & DRPS_BATCH_NUMBERS) != 0;
    if (flags & ~(uint32_t)KNOWN || (wide && !numbers)) return DRPS_E_CORRUPT;
    if (numbers && flags & (MATRIX | DRPS_BATCH_FIELDS)) return DRPS_E_CORRUPT;
    if (flags & DRPS_BATCH_LEVELS && (flags & MATRIX || !(flags & DRPS_BATCH_VALUES)))
        return DRPS_E_CORRUPT;
    drps_put_u32(head + BODY_FLAGS_AT, flags & BODY_FLAGS);
    rc = flags & DRPS_BATCH_SIGNS ? unpack_signs(r, samples, out)
                                  : copy_section(r, samples, sizeof(float), out);
    if (rc == 0 && flags & DRPS_BATCH_WEIGHTS) rc = copy_section(r, samples, sizeof(float), out);
    if (rc == 0 && flags & MATRIX)
        return flags & DRPS_BATCH_MATRIX ? unpack_matrix(r, head, flags, out) : DRPS_E_CORRUPT;
    if (rc == 0 && !(flags & DRPS_BATCH_UNIFORM))
        rc = copy_section(r, samples + 1, sizeof(uint32_t), out);
    if (rc == 0 && flags & DRPS_BATCH_VALUES)
        rc = flags & DRPS_BATCH_LEVELS ? unpack_levels(r, nnz, out)
                                       : copy_section(r, nnz, sizeof(float), out);
    const uint32_t rows = drps_get_u32(head + 4);
    if (rc == 0 && flags & DRPS_BATCH_FIELDS) rc = find_fields(r, nnz, rows, &fields, out);
    if (rc == 0) rc = wide ? copy_wide(r, nnz, rows, out) : unpack_local(r, nnz, rows, out, &local);
    if (rc == 0 && numbers) rc = unpack_numbers(r, samples, out);
    if (rc == 0 && r->at != r->bytes) rc = DRPS_E_CORRUPT;
    return rc == 0 && fields.entries ? give_fields(&fields, (size_t)nnz, local) : rc;
}

static int is_packed(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ||
           drps_get_u32((const char *)record + BODY_FLAGS_AT) & DRPS_BATCH_PACKED;
}

static int too_large(size_t room_bytes, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "a batch takes more than the %zu bytes of the largest one", room_bytes);
}

static int copy_plain(const void *record, size_t bytes, void *room, size_t room_bytes,
                      size_t *bytes_out, struct drps_err *err)
{
    struct drps_batch b;
    int rc = drps_batch_decode(record, bytes, &b, err);
    if (rc < 0) return rc;
    if (bytes > room_bytes) return too_large(room_bytes, err);
    memcpy(room, record, bytes);
    *bytes_out = bytes;
    return 0;
}

int drps_batch_unpack(const void *record, size_t bytes, void *room, size_t room_bytes,
                      size_t *bytes_out, struct drps_err *err)
{
    struct packed r = {.record = record, .bytes = bytes};
    struct plain out = {.at = room, .left = room_bytes};
    *bytes_out = 0;
    if (!is_packed(record, bytes))
        return copy_plain(record, bytes, room, room_bytes, bytes_out, err);
    int rc = unpack_sections(&r, &out);
    if (rc == -ENOSPC) return too_large(room_bytes, err);
    if (rc < 0)
        return drps_err_set(err, rc, "a packed batch of %zu bytes does not hold what its head says",
                            bytes);
    *bytes_out = (size_t)(out.at - (char *)room);
    return 0;
}
