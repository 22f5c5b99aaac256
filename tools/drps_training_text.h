/* What the names in the report of a training, and those of a model's tables, stand for: for whoever
 * shows them. */
#ifndef DRPS_TOOLS_TRAINING_TEXT_H
#define DRPS_TOOLS_TRAINING_TEXT_H

/* A member of the report, and what it is. */
struct training_text {
    const char *key, *meaning;
};

/* The members of phase_seconds in the order of a step; the last one has no key. */
const struct training_text *training_phases(void);

/* What a row of the table is learned for; "unknown": this program does not know the table. */
const char *training_rows_are(const char *table);

#endif
