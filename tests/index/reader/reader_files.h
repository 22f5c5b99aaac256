/*
 * Files in memory for the reader's tests, and samples written out as text, to compare with what is
 * expected.
 */
#ifndef DRPS_TESTS_INDEX_READER_READER_FILES_H
#define DRPS_TESTS_INDEX_READER_READER_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/reader/drps_reader.h"

enum { FILES_MAX = 4, FILES_FD = 100 };

struct files {
    struct {
        const void *data;
        size_t n, at;
    } f[FILES_MAX]; /* paths "0", "1", ... */
    size_t n, step; /* step: most bytes of one read; 0: any */
    int fail_at;    /* the read (from 1) that fails with fail_code; 0: none */
    int fail_code, reads;
};

static inline int files_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct files *fs = ctx;
    size_t i = (size_t)(path[0] - '0');
    (void)flags;
    (void)mode;
    if (path[1] || i >= fs->n) return -ENOENT;
    fs->f[i].at = 0;
    return FILES_FD + (int)i;
}

static inline int files_close(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static inline ssize_t files_read(void *ctx, int fd, void *buf, size_t n)
{
    struct files *fs = ctx;
    size_t i = (size_t)(fd - FILES_FD);
    if (++fs->reads == fs->fail_at) return fs->fail_code;
    if (fs->step && n > fs->step) n = fs->step;
    if (n > fs->f[i].n - fs->f[i].at) n = fs->f[i].n - fs->f[i].at;
    if (n > 0) memcpy(buf, (const char *)fs->f[i].data + fs->f[i].at, n);
    fs->f[i].at += n;
    return (ssize_t)n;
}

static inline int64_t files_size(void *ctx, int fd)
{
    const struct files *fs = ctx;
    return (int64_t)fs->f[fd - FILES_FD].n;
}

static const struct drps_io_ops files_ops = {
    .open = files_open, .close = files_close, .read = files_read, .size = files_size};

static inline void files_add(struct files *fs, const void *data, size_t n)
{
    fs->f[fs->n].data = data;
    fs->f[fs->n++].n = n;
}

/* A growing text. */
struct text {
    char *p;
    size_t n, cap;
};

static inline void text_add(struct text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void text_add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    if (t->cap - t->n < 512) t->p = realloc(t->p, t->cap = 2 * t->cap + 1024);
    assert_non_null(t->p);
    va_start(ap, fmt);
    t->n += (size_t)vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
    va_end(ap);
}

/* Fields of csv and JSON lines are "column:kind"; the tables show the column. test_reader_csv_kinds
 * looks at the kind. */
static inline int column_bytes(const struct drps_reader *r, const char *field)
{
    const char *colon = drps_reader_has_columns(drps_reader_format(r)) ? strrchr(field, ':') : NULL;
    return (int)(colon ? (size_t)(colon - field) : strlen(field));
}

/* "label key:value ..." or "label field=text:value ...", a line a sample; where fields are read,
 * "label number:key:value ...". */
static inline void text_add_samples(struct text *t, const struct drps_reader *r,
                                    const struct drps_samples *s)
{
    size_t n_fields;
    const char *const *fields = drps_reader_fields(r, &n_fields);
    for (size_t i = 0; i < s->n; i++) {
        text_add(t, "%.9g", (double)s->labels[i]);
        for (size_t j = s->starts[i]; j < s->starts[i + 1]; j++) {
            text_add(t, " ");
            if (s->fields) text_add(t, "%u:", (unsigned)s->fields[j]);
            if (s->names)
                text_add(t, "%.*s=%.*s:%.9g", column_bytes(r, fields[s->names[j].field]),
                         fields[s->names[j].field], (int)s->names[j].bytes, s->names[j].text,
                         (double)s->values[j]);
            else
                text_add(t, "%llu:%.9g", (unsigned long long)s->keys[j], (double)s->values[j]);
        }
        text_add(t, "\n");
    }
}

/* What reading gave: the samples as text, and how it ended. */
struct outcome {
    int rc;
    struct text text;
    char format[16];
    uint64_t samples, features, lines, bytes, skipped, blank,
        largest_bytes; /* of a piece's arrays and text */
    int all_ones;
    struct drps_err err;
};

static inline void outcome_free(struct outcome *o)
{
    free(o->text.p);
}

static inline uint64_t piece_bytes(const struct drps_samples *s)
{
    return s->text_cap + s->label_cap * sizeof(*s->labels) + s->start_cap * sizeof(*s->starts) +
           s->key_cap * sizeof(*s->keys) + s->value_cap * sizeof(*s->values) +
           s->name_cap * sizeof(*s->names) + s->field_cap * sizeof(*s->fields);
}

/* Read everything; `quiet`: without the text, for large inputs. */
static inline void read_paths(const struct drps_io *io, const char *const *paths, size_t n,
                              const struct drps_reader_options *options, int quiet,
                              struct outcome *out)
{
    struct drps_samples s = {0};
    struct drps_reader *r;

    memset(out, 0, sizeof(*out));
    out->all_ones = 1;
    text_add(&out->text, "%s", "");
    out->rc = drps_reader_open(io, paths, n, options, &r, &out->err);
    if (out->rc < 0) {
        assert_null(r);
        return;
    }
    (void)snprintf(out->format, sizeof(out->format), "%s", drps_reader_format(r));
    while ((out->rc = drps_reader_next(r, &s, &out->err)) > 0) {
        uint64_t bytes = piece_bytes(&s);
        if (bytes > out->largest_bytes) out->largest_bytes = bytes;
        out->samples += s.n;
        out->features += s.starts[s.n];
        out->all_ones &= s.all_ones;
        if (!quiet) text_add_samples(&out->text, r, &s);
    }
    assert_int_equal(s.n, 0);
    out->lines = drps_reader_lines(r);
    out->bytes = drps_reader_bytes(r);
    out->skipped = drps_reader_skipped(r);
    out->blank = drps_reader_blank(r);
    drps_reader_close(r);
    drps_samples_free(&s);
}

static inline void read_files(struct files *fs, const struct drps_reader_options *options,
                              int quiet, struct outcome *out)
{
    static const char *const paths[FILES_MAX] = {"0", "1", "2", "3"};
    struct drps_io io = {.ops = &files_ops, .ctx = fs};
    read_paths(&io, paths, fs->n, options, quiet, out);
}

static inline void read_text(const char *text, const struct drps_reader_options *options,
                             struct outcome *out)
{
    struct files fs = {0};
    files_add(&fs, text, strlen(text));
    read_files(&fs, options, 0, out);
}

/* Compare the outcome with samples as text, or with an error's text when `error` is not NULL. */
static inline void check_outcome(const char *name, const char *input, const struct outcome *o,
                                 const char *expected, const char *error)
{
    const char *text = o->text.p ? o->text.p : "";
    if (error && o->rc < 0 && strcmp(o->err.text, error) == 0) return;
    if (!error && expected && o->rc == 0 && strcmp(text, expected) == 0) return;
    fail_msg("%s\ninput:    %s\nexpected: %s\nfound:    %s (code %d)", name, input,
             error ? error : expected, o->rc < 0 ? o->err.text : text, o->rc);
}

#endif
