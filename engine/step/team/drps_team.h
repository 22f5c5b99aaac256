/*
 * A team of threads that work on one step after another: the caller is member 0, the others wait
 * between runs.
 */
#ifndef DRPS_ENGINE_STEP_TEAM_TEAM_H
#define DRPS_ENGINE_STEP_TEAM_TEAM_H

#include "base/drps_err.h"

struct drps_team; /* opaque */

typedef void (*drps_team_work)(void *ctx, unsigned member);

/* members >= 1, the calling thread included. */
DRPS_MUST_CHECK
int drps_team_start(unsigned members, struct drps_team **team_out, struct drps_err *err);
void drps_team_stop(struct drps_team *team); /* NULL-safe */

/* Every member calls work(ctx, its number); returns when all have. What the caller wrote before is
 * seen by all, what they wrote by the caller. */
void drps_team_run(struct drps_team *team, drps_team_work work, void *ctx);

/* Within work: go on when all members have arrived. Nothing happens in a team of one. */
void drps_team_barrier(struct drps_team *team);

unsigned drps_team_members(const struct drps_team *team);

/* How often a member left a processor that it shared with another one. */
unsigned drps_team_parted(const struct drps_team *team);

#endif
