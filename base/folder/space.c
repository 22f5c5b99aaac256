/* Asking the file system how much room it has. */
#include "base/folder/drps_space.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/drps_size.h"

int drps_space_check(const char *dir, const char *what, uint64_t need_bytes, uint64_t most_bytes,
                     struct drps_err *err)
{
    struct statvfs disk;
    char need[32], most[32], up_to[64] = "", room[32];
    if (statvfs(dir, &disk) < 0) return 0;
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (need_bytes <= free_bytes) return 0;
    if (most_bytes > need_bytes)
        (void)snprintf(up_to, sizeof(up_to), " and %s at most",
                       drps_size_format(most_bytes, most, sizeof(most)));
    return drps_err_set(err, -ENOSPC,
                        "no space left for %s: %s %s at least%s, and the disk has %s; free some, "
                        "or use another disk",
                        dir, what, drps_size_format(need_bytes, need, sizeof(need)), up_to,
                        drps_size_format(free_bytes, room, sizeof(room)));
}
