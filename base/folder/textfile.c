/* A text file is written under another name, synced and renamed; standard output is written as it
 * comes. */
#include "base/folder/drps_textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_alloc.h"

enum { BUFFER_BYTES = 256 * 1024 };

static const char text_name[] = "text", scratch_name[] = "scratch";
static const struct drps_owned in_scratch[] = {
    {.name = "#.run"}, {.name = "#.part"}, {.name = NULL}};
static const struct drps_owned owned[] = {
    {.name = text_name}, {.name = scratch_name, .inside = in_scratch}, {.name = NULL}};
static const struct drps_stage_kind text_kind = {.file = text_name, .owned = owned};

static int open_staged(struct drps_textfile *f, int replace, struct drps_err *err)
{
    int rc = drps_stage_begin(&f->stage, f->io, f->path, &text_kind, replace, err);
    if (rc < 0) return rc;
    f->made = drps_path_join(f->stage.dir, text_name);
    if (!f->made) return drps_err_set(err, -ENOMEM, "no memory to write %s", f->path);
    return drps_io_open(f->io, f->made, O_WRONLY | O_CREAT | O_EXCL, &f->fd, err);
}

int drps_textfile_open(struct drps_textfile *f, const struct drps_io *io, const char *path,
                       int replace, struct drps_err *err)
{
    struct stat st;
    *f = (struct drps_textfile){.io = io, .fd = -1, .buf = malloc(BUFFER_BYTES)};
    if (!f->buf) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    if (strcmp(path, "-") == 0) return 0;
    f->path = path;
    const int exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return drps_err_set(err, -EISDIR, "%s is a folder: name a file", path);
    f->special = exists && !S_ISREG(st.st_mode);
    return f->special ? drps_io_open(io, path, O_WRONLY, &f->fd, err)
                      : open_staged(f, replace, err);
}

int drps_textfile_open_memory(struct drps_textfile *f, struct drps_err *err)
{
    *f = (struct drps_textfile){
        .io = drps_io_os(), .fd = -1, .buf = malloc(BUFFER_BYTES), .in_memory = 1};
    return f->buf ? 0 : drps_err_set(err, -ENOMEM, "no memory for a text");
}

/* A pipe has no offsets. */
static int write_stream(struct drps_textfile *f, size_t n, struct drps_err *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = write(f->fd, f->buf + at, n - at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0)
            return drps_err_set(err, -errno, "cannot write to %s: %s", f->path,
                                drps_err_name(-errno));
        at += (size_t)put;
    }
    return 0;
}

static int keep(struct drps_textfile *f, size_t n, struct drps_err *err)
{
    if (drps_array_reserve(&f->memory, &f->memory_cap, f->written + n + 1, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a text of %llu bytes",
                            (unsigned long long)(f->written + n));
    memcpy(f->memory + f->written, f->buf, n);
    f->written += n;
    f->memory[f->written] = '\0';
    return 0;
}

static int flush(struct drps_textfile *f, struct drps_err *err)
{
    const size_t n = f->used;
    f->used = 0;
    if (f->in_memory) return keep(f, n, err);
    if (!f->path) {
        if (fwrite(f->buf, 1, n, stdout) == n) return 0;
        const int rc = errno ? -errno : -EIO;
        return drps_err_set(err, rc, "cannot write to standard output: %s", drps_err_name(rc));
    }
    if (f->special) return write_stream(f, n, err);
    int rc = drps_io_write_at(f->io, f->fd, f->buf, n, f->written, f->made, err);
    f->written += n;
    return rc;
}

/* ---- Scratch files ---- */

/* Returns the name of a new folder in `dir`, or NULL with errno. */
static char *make_temporary(const char *dir)
{
    char *path = drps_path_join(dir, "drps-scratch.XXXXXX");
    if (!path || mkdtemp(path)) return path;
    const int why = errno;
    free(path);
    errno = why;
    return NULL;
}

int drps_textfile_scratch(struct drps_textfile *f, const char *elsewhere, const char **dir_out,
                          struct drps_err *err)
{
    *dir_out = NULL;
    if (f->made) {
        f->scratch = drps_path_join(f->stage.dir, scratch_name);
        const int rc = f->scratch ? f->io->ops->mkdir(f->io->ctx, f->scratch, 0777) : -ENOMEM;
        if (rc < 0)
            return drps_err_set(err, rc, "cannot make a folder for scratch files beside %s: %s",
                                f->path, drps_err_name(rc));
    } else {
        errno = ENOMEM;
        f->scratch = make_temporary(elsewhere);
        if (!f->scratch)
            return drps_err_set(err, -errno, "cannot make a folder for scratch files in %s: %s",
                                elsewhere, drps_err_name(-errno));
    }
    *dir_out = f->scratch;
    return 0;
}

static int remove_scratch(struct drps_textfile *f, struct drps_err *err)
{
    const int rc = f->scratch ? drps_io_remove_tree(f->io, f->scratch, err) : 0;
    free(f->scratch);
    f->scratch = NULL;
    return rc;
}

/* ---- Writing ---- */

int drps_textfile_room(struct drps_textfile *f, size_t n, char **at_out, struct drps_err *err)
{
    int rc = f->used + n > BUFFER_BYTES ? flush(f, err) : 0;
    *at_out = f->buf + f->used;
    return rc;
}

int drps_textfile_sync(struct drps_textfile *f, struct drps_err *err)
{
    const int rc = flush(f, err);
    return rc == 0 && f->made ? drps_io_sync(f->io, f->fd, f->made, err) : rc;
}

int drps_textfile_commit(struct drps_textfile *f, struct drps_err *err)
{
    int rc = flush(f, err);
    if (rc == 0) rc = remove_scratch(f, err);
    if (rc < 0) return rc;
    if (!f->path) {
        if (fflush(stdout) == 0) return 0;
        rc = errno ? -errno : -EIO;
        return drps_err_set(err, rc, "cannot write to standard output: %s", drps_err_name(rc));
    }
    return f->special ? 0 : drps_stage_commit(&f->stage, err);
}

int drps_textfile_take(struct drps_textfile *f, char **text_out, struct drps_err *err)
{
    const int rc = flush(f, err);
    *text_out = NULL;
    if (rc < 0) return rc;
    *text_out = f->memory; /* moved */
    f->memory = NULL;
    return 0;
}

void drps_textfile_close(struct drps_textfile *f)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    if (!f->io) return;
    drps_io_close(f->io, f->fd);
    const int rc = remove_scratch(f, &ignored);
    (void)rc; /* of a file what is left is the next run's to remove */
    drps_stage_abort(&f->stage);
    free(f->made);
    free(f->buf);
    free(f->memory);
    *f = (struct drps_textfile){.fd = -1};
}

/* ---- Where it may be ---- */

static int same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the file `path`, which may not exist, lies in `folder` or in a folder below it. */
static int lies_in(const char *path, const char *folder, int *lies_out, struct drps_err *err)
{
    struct stat of_folder, at, above;
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");

    *lies_out = 0;
    int rc = dir ? 0 : drps_err_set(err, -ENOMEM, "no memory for the folder of %s", path);
    int more = rc == 0 && !stat(folder, &of_folder) && !stat(dir, &at);
    while (more && !same_file(&at, &of_folder)) { /* up to the root, which is above itself */
        char *up = drps_path_join(dir, "..");
        free(dir);
        dir = up;
        if (!dir) return drps_err_set(err, -ENOMEM, "no memory for the folder of %s", path);
        more = !stat(dir, &above) && !same_file(&at, &above);
        at = above;
    }
    *lies_out = more;
    free(dir);
    return rc;
}

/* A name that leads to what is read must not be written, not even where it may be replaced. */
int drps_textfile_check(const char *path, const char *model, const char *const *inputs, size_t n,
                        struct drps_err *err)
{
    struct stat output, input;
    int in_model;
    if (strcmp(path, "-") == 0) return 0;
    int rc = lies_in(path, model, &in_model, err);
    if (rc == 0 && in_model)
        rc =
            drps_err_set(err, DRPS_E_CONFIG,
                         "%s lies in the folder %s, which keeps its own files only: choose another "
                         "place",
                         path, model);
    if (rc < 0 || stat(path, &output) || !S_ISREG(output.st_mode)) return rc;
    for (size_t i = 0; i < n; i++) {
        const char *name = inputs[i];
        const int is_stdin = strcmp(name, "-") == 0;
        if ((is_stdin ? fstat(STDIN_FILENO, &input) : stat(name, &input)) == 0 &&
            same_file(&output, &input))
            return drps_err_set(err, DRPS_E_CONFIG,
                                "%s is the input %s: the results need another file", path,
                                is_stdin ? "on standard input" : name);
    }
    return 0;
}
