/* The checkpoints of a rank: which there are, and removing those that are not needed any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder/drps_durable.h"
#include "engine/checkpoint/checkpoint_internal.h"

enum { DIGITS = 19 }; /* of a number that 64 bits hold */

/* What drps_store_ops.save() writes: storage/relay/save.h. */
static const struct drps_owned store_owned[] = {
    {.name = "runs"}, {.name = "streams"}, {.name = "relay.rec"}, {.name = NULL}};
static const struct drps_owned rows_owned[] = {{.name = "#.rec"}, {.name = NULL}};
static const struct drps_owned owned[] = {
    {.name = DRPS_CHECKPOINT_MANIFEST},
    {.name = DRPS_CHECKPOINT_ROWS, .inside = rows_owned},
    {.name = "rows.rec"}, /* of version 1 */
    {.name = DRPS_CHECKPOINT_BEST},
    {.name = DRPS_CHECKPOINT_HELD},
    {.name = DRPS_CHECKPOINT_STORE, .inside = store_owned},
    {.name = DRPS_CHECKPOINT_NAMES},
    {.name = DRPS_CHECKPOINT_VECTORS},
    {.name = NULL},
};
const struct drps_stage_kind drps_checkpoint_kind = {.manifest = DRPS_CHECKPOINT_MANIFEST,
                                                     .kind = DRPS_CHECKPOINT_KIND,
                                                     .version = DRPS_CHECKPOINT_VERSION,
                                                     .owned = owned};

int drps_checkpoints_init(struct drps_checkpoints *c, const struct drps_io *io, const char *root,
                          uint32_t rank, struct drps_err *err)
{
    size_t n = strlen(root);
    *c = (struct drps_checkpoints){.io = io, .lock_fd = -1};
    while (n > 1 && root[n - 1] == '/')
        n--;
    c->root = strndup(root, n);
    if (c->root && asprintf(&c->dir, "%s/" DRPS_CHECKPOINT_RANK "%u", c->root, rank) < 0)
        c->dir = NULL;
    if (c->dir) c->lock = drps_path_join(c->dir, DRPS_CHECKPOINT_LOCK);
    if (c->lock) return 0;
    drps_checkpoints_destroy(c);
    return drps_err_set(err, -ENOMEM, "no memory for the checkpoints in %s", root);
}

char *drps_checkpoint_name(const struct drps_checkpoints *c, uint64_t number)
{
    char *path;
    return asprintf(&path, "%s/%llu", c->dir, (unsigned long long)number) < 0 ? NULL : path;
}

/* ---- Listing ---- */

/* Returns the number that a name begins with, and where it ends; 0: it is no number of ours. */
static uint64_t number_of(const char *name, const char **end_out)
{
    const size_t n = strspn(name, "0123456789");
    *end_out = name + n;
    return n && n <= DIGITS && *name != '0' ? strtoull(name, NULL, 10) : 0;
}

/* Called for each entry that has a number; `end` is what follows it in the name. */
typedef int (*take_number)(void *ctx, uint64_t number, const char *end, struct drps_err *err);

/* NULL at the end, with errno 0, or on a failure. */
static const struct dirent *next_entry(DIR *dir)
{
    errno = 0;
    return readdir(dir);
}

static int each_number(const struct drps_checkpoints *c, take_number take, void *ctx,
                       struct drps_err *err)
{
    const struct dirent *entry;
    const char *end;
    int rc = 0;
    DIR *dir = opendir(c->dir);
    if (!dir && errno == ENOENT) return 0;
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", c->dir, strerror(errno));
    while (rc == 0 && (entry = next_entry(dir))) {
        const uint64_t number = number_of(entry->d_name, &end);
        if (number) rc = take(ctx, number, end, err);
    }
    if (rc == 0 && errno) /* a list that ends early would hide checkpoints */
        rc = drps_err_set(err, -errno, "cannot list %s: %s", c->dir, strerror(errno));
    (void)closedir(dir);
    return rc;
}

/* ---- Of which run ---- */

static char *begun_name(const struct drps_checkpoints *c, uint64_t number)
{
    char *path;
    return asprintf(&path, "%s/%llu" DRPS_CHECKPOINT_BEGUN, c->dir, (unsigned long long)number) < 0
               ? NULL
               : path;
}

int drps_checkpoints_begin_run(const struct drps_checkpoints *c, uint64_t number,
                               struct drps_err *err)
{
    int fd = -1;
    char *path = begun_name(c, number);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to begin a run in %s", c->dir);
    int rc = drps_io_open(c->io, path, O_WRONLY | O_CREAT | O_NOFOLLOW, &fd, err);
    if (rc == 0) rc = drps_io_sync(c->io, fd, path, err);
    drps_io_close(c->io, fd);
    if (rc == 0) rc = drps_sync_folder(c->io, c->dir, err);
    free(path);
    return rc;
}

static int take_begun(void *ctx, uint64_t number, const char *end, struct drps_err *err)
{
    uint64_t *first = ctx;
    (void)err;
    if (!strcmp(end, DRPS_CHECKPOINT_BEGUN) && number > *first) *first = number;
    return 0;
}

int drps_checkpoints_first(const struct drps_checkpoints *c, uint64_t *first_out,
                           struct drps_err *err)
{
    *first_out = 1;
    return each_number(c, take_begun, first_out, err);
}

/* ---- The newest ---- */

struct list {
    uint64_t *numbers; /* [DRPS_CHECKPOINT_LIST_MOST] decreasing */
    size_t n;
};

/* Inserts a number into the list; the least one falls out when it is full. */
static int list_number(void *ctx, uint64_t number, const char *end, struct drps_err *err)
{
    struct list *list = ctx;
    size_t at = list->n;
    (void)err;
    if (*end) return 0;
    while (at && list->numbers[at - 1] < number)
        at--;
    if (at == DRPS_CHECKPOINT_LIST_MOST) return 0;
    if (list->n < DRPS_CHECKPOINT_LIST_MOST) list->n++;
    memmove(list->numbers + at + 1, list->numbers + at,
            (list->n - 1 - at) * sizeof(*list->numbers));
    list->numbers[at] = number;
    return 0;
}

int drps_checkpoints_list(const struct drps_checkpoints *c, uint64_t *numbers, size_t *n_out,
                          struct drps_err *err)
{
    struct list list = {.numbers = numbers};
    int rc = each_number(c, list_number, &list, err);
    *n_out = list.n;
    return rc;
}

/* ---- Removing ---- */

/* Only the empty file that we write is ours. */
static int remove_begun(const struct drps_checkpoints *c, const char *path, struct drps_err *err)
{
    struct stat st;
    if (lstat(path, &st) || !S_ISREG(st.st_mode) || st.st_size) return 0;
    int rc = c->io->ops->unlink(c->io->ctx, path);
    if (rc < 0 && rc != -ENOENT)
        return drps_err_set(err, rc, "cannot remove %s: %s", path, drps_err_name(rc));
    return 0;
}

void drps_checkpoints_destroy(struct drps_checkpoints *c)
{
    if (c->lock && c->lock_fd >= 0) {
        drps_checkpoints_unlock(c);
        drps_checkpoints_remove_folders(c);
    }
    free(c->root);
    free(c->dir);
    free(c->lock);
    memset(c, 0, sizeof(*c));
}

int drps_checkpoints_remove(const struct drps_checkpoints *c, uint64_t number, struct drps_err *err)
{
    char *path = drps_checkpoint_name(c, number), *begun = begun_name(c, number);
    int rc = path && begun ? drps_stage_remove(c->io, path, &drps_checkpoint_kind, err)
                           : drps_err_set(err, -ENOMEM, "no memory to remove a checkpoint");
    if (rc == 0) rc = remove_begun(c, begun, err);
    drps_checkpoints_remove_folders(c);
    free(path);
    free(begun);
    return rc;
}

struct keep {
    const struct drps_checkpoints *c;
    uint64_t first, last, also;
    struct drps_err *err; /* of the first that could not be removed */
    int rc;
};

/* What is left of a checkpoint that is kept goes when the next one of its number is made. */
static int remove_other(void *ctx, uint64_t number, const char *end, struct drps_err *err)
{
    struct keep *k = ctx;
    (void)err;
    (void)end;
    if ((number >= k->first && number <= k->last) || number == k->also) return 0;
    const int rc = drps_checkpoints_remove(k->c, number, k->rc ? NULL : k->err);
    if (k->rc == 0) k->rc = rc;
    return 0;
}

int drps_checkpoints_keep(const struct drps_checkpoints *c, uint64_t first, uint64_t last,
                          uint64_t also, struct drps_err *err)
{
    struct keep k = {.c = c, .first = first, .last = last, .also = also, .err = err};
    int rc = each_number(c, remove_other, &k, err);
    drps_checkpoints_remove_folders(c);
    return rc < 0 ? rc : k.rc;
}
