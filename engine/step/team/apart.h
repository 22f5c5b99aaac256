/* Threads that work in step do so on processors of their own. Private to this folder. */
#ifndef DRPS_ENGINE_STEP_TEAM_APART_H
#define DRPS_ENGINE_STEP_TEAM_APART_H

#include <stddef.h>

/*
 * Move the calling thread to a processor that is none of others[n], among those that it may run on;
 * it may run on as many as before afterwards. Returns 1 when it was moved, 0 where there is no such
 * processor or the system does not let it.
 */
int drps_leave_processors(const int *others, size_t n);

#endif
