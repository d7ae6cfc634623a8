"""Ready-made workloads: a model's shape and its parallel sizes to the reductions and traffic of a training step."""
