"""Forms of others: graphs and formulas in; exports, native code and reports out."""
