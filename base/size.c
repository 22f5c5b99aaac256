/* Sizes as text, and how much memory there is: from /proc and the cgroup's files. */
#include "base/drps_size.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char units[] = "KMGT";

int drps_size_parse(const char *text, uint64_t *bytes_out, struct drps_err *err)
{
    char *end;
    *bytes_out = 0;
    double value = strtod(text, &end);
    if (end != text && isfinite(value) && value >= 0) {
        const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
        if (unit) {
            value = ldexp(value, 10 * (int)(unit - units + 1));
            end++;
            if (*end == 'i') end++;
        }
        if (*end == 'B' || *end == 'b') end++;
        if (!*end && value < 0x1p63) {
            *bytes_out = (uint64_t)value;
            return 0;
        }
    }
    return drps_err_set(err, -EINVAL, "'%s' is not a size: write for instance 256M, 1.5G or 4096",
                        text);
}

char *drps_size_format(uint64_t bytes, char *buf, size_t cap)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(buf, cap, unit ? "%.1f %s" : "%.0f %s", value, names[unit]);
    return buf;
}

char *drps_count_format(uint64_t count, char *buf)
{
    char digits[DRPS_COUNT_BYTES], *at = buf;
    const int n = snprintf(digits, sizeof(digits), "%ju", (uintmax_t)count); /* 20 digits at most */
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return buf;
}

/* A limit written in a cgroup file; UINT64_MAX when there is none or it says "max". */
static uint64_t limit_in(const char *path)
{
    char line[64];
    FILE *f = fopen(path, "re");
    uint64_t limit = UINT64_MAX;
    if (!f) return limit;
    if (fgets(line, sizeof(line), f) && isdigit((unsigned char)line[0]))
        limit = strtoull(line, NULL, 10);
    (void)fclose(f); /* only read */
    return limit;
}

/* Limits of this process's group and of every group above it. */
static uint64_t cgroup_limit(const char *mount, const char *group, const char *file)
{
    char path[4096];
    char at[2048];
    uint64_t least = UINT64_MAX;
    (void)snprintf(at, sizeof(at), "%s", group);
    for (;;) {
        (void)snprintf(path, sizeof(path), "%s%s/%s", mount, at, file);
        uint64_t limit = limit_in(path);
        if (limit < least) least = limit;
        char *slash = strrchr(at, '/');
        if (!slash || !at[0]) return least;
        *slash = '\0';
    }
}

uint64_t drps_memory_available(void)
{
    uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char line[2048];
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        uint64_t limit = UINT64_MAX;
        if (strstr(controllers, "memory"))
            limit = cgroup_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        else if (!controllers[1])
            limit = cgroup_limit("/sys/fs/cgroup", group, "memory.max");
        if (limit < least) least = limit;
    }
    if (f) (void)fclose(f); /* only read */
    return least;
}

uint64_t drps_memory_peak(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) ? 0 : (uint64_t)use.ru_maxrss * 1024;
}
