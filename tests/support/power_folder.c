/* The real folder on one side, the model on the other. */
#include "support/power_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *need(void *memory)
{
    if (!memory) abort();
    return memory;
}

/* ---- What has changed past this twin ---- */

void power_look_at_file(struct disk_node *node, const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return; /* gone meanwhile */
    if (fstat(fd, &st) == 0) {
        char *data = need(malloc((size_t)st.st_size + 1));
        const ssize_t got = pread(fd, data, (size_t)st.st_size, 0);
        if (got >= 0) disk_replace(node, data, (size_t)got);
        free(data);
    }
    (void)close(fd); /* only read */
}

static void look_at_entry(struct power *p, struct disk_node *folder, const char *path,
                          const char *name)
{
    struct stat st;
    char *child = need(drps_path_join(path, name));
    if (!disk_find(folder, DISK_LIVE, name) && lstat(child, &st) == 0 &&
        (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
        struct disk_node *node = disk_node_new(&p->disk, S_ISDIR(st.st_mode));
        node->outside = 1;
        disk_link(&p->disk, folder, name, node);
    }
    free(child);
}

void power_look_at_folder(struct power *p, struct disk_node *folder, const char *path)
{
    const struct disk_entries *live = &folder->entries[DISK_LIVE];
    struct stat st;
    DIR *dir = opendir(path);
    if (!dir) return; /* gone meanwhile */
    for (const struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            look_at_entry(p, folder, path, e->d_name);
    (void)closedir(dir); /* only read */
    for (size_t i = live->n; i-- > 0;) {
        char *name = need(strdup(live->entry[i].name));
        char *child = need(drps_path_join(path, name));
        if (lstat(child, &st)) disk_unlink(&p->disk, folder, name);
        free(child);
        free(name);
    }
}

void power_look_below(struct power *p, struct disk_node *folder, const char *path)
{
    const struct disk_entries *live = &folder->entries[DISK_LIVE];
    power_look_at_folder(p, folder, path);
    for (size_t i = 0; i < live->n; i++) {
        struct disk_node *node = live->entry[i].node;
        char *child = need(drps_path_join(path, live->entry[i].name));
        if (node->folder)
            power_look_below(p, node, child);
        else if (node->outside)
            power_look_at_file(node, child);
        free(child);
    }
}

/* ---- Paths ---- */

/* The node of place->name, whose path is the first n bytes of `path`. */
static struct disk_node *find(struct power *p, const struct power_place *place, const char *path,
                              size_t n)
{
    struct stat st;
    struct disk_node *node = disk_find(place->folder, DISK_LIVE, place->name);
    char *whole = need(strndup(path, n));
    if (!node && lstat(whole, &st) == 0) {
        *strrchr(whole, '/') = '\0';
        power_look_at_folder(p, place->folder, whole);
        node = disk_find(place->folder, DISK_LIVE, place->name);
    }
    free(whole);
    return node;
}

struct power_place power_locate(struct power *p, const char *path)
{
    const size_t root_n = strlen(p->root);
    struct power_place place = {.node = p->disk.root};
    const char *at = path + root_n;
    if (strncmp(path, p->root, root_n) != 0 || (*at && *at != '/')) return (struct power_place){0};
    place.inside = 1;
    while (*(at += strspn(at, "/"))) {
        const size_t n = strcspn(at, "/");
        place.folder = place.node && place.node->folder ? place.node : NULL;
        if (!place.folder || n > NAME_MAX) return (struct power_place){.inside = 1};
        memcpy(place.name, at, n);
        place.name[n] = '\0';
        at += n;
        place.node = find(p, &place, path, (size_t)(at - path));
    }
    return place;
}

/* ---- What is found ---- */

static int make_file(const struct disk_node *node, uint64_t choice, const char *to)
{
    size_t bytes;
    unsigned char *data = disk_found_bytes(node, choice, &bytes);
    const int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const ssize_t put = fd < 0 ? -1 : write(fd, data, bytes);
    int rc = fd < 0 ? -errno : put == (ssize_t)bytes ? 0 : -EIO;
    if (fd >= 0 && close(fd) && rc == 0) rc = -errno;
    free(data);
    return rc;
}

static int make_folder(const struct disk_node *folder, uint64_t choice, const char *to)
{
    const struct disk_entries *found = &folder->entries[DISK_FOUND];
    int rc = mkdir(to, 0777) ? -errno : 0;
    for (size_t i = 0; rc == 0 && i < found->n; i++) {
        const struct disk_node *node = found->entry[i].node;
        char *path = need(drps_path_join(to, found->entry[i].name));
        rc = node->folder ? make_folder(node, choice, path) : make_file(node, choice, path);
        free(path);
    }
    return rc;
}

int power_found(struct power *p, uint64_t choice, const char *to)
{
    (void)pthread_mutex_lock(&p->lock);
    disk_choose(&p->disk, choice);
    const int rc = make_folder(p->disk.root, choice, to);
    (void)pthread_mutex_unlock(&p->lock);
    return rc;
}

uint64_t power_found_sum(struct power *p, uint64_t choice)
{
    (void)pthread_mutex_lock(&p->lock);
    disk_choose(&p->disk, choice);
    const uint64_t sum = disk_found_sum(p->disk.root, choice);
    (void)pthread_mutex_unlock(&p->lock);
    return sum;
}
