/* Advice for the mappings below a folder, from /proc/self/maps; mapped.h has the idea. */
#include "storage/kv/mapped.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Looking through the mappings costs about as much as one read from disk. */
enum { CALLS_BETWEEN_LOOKS = 256 };

int drps_mapped_init(struct drps_mapped *m, const char *folder)
{
    memset(m, 0, sizeof(*m));
    int rc = pthread_mutex_init(&m->lock, NULL);
    if (rc) return -rc;
    m->alive = 1;
    m->folder = strdup(folder);
    return m->folder ? 0 : -ENOMEM;
}

void drps_mapped_destroy(struct drps_mapped *m)
{
    if (m->alive) (void)pthread_mutex_destroy(&m->lock);
    free(m->folder);
    memset(m, 0, sizeof(*m));
}

/* The list names files by absolute path; the folder exists only once the library has opened its
 * database. */
static void make_absolute(struct drps_mapped *m)
{
    if (m->folder[0] == '/' && m->folder[strlen(m->folder) - 1] == '/') return;
    char *real = realpath(m->folder, NULL);
    char *slashed = real ? malloc(strlen(real) + 2) : NULL;
    if (slashed) {
        (void)sprintf(slashed, "%s/", real);
        free(m->folder);
        m->folder = slashed;
    }
    free(real);
}

static void look(struct drps_mapped *m)
{
    make_absolute(m);
    FILE *f = fopen("/proc/self/maps", "r");
    if (!f) return; /* slower reads, nothing worse */
    char line[PATH_MAX + 128];
    while (fgets(line, sizeof(line), f)) {
        const char *name = strchr(line, '/');
        unsigned long from, to;
        if (!name || strncmp(name, m->folder, strlen(m->folder)) != 0) continue;
        if (sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
        (void)madvise((void *)from, to - from, MADV_RANDOM); /* advice */
    }
    (void)fclose(f);
}

static int folder_changed(struct drps_mapped *m)
{
    struct stat s;
    if (stat(m->folder, &s) != 0) return 0;
    if (s.st_mtim.tv_sec == m->changed.tv_sec && s.st_mtim.tv_nsec == m->changed.tv_nsec) return 0;
    m->changed = s.st_mtim;
    return 1;
}

void drps_mapped_check(struct drps_mapped *m)
{
    (void)pthread_mutex_lock(&m->lock);
    if (folder_changed(m) || m->calls_left == 0) {
        m->calls_left = CALLS_BETWEEN_LOOKS;
        look(m);
    }
    m->calls_left--;
    (void)pthread_mutex_unlock(&m->lock);
}
