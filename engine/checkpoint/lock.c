/* One run at a time uses the checkpoints of a rank: two would remove each other's, and go on from
 * each other's. Whoever holds the lock says so in its file, for the message that others give. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder/drps_durable.h"
#include "base/folder/drps_lock.h"
#include "engine/checkpoint/checkpoint_internal.h"

enum { HOLDER_BYTES = 128, TRIES = 100 };

/* ---- Who holds it ---- */

static int say_holder(const struct drps_checkpoints *c, struct drps_err *err)
{
    char host[64] = "", text[HOLDER_BYTES];
    (void)gethostname(host, sizeof(host) - 1);
    const int n = snprintf(text, sizeof(text), "process %ld on %s\n", (long)getpid(), host);
    int rc = drps_io_resize(c->io, c->lock_fd, c->lock, 0, err);
    return rc < 0 ? rc : drps_io_write_at(c->io, c->lock_fd, text, (size_t)n, 0, c->lock, err);
}

/* What the file says, if it is a line such as we write. */
static void read_holder(const struct drps_checkpoints *c, char holder_out[HOLDER_BYTES])
{
    struct drps_err unread = DRPS_ERR_INIT;
    char *text = NULL, host[64] = "";
    size_t n;
    long pid;
    (void)snprintf(holder_out, HOLDER_BYTES, "another process");
    if (drps_io_read_file(c->io, c->lock, HOLDER_BYTES, &text, &n, &unread) == 0 &&
        sscanf(text, "process %ld on %63[A-Za-z0-9._-]", &pid, host) == 2)
        (void)snprintf(holder_out, HOLDER_BYTES, "process %ld on %s", pid, host);
    free(text);
}

static int refuse(const struct drps_checkpoints *c, struct drps_err *err)
{
    char holder[HOLDER_BYTES];
    read_holder(c, holder);
    return drps_err_set(err, -EBUSY,
                        "the checkpoints in %s are those of a run that is still going on (%s): "
                        "wait until it has ended, or choose another folder",
                        c->dir, holder);
}

/* ---- Taking it and letting go ---- */

void drps_checkpoints_remove_folders(const struct drps_checkpoints *c)
{
    (void)c->io->ops->rmdir(c->io->ctx, c->dir);
    (void)c->io->ops->rmdir(c->io->ctx, c->root);
}

static int make_and_take(struct drps_checkpoints *c, struct drps_err *err)
{
    int rc = drps_make_folder(c->io, c->root, err);
    if (rc == 0) rc = drps_make_folder(c->io, c->dir, err);
    return rc == 0 ? drps_lock_take(c->io, c->lock, &c->lock_fd, err) : rc;
}

/* Whoever lets go of the lock removes folders that are empty: such as they were when we found them,
 * and then they are made anew. */
int drps_checkpoints_lock(struct drps_checkpoints *c, struct drps_err *err)
{
    int rc = make_and_take(c, err);
    for (int i = 1; i < TRIES && rc == -ENOENT; i++) {
        drps_err_clear(err);
        rc = make_and_take(c, err);
    }
    if (rc == -EBUSY) rc = refuse(c, err);
    if (rc < 0) drps_checkpoints_remove_folders(c); /* whoever holds the lock has a file there */
    return rc == 0 ? say_holder(c, err) : rc;
}

void drps_checkpoints_unlock(struct drps_checkpoints *c)
{
    (void)c->io->ops->unlink(c->io->ctx, c->lock); /* while it is ours */
    drps_io_close(c->io, c->lock_fd);
    c->lock_fd = -1;
}
