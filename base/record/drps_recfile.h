/*
 * Record files: the one container of drps's own binary files.
 *
 *   header  64 bytes   magic "DRPSREC1", version, kind, record count, index offset, checksum
 *   records            payload, zero bytes up to a multiple of 8; no header of their own
 *   index              per record: payload bytes (u64), checksum (u64); then a checksum of all that
 *
 * The header is written last, so a file that was not finished is refused. Every payload is verified
 * when it is read. docs/formats.md has the byte table.
 */
#ifndef DRPS_BASE_RECORD_RECFILE_H
#define DRPS_BASE_RECORD_RECFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_checksum.h"
#include "base/drps_io.h"

struct drps_recwriter; /* opaque: one file being written, owned by whoever called
                          drps_recwriter_open() */
struct drps_recfile;   /* opaque: one finished file, owned by whoever called drps_recfile_open() */

/* `kind` is four characters that say what the records are; a reader must name the same. */
#define DRPS_REC_KIND(a, b, c, d)                                                                  \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

DRPS_MUST_CHECK
int drps_recwriter_open(const struct drps_io *io, const char *path, uint32_t kind,
                        struct drps_recwriter **w_out, struct drps_err *err);

/* Append one record made of n pieces. */
DRPS_MUST_CHECK
int drps_recwriter_add(struct drps_recwriter *w, const struct drps_piece *pieces, size_t n,
                       struct drps_err *err);

/* Write what is buffered, the index and the header. The caller syncs (drps_stage_commit() does). */
DRPS_MUST_CHECK
int drps_recwriter_finish(struct drps_recwriter *w, struct drps_err *err);

/* Free the writer; a file that was not finished stays unreadable. NULL-safe. */
void drps_recwriter_close(struct drps_recwriter *w);

/* Records added so far, and bytes that the file has then. */
uint64_t drps_recwriter_count(const struct drps_recwriter *w);
uint64_t drps_recwriter_bytes(const struct drps_recwriter *w);

/* DRPS_E_CORRUPT, DRPS_E_VERSION, -ENOENT ...: the text names file and offset. */
DRPS_MUST_CHECK
int drps_recfile_open(const struct drps_io *io, const char *path, uint32_t kind,
                      struct drps_recfile **f_out, struct drps_err *err);
void drps_recfile_close(struct drps_recfile *f);

/* Records of the file, and its bytes. */
uint64_t drps_recfile_count(const struct drps_recfile *f);
uint64_t drps_recfile_file_bytes(const struct drps_recfile *f);

/* Payload bytes of record i < count. */
uint64_t drps_recfile_bytes(const struct drps_recfile *f, uint64_t i);

/* Returns the bytes that a buffer for records [i, i + n) needs. */
uint64_t drps_recfile_run_bytes(const struct drps_recfile *f, uint64_t i, uint64_t n);

/* Returns how many records from i on fit into `cap` buffer bytes; at least 1 while i < count. */
uint64_t drps_recfile_run_length(const struct drps_recfile *f, uint64_t i, uint64_t cap);

/*
 * Read and verify records [i, i + n) into buf (8-byte aligned, of run_bytes). Record j's payload
 * begins at buf + drps_recfile_offset_in_run(f, i, j). Threads: concurrent calls are allowed.
 */
DRPS_MUST_CHECK
int drps_recfile_read(struct drps_recfile *f, uint64_t i, uint64_t n, void *buf,
                      struct drps_err *err);

/*
 * From now on read past the page cache where the file system can: for files that are larger than
 * the memory that is left for it, which would fill it with pages that go before they are used.
 * Affects drps_recfile_read_in() alone.
 */
void drps_recfile_go_direct(struct drps_recfile *f);

/*
 * Read like drps_recfile_read(), into memory of drps_recfile_room() bytes that is aligned to
 * DRPS_RECFILE_ALIGN; *run_out is where the run begins in it.
 */
DRPS_MUST_CHECK
int drps_recfile_read_in(struct drps_recfile *f, uint64_t i, uint64_t n, void *mem,
                         const void **run_out, struct drps_err *err);

/* Read the first `bytes` bytes of record i's payload alone, like drps_recfile_read_in(). The caller
 * has to verify them: the record's checksum covers all of it. */
DRPS_MUST_CHECK
int drps_recfile_read_front(struct drps_recfile *f, uint64_t i, uint64_t bytes, void *mem,
                            const void **front_out, struct drps_err *err);

/* Memory for a run of so many bytes: reads past the page cache begin and end aligned. */
enum { DRPS_RECFILE_ALIGN = 4096 };
static inline uint64_t drps_recfile_room(uint64_t run_bytes)
{
    return run_bytes + 2 * DRPS_RECFILE_ALIGN;
}

/* Returns where the payload of record j begins in the run that begins with record `first`. */
uint64_t drps_recfile_offset_in_run(const struct drps_recfile *f, uint64_t first, uint64_t j);

#endif
