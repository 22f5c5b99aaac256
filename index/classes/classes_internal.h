/* Shared by the files of index/classes/. */
#ifndef DRPS_CLASSES_INTERNAL_H
#define DRPS_CLASSES_INTERNAL_H

#include "index/classes/drps_classes.h"

/* 1: the names are in the order that drps_classes_sort() gives them, no two the same. */
int classes_in_order(const struct drps_classes *c);

#endif
