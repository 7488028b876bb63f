from ._split import KnotPlan as KnotPlan, split_by_knots as split_by_knots
