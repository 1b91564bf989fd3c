"""A search judged by an objective of the user's."""
