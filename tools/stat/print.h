/* What drps-stat prints as text. A failure of standard output shows when it is flushed. Private to
 * tools/stat/. */
#ifndef DRPS_TOOLS_STAT_PRINT_H
#define DRPS_TOOLS_STAT_PRINT_H

#include <stdint.h>

#include <jansson.h>

#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_plan.h"

/* How much of a model is shown. */
struct stat_shown {
    uint64_t epoch;     /* this one alone; 0: all */
    int windows;        /* also each window, of a model trained with store relay */
    int details;        /* also what needs words of the stores' own */
    uint64_t link_bits; /* of each machine's link to the network, a second */
};

void stat_print_plan(const struct drps_plan *plan, const struct stat_shown *shown);
void stat_print_model(const char *path, const struct drps_modeldir *md,
                      const struct stat_shown *shown);

/* ---- Parts of them ----
 *
 * Of manifests: `tables` and `ranks` are their members of that name, `training` is that of a model.
 */

void stat_print_tables(const json_t *tables);

/* A loss that is a text ("": nothing), and how many scores W*x has where labels do not say (0, 1:
 * they do). */
void stat_print_expression(const char *text, uint32_t outputs);

/* The layers of a net, a line each ("": nothing). */
void stat_print_net(const char *text);

/* How many named classes there are, and their names, as many as fit some lines; NULL: nothing. */
void stat_print_classes(const struct drps_classes *classes);

/* How features are hashed, if they are. */
void stat_print_hashing(const struct drps_hashing *hashing);
void stat_print_sequences(const struct drps_plan_sequences *s); /* nothing where there are none */

/* What went between the memory of the process and that of a device, where rows were in both. */
void stat_print_tiers(const json_t *training);

/* What went between memory and disk, if anything did or `details` are asked for; and each window.
 */
void stat_print_disk(const json_t *training, int details);
void stat_print_each_window(const json_t *training);

/* Of several ranks: the forecast and the measured load of each, and how each fared. */
void stat_print_loads(const json_t *ranks);

/* What they sent to each other, from rank to rank, and where the time of each went; nothing of one
 * rank. link_bits: of each machine's link, a second, for the least time. */
void stat_print_traffic(const json_t *training, uint64_t link_bits);
void stat_print_workers(const json_t *training);

#endif
