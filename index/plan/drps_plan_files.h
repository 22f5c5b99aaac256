/*
 * This header names the files of a plan and the kinds of their records, for whoever writes or reads
 * one. drps_plan.h says what is in each file. A model has some of them, too (engine/publish).
 */
#ifndef DRPS_INDEX_PLAN_PLAN_FILES_H
#define DRPS_INDEX_PLAN_PLAN_FILES_H

#include "base/record/drps_recfile.h"

#define DRPS_FILE_MANIFEST "plan.json"
#define DRPS_FILE_DATA "data.rec"
#define DRPS_FILE_ROWS "rows.rec"
#define DRPS_FILE_NAMES "names.rec"
#define DRPS_FILE_BLOCKS "blocks.rec"
#define DRPS_FILE_USES "uses.rec"
#define DRPS_FILE_WINDOWS "windows.rec"
#define DRPS_FILE_SLOTS "slots.rec"
#define DRPS_FILE_SHARES "shares.rec"
#define DRPS_FILE_POSITIONS "positions.rec"
#define DRPS_FILE_RESIDUALS "residuals.rec"
#define DRPS_FILE_PUBLISHED "published.rec"
#define DRPS_FILE_HANDED "handed.rec"
#define DRPS_FILE_LENT "lent.rec"
#define DRPS_FILE_NUMBERS "numbers.rec"

#define DRPS_KIND_DATA DRPS_REC_KIND('D', 'A', 'T', 'A')
#define DRPS_KIND_ROWS DRPS_REC_KIND('R', 'O', 'W', 'S')
#define DRPS_KIND_NAMES DRPS_REC_KIND('N', 'A', 'M', 'E')
#define DRPS_KIND_BLOCKS DRPS_REC_KIND('B', 'L', 'K', 'S')
#define DRPS_KIND_USES DRPS_REC_KIND('U', 'S', 'E', 'S')
#define DRPS_KIND_WINDOWS DRPS_REC_KIND('W', 'I', 'N', 'D')
#define DRPS_KIND_SLOTS DRPS_REC_KIND('S', 'L', 'O', 'T')
#define DRPS_KIND_SHARES DRPS_REC_KIND('S', 'H', 'A', 'R')
#define DRPS_KIND_POSITIONS DRPS_REC_KIND('P', 'O', 'S', 'I')
#define DRPS_KIND_RESIDUALS DRPS_REC_KIND('R', 'E', 'S', 'I')
#define DRPS_KIND_PUBLISHED DRPS_REC_KIND('P', 'U', 'B', 'L')
#define DRPS_KIND_HANDED DRPS_REC_KIND('H', 'A', 'N', 'D')
#define DRPS_KIND_LENT DRPS_REC_KIND('L', 'E', 'N', 'T')
#define DRPS_KIND_NUMBERS DRPS_REC_KIND('N', 'U', 'M', 'B')

/* The folder of a rank's part is this and the rank's number. */
#define DRPS_FILE_RANK "rank-"

/* These files are written while the plan is made, or while windows are cut for a run, and removed
 * again. */
#define DRPS_FILE_USES_TMP "uses.tmp"
#define DRPS_FILE_ROW_USES_TMP "rows.uses.tmp"
#define DRPS_FILE_RESIDUALS_TMP "residuals.tmp"
#define DRPS_FILE_PUBLISHED_TMP "published.tmp"
#define DRPS_FILE_HANDED_NEXT_TMP "handed.next.tmp"
#define DRPS_FILE_HANDED_FATES_TMP "handed.fates.tmp"
#define DRPS_FILE_WINDOW_ROWS_TMP "windows.rows.tmp"
#define DRPS_FILE_WINDOW_NEXT_TMP "windows.next.tmp"
#define DRPS_FILE_WINDOW_PREV_TMP "windows.prev.tmp"

/* This folder holds what only drps-index needs. Those below lie in it. */
#define DRPS_FILE_SCRATCH "scratch"
/* This one holds a plan whose rows are to be placed on servers. */
#define DRPS_FILE_LAID "laid"
/* These two are made where several machines make a plan. The first holds the batches of this
 * machine once rows are placed; the second also has, of the others' batches, the rows of this one's
 * server. */
#define DRPS_FILE_PLACED "placed"
#define DRPS_FILE_GATHERED "gathered"
/* This one holds the row lists of the batches that a sample of the samples makes. */
#define DRPS_FILE_SAMPLED "sampled"

#endif
