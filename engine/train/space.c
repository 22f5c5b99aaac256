#include "engine/train/space.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "base/drps_size.h"

uint64_t drps_space_of_store(const struct drps_memory *memory, uint64_t rows, uint64_t row_bytes)
{
    const uint64_t bytes = rows * row_bytes;
    if (memory->store == &drps_store_resident) return 0;
    return memory->kv && memory->kv->training_only ? bytes + bytes / 2 : bytes;
}

uint64_t drps_space_of_scan(const struct drps_memory *memory, uint64_t rows, uint64_t param_bytes)
{
    return memory->store == &drps_store_relay ? rows * (param_bytes + sizeof(uint32_t)) : 0;
}

uint64_t drps_space_still_needed(const struct drps_space *s)
{
    const uint64_t makes_way = s->store + s->scan;
    return (s->reserved ? 0 : s->store) + (s->database > makes_way ? s->database - makes_way : 0);
}

uint64_t drps_space_needed(const struct drps_space *s)
{
    return (s->reserved ? s->store : 0) + s->scan + s->trained + drps_space_still_needed(s);
}

int drps_space_check(const char *dir, const char *what, uint64_t need_bytes, struct drps_err *err)
{
    struct statvfs disk;
    char need[32], room[32];
    if (statvfs(dir, &disk) < 0) return 0;
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (need_bytes <= free_bytes) return 0;
    return drps_err_set(err, -ENOSPC,
                        "no space left for %s: %s %s at least, and the disk has %s; free some, "
                        "or put -o MODEL on another disk",
                        dir, what, drps_size_format(need_bytes, need, sizeof(need)),
                        drps_size_format(free_bytes, room, sizeof(room)));
}
