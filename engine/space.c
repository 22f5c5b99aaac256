#include "engine/space.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "base/drps_size.h"

uint64_t drps_space_of_store(const struct drps_memory *memory, uint64_t rows, uint64_t row_bytes)
{
    const uint64_t bytes = rows * row_bytes;
    if (memory->store == &drps_store_resident) return 0;
    return memory->kv && memory->kv->training_only ? bytes + bytes / 2 : bytes;
}

int drps_space_check(const char *dir, uint64_t need_bytes, struct drps_err *err)
{
    struct statvfs disk;
    char need[32], room[32];
    if (statvfs(dir, &disk) < 0) return 0;
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (need_bytes <= free_bytes) return 0;
    return drps_err_set(err, -ENOSPC,
                        "no space left for %s: training and the model need %s at least, and the "
                        "disk has %s; free some, or put -o MODEL on another disk",
                        dir, drps_size_format(need_bytes, need, sizeof(need)),
                        drps_size_format(free_bytes, room, sizeof(room)));
}
