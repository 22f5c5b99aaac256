/* A text file that appears under its name when it is complete, made by one process at a time; or
 * standard output. */
#ifndef DRPS_BASE_FOLDER_TEXTFILE_H
#define DRPS_BASE_FOLDER_TEXTFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/folder/drps_stage.h"

struct drps_textfile {
    const struct drps_io *io; /* borrowed */
    const char *path;         /* borrowed; NULL: standard output */
    struct drps_stage stage;  /* where it is until it is complete */
    char *made;               /* own: the name there */
    char *scratch;            /* own: a folder for scratch files; NULL: there is none */
    int special;              /* a pipe or a device: written as it comes, never renamed */
    int fd;
    char *buf; /* own */
    size_t used;
    uint64_t written;
    int in_memory; /* no file: what was written is kept, */
    char *memory;  /* own: [written] */
    size_t memory_cap;
};

/* "-" is standard output. The path is borrowed until close. -EEXIST: there is a file already, and
 * `replace` is 0; -EBUSY: another process makes it. */
DRPS_MUST_CHECK
int drps_textfile_open(struct drps_textfile *f, const struct drps_io *io, const char *path,
                       int replace, struct drps_err *err);

/* A text that stays in memory, instead. Ends with drps_textfile_take(): the text is own, with a
 * zero behind it. -ENOMEM. */
DRPS_MUST_CHECK
int drps_textfile_open_memory(struct drps_textfile *f, struct drps_err *err);
DRPS_MUST_CHECK
int drps_textfile_take(struct drps_textfile *f, char **text_out, struct drps_err *err);

/*
 * Make a folder for scratch files, which have names of a number and ".run" or ".part": beside what
 * is written, where the next run removes what a killed one left; for standard output, pipes and
 * devices a new folder in `elsewhere`. Once. It goes with commit or close. *dir_out is borrowed
 * until then.
 */
DRPS_MUST_CHECK
int drps_textfile_scratch(struct drps_textfile *f, const char *elsewhere, const char **dir_out,
                          struct drps_err *err);

/* Room for `n` more bytes (at most 256): write there, then say how many were used. */
DRPS_MUST_CHECK
int drps_textfile_room(struct drps_textfile *f, size_t n, char **at_out, struct drps_err *err);
static inline void drps_textfile_used(struct drps_textfile *f, size_t n)
{
    f->used += n;
}

/* Write what is buffered, and sync it, so that little is left for the commit. */
DRPS_MUST_CHECK
int drps_textfile_sync(struct drps_textfile *f, struct drps_err *err);

/* Write what is buffered, sync, give the file its name. */
DRPS_MUST_CHECK
int drps_textfile_commit(struct drps_textfile *f, struct drps_err *err);

/* Returns 0, or DRPS_E_CONFIG: `path` is one of inputs [n], under whatever name, or lies in the
 * folder `model`, that of a model or a plan. "-" is standard output, or input. */
DRPS_MUST_CHECK
int drps_textfile_check(const char *path, const char *model, const char *const *inputs, size_t n,
                        struct drps_err *err);

/* Remove what was not committed. Half-opened too. */
void drps_textfile_close(struct drps_textfile *f);

#endif
