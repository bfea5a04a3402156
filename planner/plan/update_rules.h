/* What a scenario's "update" means for the families of a model. */
#ifndef RF_PLANNER_PLAN_UPDATE_RULES_H
#define RF_PLANNER_PLAN_UPDATE_RULES_H

#include "planner/plan/plan.h"

/*
 * RF_ERR_CONFIG for a density where the model is a checkpoint, whose weights
 * have no second state; for checkpoints where the model is none, or that are
 * one; for a dtype that differs between the sides; and for a "match" that no
 * tensor has.
 */
enum rf_status rf_update_check(const struct rf_plan *plan,
                               struct rf_err *err) RF_MUST_CHECK;

/* The share of a family's elements that change before each refit, by the
 * formula. */
double rf_update_share(const struct rf_plan *plan, uint32_t family);

/* How many elements change together; 0: each by itself. */
uint64_t rf_update_unit(const struct rf_plan *plan, uint32_t family);

/*
 * The bytes that a refit with an encoding sends at least of a family, as a
 * share of the whole, on average: the entropy of the positions and of the
 * values, as elements or as differences (docs/MEASURING.md, "Updates and
 * encodings"). 1 for RF_ENCODING_DENSE; 0, as not known, between checkpoints,
 * where units change, of which a tensor may have few, and of what senders have
 * converted, which may stay when the weights change.
 */
double rf_update_least(const struct rf_plan *plan, uint32_t family,
                       enum rf_encoding encoding);

#endif
