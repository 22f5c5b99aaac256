/*
 * Between the real folder of a struct power and its model: which node a path is, what has changed
 * past the twin, and the folder that is found. Private to power.c, which holds the lock.
 */
#ifndef DRPS_TESTS_POWER_FOLDER_H
#define DRPS_TESTS_POWER_FOLDER_H

#include <limits.h>

#include "support/power.h"

struct power_place {
    int inside;               /* the path is below the folder, or the folder itself */
    struct disk_node *folder; /* that holds the name; NULL: there is none, or it is the root */
    struct disk_node *node;   /* NULL: there is none */
    char name[NAME_MAX + 1];
};

struct power_place power_locate(struct power *p, const char *path);

/* The bytes of a file that somebody else writes are those that it has now. */
void power_look_at_file(struct disk_node *node, const char *path);

/* Entries that somebody else has made or removed become operations that are not durable. */
void power_look_at_folder(struct power *p, struct disk_node *folder, const char *path);

/* Both, for everything below a folder. */
void power_look_below(struct power *p, struct disk_node *folder, const char *path);

#endif
