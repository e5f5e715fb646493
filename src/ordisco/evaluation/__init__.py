"""How good a learner is: accuracy, generated images judged, density and coverage, the record of an increment."""
