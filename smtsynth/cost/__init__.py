"""Cost models (model, section 6): an interface, the default alpha-beta model, closed forms and a bound."""
