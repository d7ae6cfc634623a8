"""Search: enumeration, the cost-bounded loop, and what compares them. Never touches a solver library."""
