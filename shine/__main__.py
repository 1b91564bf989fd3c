"""``python -m shine``."""

from shine.cli import main

if __name__ == "__main__":
    main()
