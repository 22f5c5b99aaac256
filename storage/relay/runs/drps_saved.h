/*
 * The records of a saved relay store, read one after another; storage/relay/save.h says what they
 * are. Every record's checksum is compared, and its length is checked before it is read.
 */
#ifndef DRPS_STORAGE_RELAY_RUNS_SAVED_H
#define DRPS_STORAGE_RELAY_RUNS_SAVED_H

#include "base/record/drps_recfile.h"

#define DRPS_KIND_SAVED_RELAY DRPS_REC_KIND('R', 'L', 'A', 'Y')

struct drps_saved {
    struct drps_recfile *file; /* own */
    char *path;                /* own: of the file */
    uint64_t at;               /* the next record */
};

/* drps_saved_close() is the caller's, also after a failure. */
DRPS_MUST_CHECK
int drps_saved_open(struct drps_saved *r, const struct drps_io *io, const char *dir,
                    struct drps_err *err);
void drps_saved_close(struct drps_saved *r);

/* "<dir>/<name>" of the file with the records and of the run file; free() it. NULL: no memory.
 */
char *drps_saved_records_path(const char *dir);
char *drps_saved_runs_path(const char *dir);

/* DRPS_E_CORRUPT: `what` of the saved store is not as it must be. */
int drps_saved_wrong(const struct drps_saved *r, const char *what, struct drps_err *err);

/* Read the next record, which must have exactly so many bytes, or any number of whole entries up to
 * `most` of them, into buf, which is aligned to 8 and has room for the next multiple of 8 bytes. */
DRPS_MUST_CHECK
int drps_saved_read(struct drps_saved *r, void *buf, size_t bytes, const char *what,
                    struct drps_err *err);
DRPS_MUST_CHECK
int drps_saved_read_entries(struct drps_saved *r, void *buf, size_t entry_bytes, size_t most,
                            size_t *n_out, const char *what, struct drps_err *err);

/* Read all records and all chunks that they name, against their checksums; the records of runs
 * begin with number `skipped`. DRPS_E_CORRUPT, DRPS_E_INTERRUPTED by io->stop. */
DRPS_MUST_CHECK
int drps_runs_verify_saved(const struct drps_io *io, const char *dir, uint64_t skipped,
                           struct drps_err *err);

#endif
