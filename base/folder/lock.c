/* Taking the lock of a file by flock(2). */
#include "base/folder/drps_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Whether path still names the open file: between open and lock another process may have removed
 * it. */
static int is_still(int fd, const char *path)
{
    struct stat mine, named;
    return !fstat(fd, &mine) && !lstat(path, &named) && mine.st_dev == named.st_dev &&
           mine.st_ino == named.st_ino;
}

int drps_lock_take(const struct drps_io *io, const char *path, int *fd_out, struct drps_err *err)
{
    int fd;
    *fd_out = -1;
    int rc = drps_io_open(io, path, O_RDWR | O_CREAT | O_NOFOLLOW, &fd, err);
    if (rc < 0) return rc;
    if (flock(fd, LOCK_EX | LOCK_NB) || !is_still(fd, path)) {
        drps_io_close(io, fd);
        return -EBUSY;
    }
    *fd_out = fd;
    return 0;
}
