/* Writing and reading record files; docs/formats.md has the byte table. */
#include "base/record/drps_recfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/drps_endian.h"

/* Header, 64 bytes: magic 8 | version u32 | kind u32 | count u64 | index offset u64 | zero 24 |
 * checksum u64. */
enum { HEADER_BYTES = 64, HEADER_SUMMED = 56, ENTRY_BYTES = 16, VERSION = 1, UNIT = 8 };
enum { BUFFER_BYTES = 1 << 20 };
static const char magic[8] = {'D', 'R', 'P', 'S', 'R', 'E', 'C', '1'};

struct entry {
    uint64_t bytes;
    uint64_t checksum;
};
_Static_assert(sizeof(struct entry) == ENTRY_BYTES, "the index is written as it lies in memory");

struct drps_recwriter {
    const struct drps_io *io;
    char *path;
    int fd;
    uint32_t kind;
    char *buf;
    size_t buffered;
    uint64_t written; /* file offset of buf's first byte */
    struct entry *entries;
    size_t n, cap;
};

struct drps_recfile {
    const struct drps_io *io;
    char *path;
    int fd;
    int direct_fd; /* past the page cache; -1: not asked for, or not to be had here */
    uint64_t count;
    uint64_t file_bytes;
    uint64_t *offsets; /* [count + 1] of payloads */
    struct entry *entries;
};

int drps_recwriter_open(const struct drps_io *io, const char *path, uint32_t kind,
                        struct drps_recwriter **w_out, struct drps_err *err)
{
    *w_out = NULL;
    struct drps_recwriter *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    w->io = io;
    w->fd = -1;
    w->kind = kind;
    w->written = HEADER_BYTES;
    w->path = strdup(path);
    w->buf = malloc(BUFFER_BYTES);
    int rc = w->path && w->buf ? 0 : drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    if (rc == 0) rc = drps_io_open(io, path, O_RDWR | O_CREAT | O_TRUNC, &w->fd, err);
    if (rc < 0) {
        drps_recwriter_close(w);
        return rc;
    }
    *w_out = w;
    return 0;
}

void drps_recwriter_close(struct drps_recwriter *w)
{
    if (!w) return;
    drps_io_close(w->io, w->fd);
    free(w->path);
    free(w->buf);
    free(w->entries);
    free(w);
}

static int flush(struct drps_recwriter *w, struct drps_err *err)
{
    int rc = drps_io_write_at(w->io, w->fd, w->buf, w->buffered, w->written, w->path, err);
    if (rc < 0) return rc;
    w->written += w->buffered;
    w->buffered = 0;
    return 0;
}

static int put(struct drps_recwriter *w, const void *data, size_t n, struct drps_err *err)
{
    const char *at = data;
    while (n) {
        if (w->buffered == BUFFER_BYTES) {
            int rc = flush(w, err);
            if (rc < 0) return rc;
        }
        size_t room = BUFFER_BYTES - w->buffered;
        size_t part = n < room ? n : room;
        memcpy(w->buf + w->buffered, at, part);
        w->buffered += part;
        at += part;
        n -= part;
    }
    return 0;
}

int drps_recwriter_add(struct drps_recwriter *w, const struct drps_piece *pieces, size_t n,
                       struct drps_err *err)
{
    static const char zeros[UNIT];
    struct entry e = {0, 0};

    if (drps_array_reserve(&w->entries, &w->cap, w->n + 1, sizeof(e)))
        return drps_err_set(err, -ENOMEM, "no memory for the index of %s", w->path);
    for (size_t i = 0; i < n; i++) {
        int rc = put(w, pieces[i].data, pieces[i].bytes, err);
        if (rc < 0) return rc;
        e.bytes += pieces[i].bytes;
    }
    e.checksum = drps_checksum_pieces(pieces, n);
    w->entries[w->n++] = e;
    return put(w, zeros, drps_align_up((size_t)e.bytes, UNIT) - (size_t)e.bytes, err);
}

uint64_t drps_recwriter_count(const struct drps_recwriter *w)
{
    return w->n;
}

uint64_t drps_recwriter_bytes(const struct drps_recwriter *w)
{
    return w->written + w->buffered;
}

static void encode_header(const struct drps_recwriter *w, uint64_t index_offset,
                          unsigned char *head)
{
    memset(head, 0, HEADER_BYTES);
    memcpy(head, magic, sizeof(magic));
    drps_put_u32(head + 8, VERSION);
    drps_put_u32(head + 12, w->kind);
    drps_put_u64(head + 16, w->n);
    drps_put_u64(head + 24, index_offset);
    drps_put_u64(head + HEADER_SUMMED, drps_checksum(head, HEADER_SUMMED));
}

int drps_recwriter_finish(struct drps_recwriter *w, struct drps_err *err)
{
    unsigned char head[HEADER_BYTES];
    unsigned char sum[8];
    uint64_t index_offset = drps_recwriter_bytes(w);
    size_t index_bytes = w->n * sizeof(*w->entries);

    drps_put_u64(sum, drps_checksum(w->entries, index_bytes));
    int rc = put(w, w->entries, index_bytes, err);
    if (rc == 0) rc = put(w, sum, sizeof(sum), err);
    if (rc == 0) rc = flush(w, err);
    if (rc < 0) return rc;
    encode_header(w, index_offset, head);
    return drps_io_write_at(w->io, w->fd, head, sizeof(head), 0, w->path, err);
}

static int decode_header(struct drps_recfile *f, uint32_t kind, uint64_t *index_offset_out,
                         struct drps_err *err)
{
    unsigned char head[HEADER_BYTES];
    int rc = drps_io_size(f->io, f->fd, f->path, &f->file_bytes, err);
    if (rc == 0) rc = drps_io_read_at(f->io, f->fd, head, sizeof(head), 0, f->path, err);
    if (rc < 0) return rc;
    if (memcmp(head, magic, sizeof(magic)))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s is no finished drps file (wrong magic at offset 0)", f->path);
    if (drps_get_u64(head + HEADER_SUMMED) != drps_checksum(head, HEADER_SUMMED))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: the header (offset 0) fails its checksum",
                            f->path);
    if (drps_get_u32(head + 8) != VERSION)
        return drps_err_set(err, DRPS_E_VERSION,
                            "%s has format version %u; this program reads %d: make it anew",
                            f->path, drps_get_u32(head + 8), VERSION);
    if (drps_get_u32(head + 12) != kind)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s holds another kind of records than expected",
                            f->path);
    f->count = drps_get_u64(head + 16);
    *index_offset_out = drps_get_u64(head + 24);
    if (*index_offset_out > f->file_bytes ||
        f->count > (f->file_bytes - *index_offset_out) / ENTRY_BYTES ||
        f->file_bytes - *index_offset_out != f->count * ENTRY_BYTES + 8)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: %" PRIu64 " records and an index at offset %" PRIu64
                            " do not fit its %" PRIu64 " bytes%s",
                            f->path, f->count, *index_offset_out, f->file_bytes,
                            *index_offset_out > f->file_bytes ? ": it is cut off, copy it again"
                                                              : "");
    return 0;
}

static int load_index(struct drps_recfile *f, uint64_t index_offset, struct drps_err *err)
{
    unsigned char sum[8];
    size_t bytes = (size_t)f->count * ENTRY_BYTES;

    f->entries = drps_array_new(f->count, ENTRY_BYTES);
    f->offsets = drps_array_new(f->count + 1, sizeof(*f->offsets));
    if (!f->entries || !f->offsets)
        return drps_err_set(err, -ENOMEM, "no memory for the index of %s", f->path);
    int rc = drps_io_read_at(f->io, f->fd, f->entries, bytes, index_offset, f->path, err);
    if (rc == 0)
        rc = drps_io_read_at(f->io, f->fd, sum, sizeof(sum), index_offset + bytes, f->path, err);
    if (rc < 0) return rc;
    if (drps_get_u64(sum) != drps_checksum(f->entries, bytes))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: the index at offset %" PRIu64 " fails its checksum", f->path,
                            index_offset);
    uint64_t at = HEADER_BYTES;
    for (uint64_t i = 0; i < f->count; i++) {
        f->offsets[i] = at;
        if (f->entries[i].bytes > f->file_bytes || at > f->file_bytes)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: record %" PRIu64 " lies outside of the file", f->path, i);
        at += (f->entries[i].bytes + UNIT - 1) / UNIT * UNIT;
    }
    f->offsets[f->count] = at;
    if (at != index_offset)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: records end at byte %" PRIu64 ", the index begins at %" PRIu64,
                            f->path, at, index_offset);
    return 0;
}

int drps_recfile_open(const struct drps_io *io, const char *path, uint32_t kind,
                      struct drps_recfile **f_out, struct drps_err *err)
{
    uint64_t index_offset = 0;

    *f_out = NULL;
    struct drps_recfile *f = calloc(1, sizeof(*f));
    if (!f) return drps_err_set(err, -ENOMEM, "no memory to open %s", path);
    f->io = io;
    f->fd = f->direct_fd = -1;
    f->path = strdup(path);
    int rc = f->path ? 0 : drps_err_set(err, -ENOMEM, "no memory to open %s", path);
    if (rc == 0) rc = drps_io_open(io, path, O_RDONLY, &f->fd, err);
    if (rc == 0) rc = decode_header(f, kind, &index_offset, err);
    if (rc == 0) rc = load_index(f, index_offset, err);
    if (rc < 0) {
        drps_recfile_close(f);
        return rc;
    }
    *f_out = f;
    return 0;
}

void drps_recfile_close(struct drps_recfile *f)
{
    if (!f) return;
    drps_io_close(f->io, f->fd);
    drps_io_close(f->io, f->direct_fd);
    free(f->path);
    free(f->offsets);
    free(f->entries);
    free(f);
}

uint64_t drps_recfile_count(const struct drps_recfile *f)
{
    return f->count;
}

uint64_t drps_recfile_file_bytes(const struct drps_recfile *f)
{
    return f->file_bytes;
}

uint64_t drps_recfile_bytes(const struct drps_recfile *f, uint64_t i)
{
    return f->entries[i].bytes;
}

uint64_t drps_recfile_run_bytes(const struct drps_recfile *f, uint64_t i, uint64_t n)
{
    return f->offsets[i + n] - f->offsets[i];
}

uint64_t drps_recfile_offset_in_run(const struct drps_recfile *f, uint64_t first, uint64_t j)
{
    return f->offsets[j] - f->offsets[first];
}

uint64_t drps_recfile_run_length(const struct drps_recfile *f, uint64_t i, uint64_t cap)
{
    uint64_t n = 1;
    while (i + n < f->count && f->offsets[i + n + 1] - f->offsets[i] <= cap)
        n++;
    return n;
}

/* The checksum covers the payload; the bytes behind it, up to the next multiple of 8, are zero. */
static int record_is_whole(const struct drps_recfile *f, uint64_t j, const char *record)
{
    uint64_t bytes = f->entries[j].bytes;
    for (uint64_t k = bytes; k < drps_recfile_run_bytes(f, j, 1); k++)
        if (record[k]) return 0;
    return drps_checksum(record, bytes) == f->entries[j].checksum;
}

static int verify(const struct drps_recfile *f, uint64_t i, uint64_t n, const void *buf,
                  struct drps_err *err)
{
    for (uint64_t j = i; j < i + n; j++) {
        const char *record = (const char *)buf + (f->offsets[j] - f->offsets[i]);
        if (!record_is_whole(f, j, record))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: record %" PRIu64 " at offset %" PRIu64
                                " fails its checksum: make the file anew from its source",
                                f->path, j, f->offsets[j]);
    }
    return 0;
}

int drps_recfile_read(struct drps_recfile *f, uint64_t i, uint64_t n, void *buf,
                      struct drps_err *err)
{
    int rc = drps_io_read_at(f->io, f->fd, buf, drps_recfile_run_bytes(f, i, n), f->offsets[i],
                             f->path, err);
    return rc < 0 ? rc : verify(f, i, n, buf, err);
}

/* ---- Past the page cache ---- */

void drps_recfile_go_direct(struct drps_recfile *f)
{
    if (f->direct_fd < 0 &&
        drps_io_open(f->io, f->path, O_RDONLY | O_DIRECT, &f->direct_fd, NULL) < 0)
        f->direct_fd = -1; /* some file systems cannot: it is read as before */
}

/* The aligned pieces of the file around the run; the rest of the run is read through the page
 * cache. */
static int read_direct(struct drps_recfile *f, uint64_t offset, uint64_t bytes, char *mem,
                       struct drps_err *err)
{
    const uint64_t first = offset / DRPS_RECFILE_ALIGN * DRPS_RECFILE_ALIGN;
    const uint64_t need = offset + bytes - first;
    const uint64_t whole =
        (need + DRPS_RECFILE_ALIGN - 1) / DRPS_RECFILE_ALIGN * DRPS_RECFILE_ALIGN;
    const ssize_t got = f->io->ops->pread(f->io->ctx, f->direct_fd, mem, (size_t)whole, first);
    const uint64_t have = got > 0 ? (uint64_t)got : 0;
    if (have >= need) return 0;
    return drps_io_read_at(f->io, f->fd, mem + have, (size_t)(need - have), first + have, f->path,
                           err);
}

/* Read bytes into mem; *at_out is where in mem they begin. */
static int read_bytes(struct drps_recfile *f, uint64_t offset, uint64_t bytes, char *mem,
                      const void **at_out, struct drps_err *err)
{
    *at_out = mem + (f->direct_fd < 0 ? 0 : offset % DRPS_RECFILE_ALIGN);
    if (f->direct_fd >= 0) return read_direct(f, offset, bytes, mem, err);
    return drps_io_read_at(f->io, f->fd, mem, (size_t)bytes, offset, f->path, err);
}

int drps_recfile_read_in(struct drps_recfile *f, uint64_t i, uint64_t n, void *mem,
                         const void **run_out, struct drps_err *err)
{
    int rc = read_bytes(f, f->offsets[i], drps_recfile_run_bytes(f, i, n), mem, run_out, err);
    return rc < 0 ? rc : verify(f, i, n, *run_out, err);
}

int drps_recfile_read_front(struct drps_recfile *f, uint64_t i, uint64_t bytes, void *mem,
                            const void **front_out, struct drps_err *err)
{
    *front_out = NULL;
    if (bytes > f->entries[i].bytes)
        return drps_err_set(err, -EINVAL, "%s: record %" PRIu64 " has no %" PRIu64 " bytes",
                            f->path, i, bytes);
    return read_bytes(f, f->offsets[i], bytes, mem, front_out, err);
}
