/* Sources are found by name, and read: a file whole, a port by one request. */
#include "tools/top/source.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_io.h"
#include "base/monitor/drps_monitor_out.h"
#include "tools/top/ask.h"

enum { TEXT_MOST = 8 << 20, KEEP_SECONDS = 5 };

/* ---- Names ---- */

static int has(const struct sources *s, const char *path, const char *host, const char *port)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct source *k = &s->list[i];
        if (path ? k->path && strcmp(k->path, path) == 0
                 : k->host && strcmp(k->host, host) == 0 && strcmp(k->port, port) == 0)
            return 1;
    }
    return 0;
}

/* Adds a file, or a port, unless it is there. */
static int add(struct sources *s, const char *path, const char *host, const char *port,
               struct drps_err *err)
{
    if (s->n == SOURCES_MOST || has(s, path, host, port)) return 0;
    if (drps_array_reserve(&s->list, &s->cap, s->n + 1, sizeof(*s->list)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu ranks", s->n + 1);
    struct source *k = &s->list[s->n++];
    *k = (struct source){.path = path ? strdup(path) : NULL,
                         .host = host ? strdup(host) : NULL,
                         .port = port ? strdup(port) : NULL};
    if (k->path || (k->host && k->port)) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for a name");
}

/* Adds files of a pattern whose name `name`, which is not one itself, stands before. */
static int add_matching(struct sources *s, const char *name, const char *pattern,
                        struct drps_err *err)
{
    char *all;
    size_t to = 0;
    glob_t found;
    int rc = 0;
    if (!(all = malloc(2 * strlen(name) + strlen(pattern) + 1)))
        return drps_err_set(err, -ENOMEM, "no memory for a name");
    for (const char *from = name; *from; from++) {
        if (strchr("*?[\\", *from)) all[to++] = '\\';
        all[to++] = *from;
    }
    strcpy(all + to, pattern); /* its room is counted above */
    if (glob(all, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
            rc = add(s, found.gl_pathv[i], NULL, NULL, err);
        globfree(&found);
    }
    free(all);
    return rc;
}

/* MODEL or PLAN: the folders that their jobs work in. */
static int add_folder(struct sources *s, const char *name, struct drps_err *err)
{
    char *plain = strdup(name);
    if (!plain) return drps_err_set(err, -ENOMEM, "no memory for a name");
    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
        plain[n - 1] = '\0';
    int rc = add_matching(s, plain, ".partial/" DRPS_MONITOR_FILE, err);
    if (rc == 0) rc = add_matching(s, plain, ".rank-[0-9]*.partial/" DRPS_MONITOR_FILE, err);
    free(plain);
    return rc;
}

/* HOST:PORT, [ADDRESS]:PORT. Returns 1 if it is one. */
static int add_port(struct sources *s, const char *name, struct drps_err *err)
{
    const char *colon = strrchr(name, ':');
    char host[256];
    if (!colon || colon == name || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
        return 0;
    size_t n = (size_t)(colon - name);
    const int bracketed = name[0] == '[' && name[n - 1] == ']';
    if (n >= sizeof(host)) return 0;
    if (bracketed) n -= 2;
    memcpy(host, name + bracketed, n);
    host[n] = '\0';
    const int rc = add(s, NULL, host, colon + 1, err);
    return rc < 0 ? rc : 1;
}

static int find(struct sources *s, const char *name, struct drps_err *err)
{
    struct stat st;
    if (stat(name, &st) == 0 && S_ISREG(st.st_mode)) return add(s, name, NULL, NULL, err);
    const int rc = add_port(s, name, err);
    if (rc) return rc < 0 ? rc : 0;
    return add_folder(s, name, err);
}

/* ---- Reading ---- */

static double modified(const char *path)
{
    struct stat st;
    if (stat(path, &st)) return 0;
    return (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
}

/* A text and its time; a file's is when it was written. */
static int fetch(const struct source *k, char **text, double *at, struct drps_err *err)
{
    size_t n;
    *at = k->path ? modified(k->path) : (double)drps_clock_ns() * 1e-9;
    return k->path ? drps_io_read_file(drps_io_os(), k->path, TEXT_MOST, text, &n, err)
                   : top_ask(k->host, k->port, TEXT_MOST, text, err);
}

/* Puts readings before all others. Those of one moment are one. */
static void keep(struct source *k, struct readings *now)
{
    if (k->past_n && now->at <= k->past[0].at) {
        readings_free(now);
        return;
    }
    if (k->past_n == SOURCE_PAST) readings_free(&k->past[--k->past_n]);
    memmove(&k->past[1], &k->past[0], k->past_n * sizeof(k->past[0]));
    k->past[0] = *now;
    k->past_n++;
}

/* A file with another name is no sign of a folder: nobody removes it but its user. */
static int has_folder(const struct source *k)
{
    static const char end[] = ".partial/" DRPS_MONITOR_FILE;
    const size_t n = k->path ? strlen(k->path) : 0, inside = sizeof("/" DRPS_MONITOR_FILE) - 1;
    struct stat st;
    if (n < sizeof(end) || strcmp(k->path + n - (sizeof(end) - 1), end) != 0) return 0;
    char *folder = strndup(k->path, n - inside);
    const int is_there = folder && stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
    free(folder);
    return is_there;
}

static void read_source(struct source *k)
{
    struct drps_err ignored = DRPS_ERR_INIT; /* it is looked for again */
    struct readings now;
    char *text = NULL;
    double at;
    int rc = fetch(k, &text, &at, &ignored);
    if (rc == 0) rc = readings_parse(text, at, &now, &ignored);
    k->is_gone = rc < 0 && k->past_n;
    k->has_folder = has_folder(k);
    if (rc == 0) keep(k, &now);
}

static int by_rank(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    const uint32_t i = x->past_n ? x->past[0].rank : UINT32_MAX;
    const uint32_t j = y->past_n ? y->past[0].rank : UINT32_MAX;
    return (i > j) - (i < j);
}

int sources_read(struct sources *s, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->names_n && rc == 0; i++)
        rc = find(s, s->names[i], err);
    for (size_t i = 0; i < s->n; i++)
        read_source(&s->list[i]);
    if (s->n) qsort(s->list, s->n, sizeof(*s->list), by_rank);
    return rc;
}

size_t sources_alive(const struct sources *s)
{
    size_t alive = 0;
    for (size_t i = 0; i < s->n; i++)
        alive += s->list[i].past_n && !s->list[i].is_gone;
    return alive;
}

size_t sources_ending(const struct sources *s)
{
    size_t ending = 0;
    for (size_t i = 0; i < s->n; i++)
        ending += s->list[i].is_gone && s->list[i].has_folder;
    return ending;
}

const struct readings *source_now(const struct source *s)
{
    return s->past_n ? &s->past[0] : NULL;
}

/* Of a file that is written each second, two readings may be as far apart as two seconds. */
const struct readings *source_before(const struct source *s)
{
    size_t i = 0;
    while (i + 1 < s->past_n && s->past[0].at - s->past[i].at < KEEP_SECONDS)
        i++;
    return &s->past[i];
}

void sources_free(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct source *k = &s->list[i];
        for (size_t j = 0; j < k->past_n; j++)
            readings_free(&k->past[j]);
        free(k->path);
        free(k->host);
        free(k->port);
    }
    free(s->list);
    s->list = NULL;
    s->n = s->cap = 0;
}
